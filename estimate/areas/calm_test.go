package areas

import (
	"math"
	"math/rand/v2"
	"testing"
)

// What passes calm cells is taken apart from spans. Where all cells are slow it is not, and the results are the same,
// also with losses, copies, and packets on their way at the beginning. Where no cell is slow, some differ.
func TestCalmIntervals(t *testing.T) {
	const cells, cuts, window = 24, 40, 8
	begun := New([]int{1}, 64, 32)
	begun.Begin(0, true)
	if begun.Cut(0, CellPair{1, 1<<32 | 1, 2, 1<<32 | 1}); len(begun.calm) != 1 {
		t.Error("no interval is calm where packets are on their way at the beginning")
	}
	wrong := 0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 11))
		packets := areaTraffic(random, cells, cuts, []float64{0.5, 2}[seed%2], []float64{0.1, 0.5}[seed/2%2], 0.02, 0.02)
		for _, p := range packets { // arrive twice
			if p.Sent = math.MaxInt64; random.IntN(5) == 0 {
				packets = append(packets, p)
			}
		}
		var all [3]*Areas
		for i := range all {
			all[i] = New([]int{cells / 2, cells / 2}, 64, []uint8{0, 16, 32}[seed%3])
			all[i].Begin(0, seed%4 == 3)
		}
		for k, pairs := range pairsOf(cells, packets, cuts) {
			for i, at := range all[2].places {
				all[1].passes[i] = true
				all[2].passes[i] = at > 0 && all[2].cells[at-1].level != all[2].cells[at-1].anchor
			}
			got, lost := [3]Transit{}, [3]int{}
			for i, a := range all {
				if pass(a, pairs); k%window == window-1 {
					got[i], _ = a.Transit(k+1-window, k+1, nil)
					lost[i], _, _ = a.Losses(k + 1)
					a.Settle(k + 1)
				}
			}
			apart := func(i int) bool {
				return lost[i] != lost[0] || math.Abs(got[i].Mean-got[0].Mean)+math.Abs(got[i].Error-got[0].Error) > 1e-9*got[0].Error
			}
			if apart(1) {
				t.Errorf("seed %d, cut %d: %+v, %d lost; where all are slow %+v, %d", seed, k, got[0], lost[0], got[1], lost[1])
			}
			if apart(2) {
				wrong++
			}
		}
	}
	if wrong == 0 {
		t.Error("slow cells make no difference")
	}
}
