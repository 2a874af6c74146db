package joint

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// determinedWorld has flows in one cell of each row. Most wait for about a microsecond, and some of them for slow times as long.
func determinedWorld(flows int, seed uint64, slow float64) *world {
	const rows, columns = 4, 1000
	r := rand.New(rand.NewPCG(seed, 5))
	w := &world{Problem: Problem{
		Rows: rows, CellsPerRow: 1,
		Sum: make([]float64, rows*columns), Count: make([]float64, rows*columns),
		Packets: make([]float64, flows), Cells: make([]uint32, flows*rows),
	}, truth: make([]float64, flows)}
	for f := range flows {
		n := math.Floor(min(20000, math.Pow(1-r.Float64(), -1/0.8)))
		delay := 1200 * math.Exp(0.3*r.NormFloat64())
		if r.IntN(10) == 0 {
			delay *= slow * math.Exp(r.NormFloat64())
		}
		w.Packets[f], w.truth[f] = n, delay
		for k := range rows {
			c := k*columns + r.IntN(columns)
			w.Cells[f*rows+k] = uint32(c)
			w.Sum[c] += n * delay
			w.Count[c] += n
		}
	}
	return w
}

// Where there are fewer flows than cells, the equations have one solution, and nothing holds it back: neither slack
// nor clamps nor messages that stop early. Nine in ten errors and half-widths are below √slack, which a cell is off by.
// More flows than cells, the control, are not told apart, and hardly fewer have an answer with more slack.
func TestDeterminedFlowsAreExact(t *testing.T) {
	heavy(t)
	most := func(flows int, slow float64, part int) float64 {
		w := determinedWorld(flows, 3, slow)
		r := w.solve(t, Options{})
		for f, mean := range w.truth {
			w.truth[f] = max(math.Abs(r.Mean[f]-mean), r.Mean[f]-r.MeanInterval(f, 0.95).Low) / mean
		}
		slices.Sort(w.truth)
		return w.truth[flows*part/10]
	}
	for _, flows := range []int{2500, 3000, 3900, 6400} {
		if most := most(flows, 3, 9); flows <= 3000 == (most > math.Sqrt(slackExact)) {
			t.Errorf("%d flows: nine in ten errors and half-widths are below %.2g", flows, most)
		}
	}
	if most := most(1000, 1e6, 5); most > 5*math.Sqrt(slackExact) { // two cells' errors, times 2.57; 16 to 27 once
		t.Errorf("one flow in ten a million times as slow: half the errors and half-widths are below %.2g", most)
	}
	s, _ := newSolver(weigh(&determinedWorld(3600, 13, 1e6).Problem)) // which takes too long with less slack
	if _, err := s.solve(t.Context(), Options{}); err != nil || s.slack != slack {
		t.Errorf("%v, with a slack of %v", err, s.slack)
	}
}

// Means are the same without deviations, except for flows on the edge of being determined.
func TestMeansOnly(t *testing.T) {
	heavy(t)
	w := determinedWorld(4500, 6, 1e4)
	with, without := w.solve(t, Options{}), w.solve(t, Options{MeansOnly: true})
	if without.StdDev != nil || !math.IsInf(without.MeanInterval(0, 0.95).High, 1) {
		t.Error("deviations that nobody asked for")
	}
	if a, b := w.medianError(with.Mean, 1), w.medianError(without.Mean, 1); b > 1.05*a {
		t.Errorf("median error %.4f without deviations, %.4f with", b, a)
	}
}

// The larger the variance of its sum, the less a cell counts: wrong cells spoil what others know, but not if
// Variance says how wrong they are.
func TestVarianceWeighsCells(t *testing.T) {
	w := determinedWorld(3000, 7, 3)
	rng := rand.New(rand.NewPCG(7, 7))
	w.Variance = make([]float64, len(w.Sum))
	for c := range w.Sum {
		if c%4 == 0 {
			off := 1000 * w.Count[c]
			w.Sum[c] += off * rng.NormFloat64()
			w.Variance[c] = off * off
		}
	}
	r := w.solve(t, Options{})
	told := w.medianError(r.Mean, 1)
	if part, n := w.covered(r, 1, math.Inf(1)); part < lowestCoverage(n) {
		t.Errorf("%.4f of %d flows covered", part, n)
	}
	w.Variance = nil
	if untold := w.medianError(w.solve(t, Options{}).Mean, 1); told > 0.2*untold {
		t.Errorf("median error %.4f with variances, %.4f without", told, untold)
	}
}

// A flow in no usable cell is marked.
func TestUsableIsMarked(t *testing.T) {
	w := determinedWorld(3000, 8, 3)
	w.Unusable = make([]bool, len(w.Sum))
	for i, c := range w.Cells[:4] {
		w.Unusable[c] = i < 4
	}
	w.Unusable[w.Cells[4]] = true
	r := w.solve(t, Options{})
	if r.Usable[0] != 0 || r.Usable[1] != 3 || r.Usable[2] < 3 {
		t.Errorf("%v cells usable, want 0, 3 and 3 or 4", r.Usable[:3])
	}
	if !math.IsInf(r.MeanInterval(0, 0.95).Low, -1) {
		t.Errorf("interval %v of a flow without a cell", r.MeanInterval(0, 0.95))
	}
}

// Where no cell is sure, the fastest flows are not where the surest cells may end: they are off by a standard error of theirs at most.
func TestFloorOfUncertainCells(t *testing.T) {
	w := &world{Problem: Problem{Rows: 1, CellsPerRow: 4}}
	w.Packets, w.Count = slices.Repeat([]float64{400}, 40), slices.Repeat([]float64{100}, 160)
	w.Variance = slices.Repeat([]float64{1e5}, 160)
	for c := range uint32(160) { // flows are alone in their cells
		w.Cells, w.Sum = append(w.Cells, c), append(w.Sum, 100*float64(5+c/4%2*95))
	}
	if off := w.solve(t, Options{}).Mean[2] - 5; math.Abs(off) > math.Sqrt(4*1e5)/400 {
		t.Errorf("a flow is off by %.3g", off)
	}
}
