package main

import (
	"errors"
	"math/rand/v2"

	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/internal/heap"
	"github.com/hoplag/hoplag/internal/programs"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/mplane"
	"github.com/hoplag/hoplag/queue"
)

const (
	second     = int64(1e9)
	linkRate   = int64(300e6) // bits a second
	flowRate   = 1500.0       // packets a second
	simulated  = 0.1          // of each second
	slowBy     = int64(300e3) // ns
	reportLoss = 0.01
	perWeight  = 200e3 // ns along a link of weight 1
	learning   = 10    // number of intervals from which targets are set
	above      = 200e3 // ns that a target is above the mean of those
)

// synopsis is what each end of each segment keeps: 5 KiB on the wire.
var synopsis = lda.Config{
	Banks:   [lda.MaxBanks]lda.Bank{{Rows: 256, Shift: 0}, {Rows: 256, Shift: 3}},
	SumBits: 40, DigestBits: 16,
}

// key is shared by the monitors and the station.
var key = mplane.NewKey("an example of a key")

// A meter is both ends of a segment, with an LDA each.
type meter struct {
	id       mplane.SegmentID
	up, down *lda.Aggregator
	reading  *clock.Reading // of the clock at the end by the one at the beginning, or nil
}

// A hop is a router on a flow's path, with the meters whose ends a packet
// passes as it comes in and goes out, if any.
type hop struct {
	router                           mplane.Router
	inEnd, inBegin, outEnd, outBegin *meter
	queue                            *queue.Link // towards the next router
	wire                             int64       // ns to it
}

// A flow sends packets along one shortest path.
type flow struct {
	path   []mplane.Router
	hops   []hop
	target float64 // ns; 0 until it is set
	sum    float64 // of the means until then
}

// A world is the network with its queues, clocks, monitors and station.
type world struct {
	options  options
	network  *mplane.Network
	upgrades mplane.UpgradePlan
	plan     *mplane.Plan
	station  *mplane.Station
	random   *rand.Rand
	flows    []*flow
	meters   map[mplane.SegmentID]*meter
	ids      []mplane.SegmentID // of the meters, in the order of their creation
	pairs    []pair
	queues   map[[2]mplane.Router]*queue.Link
	slow     mplane.Router
	slowFrom uint64    // interval
	ahead    []float64 // ns by which a router's clock is ahead
	drift    []float64 // ns a second
	events   heap.Heap[event]
	packets  uint64
}

// newWorld builds a world whose flows cross the network at random.
func newWorld(n *mplane.Network, upgrades mplane.UpgradePlan, o options) (*world, error) {
	w := &world{
		options: o, network: n, upgrades: upgrades, random: rand.New(rand.NewPCG(o.seed, 0)), slowFrom: uint64(o.intervals / 2),
		meters: map[mplane.SegmentID]*meter{}, queues: map[[2]mplane.Router]*queue.Link{},
	}
	var d mplane.Deployment
	for _, step := range upgrades.Steps {
		d.Upgraded = append(d.Upgraded, step.Router)
	}
	for r := range mplane.Router(n.Routers()) {
		d.Servers = append(d.Servers, r)
		w.ahead = append(w.ahead, (w.random.Float64()-0.5)*1e8)
		w.drift = append(w.drift, (w.random.Float64()-0.5)*4e4)
	}
	var err error
	if w.plan, err = n.Plan(d); err != nil {
		return nil, err
	}
	if w.station, err = mplane.NewStation(mplane.StationConfig{Plan: w.plan, Key: key, Length: second}); err != nil {
		return nil, err
	}
	for range 100 * o.flows { // pairs may be neighbours, or the same
		if len(w.flows) < o.flows {
			if err := w.addFlow(); err != nil {
				return nil, err
			}
		}
	}
	if len(w.flows) == 0 {
		return nil, errors.New("the map has no path over two links")
	}
	if err := w.pair(); err != nil {
		return nil, err
	}
	return w, w.chooseSlow()
}

// addFlow adds a flow between two routers drawn at random, there and back, if
// they are at least two links apart.
func (w *world) addFlow() error {
	n := w.network.Routers()
	from, to := mplane.Router(w.random.IntN(n)), mplane.Router(w.random.IntN(n))
	there, back := w.network.Paths(from, to), w.network.Paths(to, from)
	if len(there) == 0 || len(there[0]) < 3 || len(back) == 0 {
		return nil
	}
	for _, path := range [][]mplane.Router{there[0], back[0]} {
		f := &flow{path: path}
		for i, r := range path {
			h := hop{router: r}
			if i+1 < len(path) {
				if err := w.connect(&h, path[i+1]); err != nil {
					return err
				}
			}
			f.hops = append(f.hops, h)
		}
		if err := w.measure(f); err != nil {
			return err
		}
		w.flows = append(w.flows, f)
	}
	return nil
}

// connect finds the queue and the wire from a hop to the next router.
func (w *world) connect(h *hop, next mplane.Router) error {
	link := [2]mplane.Router{h.router, next}
	if w.queues[link] == nil {
		q, err := queue.NewLink(queue.LinkConfig{Rate: linkRate, Queue: queue.QueueConfig{Packets: 500}})
		if err != nil {
			return err
		}
		w.queues[link] = q
	}
	h.queue = w.queues[link]
	for _, l := range w.network.Links(h.router) {
		if l.To == next {
			h.wire = int64(l.Weight * perWeight)
		}
	}
	return nil
}

// measure adds meters to the segments of a flow's path.
func (w *world) measure(f *flow) error {
	ids, err := w.plan.Along(f.path, 0)
	if err != nil {
		return err
	}
	for i := range f.hops {
		h := &f.hops[i]
		if i == 0 {
			h.outBegin, err = w.meter(ids[0])
		} else if last := i == len(f.hops)-1; last || w.plan.Upgraded(h.router) {
			h.inEnd, err = w.meter(ids[0])
			if ids = ids[1:]; !last && err == nil {
				h.inBegin, err = w.meter(ids[0])
				h.outEnd = h.inBegin
				h.outBegin, _ = w.meter(ids[1])
				ids = ids[1:]
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// meter returns the meter of a segment, and makes it first if need be.
func (w *world) meter(id mplane.SegmentID) (*meter, error) {
	if m := w.meters[id]; m != nil {
		return m, nil
	}
	up, err := lda.New(synopsis)
	if err != nil {
		return nil, err
	}
	down, err := lda.New(synopsis)
	if err != nil {
		return nil, err
	}
	m := &meter{id: id, up: up, down: down}
	w.meters[id] = m
	w.ids = append(w.ids, id)
	return m, nil
}

// chooseSlow chooses the router that becomes slow: the named one, or the one
// inside the most flows' paths.
func (w *world) chooseSlow() error {
	if w.options.slow != "" {
		r, ok := w.network.Router(w.options.slow)
		if !ok {
			return programs.Usage("-slow is %q, want a router of the map, such as %q", w.options.slow, w.network.Name(0))
		}
		w.slow = r
		return nil
	}
	inside := make([]int, w.network.Routers())
	for _, f := range w.flows {
		for _, r := range f.path[1 : len(f.path)-1] {
			if inside[r]++; inside[r] > inside[w.slow] {
				w.slow = r
			}
		}
	}
	return nil
}
