package main

import (
	"cmp"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/mplane"
)

const (
	second     = int64(1e9)
	packets    = 150   // of a flow in an interval
	waits      = 30e3  // ns that a packet waits at a router, in the mean
	slowBy     = 300e3 // ns more at the slow one
	perWeight  = 200e3 // ns along a link of weight 1
	reportLoss = 0.01
	intervals  = 24
	learning   = 10    // number of intervals from which targets are set
	above      = 200e3 // ns that a target is above the mean of those
)

// synopsis is what each end of each segment keeps: 5 KiB on the wire.
var synopsis = lda.Config{
	Banks:   [4]lda.Bank{{Rows: 256, Shift: 0}, {Rows: 256, Shift: 3}},
	SumBits: 40, DigestBits: 16,
}

// key is shared by the monitors and the station.
var key = mplane.NewKey("an example of a key")

// A meter is both ends of a segment, with an LDA each.
type meter struct {
	id       mplane.SegmentID
	up, down *lda.Aggregator
}

// A stretch is a segment on a flow's path. A packet reaches the routers of the path at
// the times 0, 2, 4, …, and leaves them at 1, 3, 5, …
type stretch struct {
	*meter
	from, to int
}

// A flow sends packets along one shortest path.
type flow struct {
	path     []mplane.Router
	wires    []float64 // ns from each router to the next one
	segments []stretch
	usual    estimate.Moments // means of the path, ns
	target   float64          // above those
}

// A world is the network with its monitors and the station.
type world struct {
	network *mplane.Network
	plan    *mplane.Plan
	station *mplane.Station
	random  *rand.Rand
	flows   []*flow
	meters  map[mplane.SegmentID]*meter
	ids     []mplane.SegmentID // of the meters, in the order of their creation
	slow    mplane.Router      // the one inside the most flows' paths
	times   []int64            // of a packet
}

// newWorld builds a world whose flows cross the network at random, there and back.
func newWorld(n *mplane.Network, upgrades mplane.UpgradePlan, flows int) (*world, error) {
	w := &world{network: n, random: rand.New(rand.NewPCG(1, 0)), meters: map[mplane.SegmentID]*meter{}}
	var upgraded, servers []mplane.Router
	for _, step := range upgrades.Steps {
		upgraded = append(upgraded, step.Router)
	}
	for r := range mplane.Router(n.Routers()) {
		servers = append(servers, r)
	}
	var err error
	if w.plan, err = n.Plan(upgraded, servers); err != nil {
		return nil, err
	}
	if w.station, err = mplane.NewStation(mplane.StationConfig{Plan: w.plan, Key: key, Length: second}); err != nil {
		return nil, err
	}
	inside := make([]int, n.Routers())
	if n.Routers() == 0 {
		return nil, errors.New("the map has no links")
	}
	for try := 0; try < 100*flows && len(w.flows) < flows; try++ { // pairs may be neighbours, or the same
		from, to := mplane.Router(w.random.IntN(n.Routers())), mplane.Router(w.random.IntN(n.Routers()))
		there, back := n.Paths(from, to), n.Paths(to, from)
		if len(there) == 0 || len(there[0]) < 3 || len(back) == 0 {
			continue
		}
		for _, path := range [][]mplane.Router{there[0], back[0]} {
			f, err := w.flow(path)
			if err != nil {
				return nil, err
			}
			w.flows = append(w.flows, f)
			for _, r := range path[1 : len(path)-1] {
				if inside[r]++; inside[r] > inside[w.slow] {
					w.slow = r
				}
			}
		}
	}
	if len(w.flows) == 0 {
		return nil, errors.New("the map has no path over two links")
	}
	return w, nil
}

// flow returns a flow along a path, with meters for the segments of the path.
func (w *world) flow(path []mplane.Router) (*flow, error) {
	ids, err := w.plan.Along(path)
	if err != nil {
		return nil, err
	}
	f := &flow{path: path}
	for i, next := range path[1:] {
		f.wires = append(f.wires, w.network.Weight(path[i], next)*perWeight)
	}
	f.wires = append(f.wires, 0)
	at := 1
	for _, id := range ids {
		m, err := w.meter(id)
		if err != nil {
			return nil, err
		}
		from := at
		if at++; id.Via < 0 {
			at = 2 * slices.Index(path, id.To)
		}
		f.segments = append(f.segments, stretch{m, from, at})
	}
	return f, nil
}

// meter returns the meter of a segment, and makes it if there is none.
func (w *world) meter(id mplane.SegmentID) (*meter, error) {
	if m := w.meters[id]; m != nil {
		return m, nil
	}
	up, err := lda.New(synopsis)
	down, other := lda.New(synopsis)
	w.meters[id] = &meter{id, up, down}
	w.ids = append(w.ids, id)
	return w.meters[id], errors.Join(err, other)
}

// pass sends a packet through the routers of its flow's path.
func (w *world) pass(f *flow, t float64, slow bool) {
	id := hashing.Packet(w.random.Uint64())
	w.times = w.times[:0]
	for i, r := range f.path {
		w.times = append(w.times, int64(t))
		if t += w.random.ExpFloat64() * waits; slow && r == w.slow {
			t += slowBy
		}
		w.times = append(w.times, int64(t))
		t += f.wires[i]
	}
	for _, s := range f.segments {
		s.up.Update(id, w.times[s.from])
		s.down.Update(id, w.times[s.to])
	}
}

// report sends what every monitor measured, except for lost reports.
func (w *world) report(interval uint64) error {
	measured := make([][]mplane.Measurement, w.network.Routers())
	for _, id := range w.ids {
		m := w.meters[id]
		r, err := lda.Estimate(m.up, m.down)
		m.up.Reset()
		m.down.Reset()
		if err != nil {
			continue // nothing passed, or too much was lost: the segment is missing
		}
		monitor := id.From
		if id.Via >= 0 {
			monitor = id.Via
		}
		measured[monitor] = append(measured[monitor], mplane.Measure(id, &r))
	}
	for monitor, all := range measured {
		datagrams, err := w.plan.Datagrams(mplane.Report{Monitor: mplane.Router(monitor), Interval: interval, Measurements: all}, key)
		if err != nil {
			return err
		}
		for _, data := range datagrams {
			if w.random.Float64() < reportLoss {
				continue
			}
			if err := w.station.Receive(int64(interval)*second, data); err != nil {
				return err
			}
		}
	}
	return nil
}

// truth returns the segments in which packets wait at the slow router.
func (w *world) truth() []suspect {
	slow := map[mplane.SegmentID]suspect{}
	for _, f := range w.flows {
		at := 2 * slices.Index(f.path, w.slow)
		for _, s := range f.segments {
			if at >= 0 && s.from <= at && s.to > at {
				slow[s.id] = suspect{w.name(s.id), slowBy, false, slow[s.id].Paths + 1}
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

// name formats a segment: a router with where its packets come from and go to, or a way between two routers.
func (w *world) name(id mplane.SegmentID) string {
	from, to := w.network.Name(id.From), w.network.Name(id.To)
	if id.Via >= 0 {
		return w.network.Name(id.Via) + " (" + from + " to " + to + ")"
	}
	return from + " … " + to
}
