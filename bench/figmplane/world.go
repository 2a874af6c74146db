package figmplane

import (
	"context"
	"math/rand/v2"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/mplane"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/queue/trace"
)

const second = int64(1e9)

// small is the synopsis at both ends of every segment: 5 KiB on the wire.
var small = lda.Config{
	Banks:   [4]lda.Bank{{Rows: 256, Shift: 0}, {Rows: 256, Shift: 3}},
	SumBits: 40, DigestBits: 16,
}

// A stretch is one segment that is simulated packet by packet: a queue inside
// a router, or a queue and a wire, with an LDA at each end.
type stretch struct {
	id       mplane.SegmentID
	source   queue.Source
	queue    *queue.Link
	wire     float64 // ns without queue
	loss     *queue.Loss
	up, down *lda.Aggregator
	started  int64
	means    []float64        // of all intervals so far except slowed ones, exact
	losses   []float64        // shares
	latest   estimate.Moments // of the latest interval
	lost     float64          // fraction in the latest interval
	found    mplane.Measurement
	refused  bool
}

// newStretch draws a segment: a wire of 50 µs to 5 ms, or a queue of 20 to 70 % load; Poisson arrivals or
// bursts on all scales of time; up to 5 % loss, in bursts.
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
	if id.Via < 0 {
		s.wire = 5e4 + 4.95e6*r.Float64()*r.Float64()
	}
	return s
}

// A course is a router's clock in an interval: how far it is ahead at the beginning, and how fast it gains.
type course struct{ offset, drift float64 } // ns, and ns a second

// at returns what the clock shows some ns after the beginning of an interval.
func (c course) at(start int64, after float64) int64 {
	return start + int64(after+c.offset+c.drift*after/float64(second))
}

// measure passes packets in one interval, each slower than usual by slow ns, and compares the two ends.
func (s *stretch) measure(r *rand.Rand, start int64, packets int, slow float64, from, to course) {
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
		id, after := hashing.Packet(r.Uint64()), float64(p.Time-s.started)
		s.up.Update(id, from.at(start, after))
		if fate != queue.Passed || s.loss.Drop() {
			continue
		}
		delay := float64(egress-p.Time) + s.wire + slow
		s.down.Update(id, to.at(start, after+delay))
		s.latest.Add(delay)
	}
	s.lost = 1 - float64(s.latest.N())/float64(packets)
	if slow == 0 {
		s.means, s.losses = append(s.means, s.latest.Mean()), append(s.losses, s.lost)
	}
	result, err := lda.Estimate(s.up, s.down)
	s.refused = err != nil
	s.found = mplane.Measure(s.id, &result)
}

// usualMean returns the median so far.
func (s *stretch) usualMean() float64 { return perflow.Quantile(s.means, 0.5) }

// A wire is the two directions between two monitors of the path, which follow each other's clocks.
type wire struct {
	there, back *stretch
	tracker     *clock.Tracker
}

// straight is what monitors know about their clocks. A difference in length between the two directions does not
// matter, because it is the same in every interval.
var straight = func() clock.Config {
	c := clock.DefaultConfig
	c.Asymmetry = 0
	c.SumBits = int(small.SumBits)
	return c
}()

// follow reads the clocks from what both directions measured; middle is by the
// clock where the direction there begins.
func (w *wire) follow(middle int64) {
	there := experiment.Try(lda.AppendClockSamples(nil, w.there.up, w.there.down, middle, false))
	back := experiment.Try(lda.AppendClockSamples(nil, w.back.up, w.back.down, middle, true))
	if _, err := w.tracker.Add(there, back); err != nil {
		return
	}
	if reading, err := w.tracker.At(middle); err == nil {
		w.there.found.SetClock(reading)
		w.back.found.SetClock(reading.Reverse())
	}
}

// A world is a path of a network, each segment measured packet by packet there
// and back, and the clocks of its routers.
type world struct {
	plan    *mplane.Plan
	station *mplane.Station
	random  *rand.Rand
	path    []mplane.Router
	ids     []mplane.SegmentID // that are simulated, in order
	watched map[mplane.SegmentID]*stretch
	wires   []wire
	clocks  []course // by router
}

// newWorld draws a map, upgrades a share of its routers, and picks a path.
func newWorld(run *experiment.Run, seed uint64, share float64) *world {
	r := rand.New(rand.NewPCG(seed, run.SeedOf("faults")))
	n, path := makeMap(r, 14, 2), []mplane.Router(nil)
	for path = longPath(r, n); path == nil; path = longPath(r, n) {
		n = makeMap(r, 14, 2)
	}
	count := int(share*float64(n.Routers()) + 0.5)
	upgrades := experiment.Try(n.PlanUpgrades(context.Background(), mplane.UpgradeDemand{Count: count}))
	var upgraded, servers []mplane.Router
	for _, step := range upgrades.Steps {
		upgraded = append(upgraded, step.Router)
	}
	for router := range mplane.Router(n.Routers()) {
		servers = append(servers, router)
	}
	w := &world{plan: experiment.Try(n.Plan(upgraded, servers)), random: r, path: path, watched: map[mplane.SegmentID]*stretch{}}
	w.station = experiment.Try(mplane.NewStation(mplane.StationConfig{Plan: w.plan, Length: second}))
	for _, id := range experiment.Try(w.plan.Along(w.path)) {
		w.watch(r, id)
		if back, ok := w.plan.Opposite(id); ok {
			w.watch(r, back)
			w.wires = append(w.wires, wire{there: w.watched[id], back: w.watched[back], tracker: experiment.Try(clock.New(straight))})
		}
	}
	for range n.Routers() {
		w.clocks = append(w.clocks, course{(r.Float64() - 0.5) * 2e9, (r.Float64() - 0.5) * 1e5})
	}
	return w
}

// longPath draws a path of at least three links, nil if it finds none.
func longPath(r *rand.Rand, n *mplane.Network) []mplane.Router {
	for range 100 {
		paths := n.Paths(mplane.Router(r.IntN(n.Routers())), mplane.Router(r.IntN(n.Routers())))
		if len(paths) > 0 && len(paths[0]) > 3 {
			return paths[0]
		}
	}
	return nil
}

// watch simulates a segment.
func (w *world) watch(r *rand.Rand, id mplane.SegmentID) {
	w.ids = append(w.ids, id)
	w.watched[id] = newStretch(r, id)
}

const (
	simulated = 1e7 // ns, roughly the middle of an interval's packets: their links are busy for 20 ms
	wander    = 10  // ns a second, how much a clock's rate changes from one interval to the next
)

// report measures everything in one interval and sends it to the station, except for lost reports.
func (w *world) report(interval uint64, packets int, fault mplane.SegmentID, slow, lostReports float64) {
	for r := range w.clocks {
		w.clocks[r].offset += w.clocks[r].drift
		w.clocks[r].drift += wander * w.random.NormFloat64()
	}
	start := int64(interval) * second
	for _, id := range w.ids {
		s, extra := w.watched[id], 0.0
		if id == fault {
			extra = slow
		}
		from, to := w.ends(id)
		s.measure(w.random, start, packets, extra, w.clocks[from], w.clocks[to])
	}
	for i := range w.wires {
		w.wires[i].follow(w.clocks[w.wires[i].there.id.From].at(start, simulated))
	}
	for router := range mplane.Router(len(w.clocks)) {
		r := mplane.Report{Monitor: router, Interval: interval}
		for _, id := range w.ids {
			if s := w.watched[id]; !s.refused && (id.Via == router || id.Via < 0 && id.From == router) {
				r.Measurements = append(r.Measurements, s.found)
			}
		}
		if w.random.Float64() >= lostReports {
			for _, data := range experiment.Try(w.plan.Datagrams(r, mplane.Key{})) {
				experiment.Check(w.station.Receive(start, data))
			}
		}
	}
}

// ends returns the routers whose clocks measure a segment.
func (w *world) ends(id mplane.SegmentID) (from, to mplane.Router) {
	if id.Via >= 0 {
		return id.Via, id.Via
	}
	return id.From, id.To
}
