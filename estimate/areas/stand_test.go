package areas

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/internal/truth"
)

// Of a dense group, two of 2,048 cells seem to have settled, because levels are alike by chance: they stand for no others.
// A sparse one tells.
func TestHardlyAnyCellStandsForNoOthers(t *testing.T) {
	const fast, slow = 2, 3
	a := New([]int{2048, 1024}, 64, 16)
	a.ends = append(a.ends[:0], 0, areaLength)
	w := window{areas: a, to: 1, scatter: slow * slow, groups: []groupWindow{
		{area: fast * 93829, received: 93829, exact: 84, cells: 2, other: 93745, by: 1116,
			stands: stands{all: share{n: 84}}, way: make([]float64, 2)},
		{area: slow * 5797, received: 5797, exact: 5797, cells: 1635, way: make([]float64, 2)},
	}}
	if got := w.merge(1e5); got.Mean != slow || w.groups[0].area/w.groups[0].received != fast {
		t.Errorf("the mean is %v, want %v", got.Mean, slow)
	}
}

// Where packets are on their way when cells begin, those of a dense group never settle. Packets that were alone stand for fast and slow
// ones all the same: here they take 10 cuts, and of 16 one is in the group that settles. The control weighs all alike.
func TestAloneStandForAllUnderWay(t *testing.T) {
	const dense, sparse, before, from, to, cuts, limit = 2048, 2048, 60, 60, 100, 130, 4
	packets := areaTraffic(rand.New(rand.NewPCG(5, 12)), dense, before+cuts, 1.2, 10, 0, 0)
	fast := func(delay int64) (share float64) {
		if delay < 5*areaLength {
			share = 1
		}
		return share
	}
	came, want := 0.0, 0.0
	for i := range packets {
		p := &packets[i]
		if p.Sent, p.Received = p.Sent-before*areaLength, p.Received-before*areaLength; i%16 == 0 {
			p.Cell = dense + int(p.Flow%sparse)
		}
		if p.Received >= from*areaLength && p.Received < to*areaLength {
			came++
			want += fast(p.Received - p.Sent)
		}
	}
	want /= came
	packets = slices.DeleteFunc(packets, func(p truth.Packet) bool { return p.Received < 0 })
	a := New([]int{dense, sparse}, 64, 32)
	a.Begin(0, true)
	for _, pairs := range pairsOf(dense+sparse, packets, cuts) {
		pass(a, pairs)
	}
	var weights, squares, weighed, alike, n float64
	_, err := a.Transit(from, to, func(seen []Alone) {
		for _, x := range seen {
			weights, squares, n = weights+x.Weight, squares+sq(x.Weight), n+1
			weighed, alike = weighed+fast(x.Delay)*x.Weight, alike+fast(x.Delay)
		}
	})
	weighed, alike = weighed/weights, alike/n
	error := math.Sqrt(want*(1-want)*squares) / weights
	if err != nil || math.Abs(weighed-want) > limit*error || math.Abs(alike-want) < limit*error {
		t.Errorf("%.3f are fast; by %v alone %.3f ± %.3f, without weights %.3f, %v", want, n, weighed, error, alike, err)
	}
}
