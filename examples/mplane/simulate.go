package main

import (
	"cmp"
	"fmt"
	"maps"
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
}

// Before orders events by time.
func (e event) Before(f event) bool { return e.time < f.time || e.time == f.time && e.seq < f.seq }

// A finding is what the station says about an interval, and the truth.
type finding struct {
	Interval uint64    `json:"interval"`
	Paths    int       `json:"paths"`       // with a target
	Missed   int       `json:"over_target"` // their target
	Unknown  int       `json:"not_known"`   // cannot be combined: a report is missing
	Named    []suspect `json:"named"`
	Exact    []suspect `json:"exact"` // segments with the slow router
}

// A suspect is a segment, with the number of paths whose verdicts name it.
type suspect struct {
	Name   string  `json:"name"`
	Excess float64 `json:"excess_ns"`
	Sure   float64 `json:"sure,omitempty"`
	Paths  int     `json:"paths"`
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
		m.up.Reset()
		m.down.Reset()
	}
	return found, err
}

// arrive moves a packet through a router.
func (w *world) arrive(e event) {
	h := &e.flow.hops[e.hop]
	h.passed(h.inEnd, h.inBegin, e.id, w.clock(h.router, e.time))
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
	h.passed(h.outEnd, h.outBegin, e.id, w.clock(h.router, egress))
	e.time, e.hop = egress+h.wire, e.hop+1
	w.events.Push(e)
}

// passed counts a packet where one segment ends and another begins, if they are
// measured.
func (h *hop) passed(end, begin *meter, id hashing.Packet, shown int64) {
	if end != nil {
		end.down.Update(id, shown)
	}
	if begin != nil {
		begin.up.Update(id, shown)
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
	found := finding{Interval: interval, Named: []suspect{}, Exact: []suspect{}}
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
		found.Paths++
		switch {
		case len(v.Path.Missing) > 0:
			found.Unknown++
		case v.Broken:
			found.Missed++
			for _, s := range v.Suspects {
				n := named[s.Segment]
				named[s.Segment] = suspect{w.name(s.Segment), s.Excess, s.Sure, n.Paths + 1}
			}
		}
	}
	found.Named = ranked(named)
	found.Exact = w.truth(interval)
	return found, nil
}

// truth returns the segments through the slow router that packets passed.
func (w *world) truth(interval uint64) []suspect {
	slow := map[mplane.SegmentID]suspect{}
	for _, f := range w.flows {
		var on *meter // the segment that a packet is on
		for i := range f.hops {
			h := &f.hops[i]
			if h.inBegin != nil {
				on = h.inBegin
			}
			if interval >= w.slowFrom && h.router == w.slow && h.queue != nil && on != nil {
				slow[on.id] = suspect{Name: w.name(on.id), Excess: float64(slowBy), Paths: slow[on.id].Paths + 1}
			}
			if h.outBegin != nil {
				on = h.outBegin
			}
		}
	}
	return ranked(slow)
}

// ranked returns suspects by the number of paths.
func ranked(all map[mplane.SegmentID]suspect) []suspect {
	return slices.SortedFunc(maps.Values(all), func(a, b suspect) int {
		return cmp.Or(cmp.Compare(b.Paths, a.Paths), cmp.Compare(a.Name, b.Name))
	})
}

// name formats a segment: a router with where its packets come from and go to,
// or a way between two routers.
func (w *world) name(id mplane.SegmentID) string {
	from, to := w.network.Name(id.From), w.network.Name(id.To)
	switch {
	case id.Internal():
		return fmt.Sprintf("%s (%s to %s)", w.network.Name(id.Via), from, to)
	case id.Path != 0:
		return fmt.Sprintf("%s … %s", from, to)
	}
	return fmt.Sprintf("%s – %s", from, to)
}
