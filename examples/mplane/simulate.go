package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/mplane"
	"github.com/hoplag/hoplag/queue"
)

// An event is a packet's arrival at a router.
type event struct {
	time  int64
	flow  *flow
	hop   int
	id    hashing.Packet
	seq   uint64
	bytes int
	began int64 // when the packet entered the segment that it is on
}

// Before orders events by time.
func (e event) Before(f event) bool { return e.time < f.time || e.time == f.time && e.seq < f.seq }

// A finding is what the station says about an interval, and the truth.
type finding struct {
	interval uint64
	paths    int // with a target
	missed   int // their target
	unknown  int // cannot be combined: a report is missing
	suspects []suspect
	exact    []suspect // segments that really took longer than usual, by at least 100 µs
}

// A suspect is a segment, with the number of paths whose verdicts name it.
type suspect struct {
	segment mplane.SegmentID
	excess  float64 // ns
	sure    float64
	paths   int
}

// interval simulates an interval, sends reports, and asks the station about
// every flow.
func (w *world) interval(interval uint64) (finding, error) {
	start := int64(interval) * second
	for _, f := range w.flows {
		for t := w.random.ExpFloat64() / flowRate; t < simulated; t += w.random.ExpFloat64() / flowRate {
			w.packets++
			w.events.Push(event{
				time: start + int64(t*1e9), flow: f, id: hashing.Packet(w.random.Uint64()), seq: w.packets, bytes: 64 + w.random.IntN(1400),
			})
		}
	}
	for len(w.events) > 0 {
		w.arrive(w.events.Pop())
	}
	if err := w.report(interval); err != nil {
		return finding{}, err
	}
	found, err := w.judge(interval)
	for _, m := range w.meters {
		m.shown = m.truth / max(float64(m.packets), 1)
		m.up.Reset()
		m.down.Reset()
		m.truth, m.packets = 0, 0
	}
	return found, err
}

// arrive moves a packet through a router.
func (w *world) arrive(e event) {
	h := &e.flow.hops[e.hop]
	h.inEnd.end(&e, e.time, w.clock(h.router, e.time))
	h.inBegin.begin(&e, e.time, w.clock(h.router, e.time))
	if h.queue == nil {
		return
	}
	t := e.time
	if h.router == w.slow && t >= int64(w.slowFrom)*second {
		t += slowBy
	}
	egress, fate := h.queue.Send(t, e.bytes)
	if fate != queue.Passed {
		return
	}
	h.outEnd.end(&e, egress, w.clock(h.router, egress))
	h.outBegin.begin(&e, egress, w.clock(h.router, egress))
	e.time, e.hop = egress+h.wire, e.hop+1
	w.events.Push(e)
}

// begin and end report a packet to a meter, if there is one. The clock at that
// end may show another time.
func (m *meter) begin(e *event, t, shown int64) {
	if m != nil {
		m.up.Update(e.id, shown)
		e.began = t
	}
}

func (m *meter) end(e *event, t, shown int64) {
	if m != nil {
		m.down.Update(e.id, shown)
		m.truth += float64(t - e.began)
		m.packets++
	}
}

// report sends what every monitor measured, except for lost reports.
func (w *world) report(interval uint64) error {
	if err := w.follow(interval); err != nil {
		return err
	}
	measured := make([][]mplane.Measurement, w.network.Routers())
	for _, id := range w.ids {
		m := w.meters[id]
		r, err := lda.Estimate(m.up, m.down)
		if err != nil {
			continue // nothing passed, or too much was lost: the segment is missing
		}
		monitor := id.From
		if id.Internal() {
			monitor = id.Via
		}
		found := mplane.Measure(id, &r)
		if m.reading != nil {
			found.SetClock(*m.reading)
		}
		measured[monitor] = append(measured[monitor], found)
	}
	for monitor, all := range measured {
		for part := range slices.Chunk(all, mplane.MaxMeasurements) {
			data, err := mplane.AppendReport(nil, mplane.Report{
				Monitor: mplane.Router(monitor), Interval: interval, Network: w.network.Fingerprint(), Measurements: part,
			}, key)
			if err != nil {
				return err
			}
			if w.random.Float64() < reportLoss {
				continue
			}
			if _, err := w.station.Receive(int64(interval)*second, data); err != nil {
				return err
			}
		}
	}
	return nil
}

// judge asks the station about every flow's path: first what is usual, then
// whether the path keeps its target and, if not, what explains that.
func (w *world) judge(interval uint64) (finding, error) {
	found := finding{interval: interval}
	named := map[mplane.SegmentID]suspect{}
	for _, f := range w.flows {
		v, err := w.station.Localise(f.path, 0, interval, mplane.Target{Mean: f.target})
		if err != nil {
			return found, err
		}
		if interval < learning {
			f.sum += v.Path.Mean
			if interval == learning-1 {
				f.target = f.sum/learning + above
			}
			continue
		}
		found.paths++
		switch {
		case len(v.Path.Missing) > 0:
			found.unknown++
		case v.Broken:
			found.missed++
			for _, s := range v.Suspects {
				n := named[s.Segment]
				named[s.Segment] = suspect{segment: s.Segment, excess: s.Excess, sure: s.Sure, paths: n.paths + 1}
			}
		}
	}
	found.suspects = ranked(named)
	found.exact = w.truth(interval)
	return found, nil
}

// truth returns the segments through the slow router that packets passed.
func (w *world) truth(interval uint64) []suspect {
	slow := map[mplane.SegmentID]suspect{}
	if interval >= w.slowFrom {
		for _, f := range w.flows {
			w.slowed(f, slow)
		}
	}
	return ranked(slow)
}

// slowed finds the segments of a flow that contain the slow router.
func (w *world) slowed(f *flow, slow map[mplane.SegmentID]suspect) {
	var on *meter // the segment that the packet is on
	for i := range f.hops {
		h := &f.hops[i]
		if h.inBegin != nil {
			on = h.inBegin
		}
		if h.router == w.slow && h.queue != nil && on != nil {
			slow[on.id] = suspect{segment: on.id, excess: float64(slowBy), paths: slow[on.id].paths + 1}
		}
		if h.outBegin != nil {
			on = h.outBegin
		}
	}
}

// ranked returns suspects by the number of paths.
func ranked(all map[mplane.SegmentID]suspect) []suspect {
	var list []suspect
	for _, s := range all {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b suspect) int {
		return cmp.Or(cmp.Compare(b.paths, a.paths), cmp.Compare(fmt.Sprint(a.segment), fmt.Sprint(b.segment)))
	})
	return list
}
