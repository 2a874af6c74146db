package figmplane

import (
	"math/rand/v2"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/mplane"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/queue/trace"
)

const second = int64(1e9)

// small is the synopsis at both ends of every segment: 5 KiB on the wire.
var small = lda.Config{
	Banks:   [lda.MaxBanks]lda.Bank{{Rows: 256, Shift: 0}, {Rows: 256, Shift: 3}},
	SumBits: 40, DigestBits: 16,
}

// A stretch is one segment of the path that is watched: packets through a
// queue, inside a router, or along a wire, with an LDA at each end.
type stretch struct {
	id       mplane.SegmentID
	source   queue.Source
	queue    *queue.Link
	wire     float64 // ns without queue
	loss     *queue.Loss
	up, down *lda.Aggregator
	started  int64
	truth    estimate.Moments // of all intervals so far
	latest   estimate.Moments // of the last
	lost     float64          // share of the last
}

// newStretch draws a segment: a wire of 50 µs to 5 ms, or a queue of 20 to 70 %
// load; Poisson arrivals or bursts on all scales of time; up to 5 % loss, in
// bursts.
func newStretch(r *rand.Rand, id mplane.SegmentID) *stretch {
	s := &stretch{
		id:   id,
		loss: experiment.Try(queue.NewLoss(queue.LossConfig{Probability: 0.05 * r.Float64() * r.Float64(), Burst: 5}, r.Uint64())),
		up:   experiment.Try(lda.New(small)), down: experiment.Try(lda.New(small)),
	}
	load := trace.Load{Rate: 1e9, Utilisation: 0.2 + 0.5*r.Float64()}
	if r.IntN(2) == 0 {
		s.source = experiment.Try(trace.NewPoisson(trace.PoissonConfig{Load: load, Sizes: trace.IMIX, Flows: 100, Seed: r.Uint64()}))
	} else {
		s.source = experiment.Try(trace.NewOnOff(trace.OnOffConfig{Load: load, Sizes: trace.IMIX, Senders: 200, Peak: 1e8, On: 1e5,
			OnShape: 1.5, OffShape: 1.5, Seed: r.Uint64()}))
	}
	s.queue = experiment.Try(queue.NewLink(queue.LinkConfig{Rate: load.Rate}))
	if !id.Internal() {
		s.wire = 5e4 + 4.95e6*r.Float64()*r.Float64()
	}
	return s
}

// measure lets packets through in one interval, each later than usual by slow
// ns, and compares the two ends, whose clocks are so far ahead.
func (s *stretch) measure(r *rand.Rand, interval uint64, packets int, slow, ahead, aheadThere float64) (mplane.Measurement, bool) {
	s.up.Reset()
	s.down.Reset()
	s.latest = estimate.Moments{}
	var p queue.Packet
	for k := range packets {
		s.source.Next(&p)
		egress, fate := s.queue.Send(p.Time, int(p.Bytes))
		if k == 0 {
			s.started = p.Time
		}
		at := int64(interval)*second + p.Time - s.started
		id := hashing.Packet(r.Uint64())
		s.up.Update(id, at+int64(ahead))
		if fate != queue.Passed || s.loss.Drop() {
			continue
		}
		delay := float64(egress-p.Time) + s.wire + slow
		s.down.Update(id, at+int64(delay)+int64(aheadThere))
		s.latest.Add(delay)
		if slow == 0 {
			s.truth.Add(delay)
		}
	}
	s.lost = 1 - float64(s.latest.N())/float64(packets)
	result, err := lda.Estimate(s.up, s.down)
	if err != nil {
		return mplane.Measurement{}, false
	}
	return mplane.Measurement{
		Segment: s.id, Sent: result.Sent, Lost: min(result.Lost, result.Sent), Delay: result.Delay, Error: result.MeanError,
	}, true
}

// A world is a network, a path of it that is measured packet by packet, and
// the clocks of its routers. What other segments report, for the clocks' sake,
// is drawn.
type world struct {
	plan    *mplane.Plan
	station *mplane.Station
	random  *rand.Rand
	path    []mplane.Router
	watched map[mplane.SegmentID]*stretch
	usual   map[mplane.SegmentID]float64 // of others

	offset, drift []float64 // ns, and ns a second, by router
}

// newWorld draws a map, upgrades a share of its routers, and picks a path.
func newWorld(run *experiment.Run, seed uint64, share float64) *world {
	r := rand.New(rand.NewPCG(seed, run.SeedOf("faults")))
	n := makeMap(r, 14, 2)
	count := int(share*float64(n.Routers()) + 0.5)
	upgrades := experiment.Try(n.PlanUpgrades(run.Context(), mplane.UpgradeDemand{Count: count}))
	var d mplane.Deployment
	for _, step := range upgrades.Steps {
		d.Upgraded = append(d.Upgraded, step.Router)
	}
	for router := range mplane.Router(n.Routers()) {
		d.Servers = append(d.Servers, router)
	}
	w := &world{plan: experiment.Try(n.Plan(d)), random: r, watched: map[mplane.SegmentID]*stretch{}, usual: map[mplane.SegmentID]float64{}}
	w.station = experiment.Try(mplane.NewStation(mplane.StationConfig{Plan: w.plan, Length: second}))
	for len(w.path) < 4 { // a path of at least three links
		paths := n.Paths(mplane.Router(r.IntN(n.Routers())), mplane.Router(r.IntN(n.Routers())))
		if len(paths) > 0 {
			w.path = paths[0]
		}
	}
	for _, id := range experiment.Try(w.plan.Along(w.path, 0)) {
		w.watched[id] = newStretch(r, id)
	}
	for range n.Routers() {
		w.offset = append(w.offset, (r.Float64()-0.5)*2e9)
		w.drift = append(w.drift, (r.Float64()-0.5)*1e5)
	}
	return w
}

// segments are those of the path, in order.
func (w *world) segments() []mplane.SegmentID {
	return experiment.Try(w.plan.Along(w.path, 0))
}

// report measures everything in one interval and sends it to the station, but
// for reports that are lost.
func (w *world) report(interval uint64, packets int, fault mplane.SegmentID, slow, lostReports float64) {
	for router := range mplane.Router(w.plan.Network().Routers()) {
		var all []mplane.Measurement
		for _, probed := range w.plan.MSet(router) {
			if _, ok := w.watched[probed.ID]; !ok {
				all = append(all, w.draw(probed, interval))
			}
		}
		for _, id := range w.segments() {
			if id.Via == router || !id.Internal() && id.From == router {
				extra := 0.0
				if id == fault {
					extra = slow
				}
				ahead, there := w.ahead(id, id.From, interval), w.ahead(id, id.To, interval)
				if m, ok := w.watched[id].measure(w.random, interval, packets, extra, ahead, there); ok {
					all = append(all, m)
				}
			}
		}
		w.send(router, interval, all, lostReports)
	}
}

// ahead is how far a segment's clock at one of its ends is ahead.
func (w *world) ahead(id mplane.SegmentID, end mplane.Router, interval uint64) float64 {
	if id.Internal() {
		end = id.Via
	}
	return w.offset[end] + w.drift[end]*float64(interval)
}

// draw is what is reported of a segment off the path: 20 µs of queueing at its
// beginning come and go.
func (w *world) draw(s mplane.Segment, interval uint64) mplane.Measurement {
	if w.usual[s.ID] == 0 {
		w.usual[s.ID] = float64(len(s.Hops)-1) * (5e4 + 4.95e6*w.random.Float64()*w.random.Float64())
	}
	usual := w.usual[s.ID]
	mean := usual + 2e4*w.random.ExpFloat64() + w.ahead(s.ID, s.ID.To, interval) - w.ahead(s.ID, s.ID.From, interval)
	return mplane.Measurement{
		Segment: s.ID, Sent: 1000, Delay: estimate.Delay{Mean: mean, StdDev: 3e4, N: 1000}, Error: 1e3,
	}
}

func (w *world) send(router mplane.Router, interval uint64, all []mplane.Measurement, lost float64) {
	for len(all) > 0 {
		part := all[:min(len(all), mplane.MaxMeasurements)]
		all = all[len(part):]
		r := mplane.Report{Monitor: router, Interval: interval, Network: w.plan.Network().Fingerprint(), Measurements: part}
		data := experiment.Try(mplane.AppendReport(nil, r, nil))
		if w.random.Float64() >= lost {
			experiment.Try(w.station.Receive(int64(interval)*second, data))
		}
	}
}
