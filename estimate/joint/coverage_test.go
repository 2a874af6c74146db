package joint

import (
	"math"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

// covered is the part of the flows of low to high packets whose truth is in
// the 95 % interval, and how many there are.
func (w *world) covered(r Result, low, high float64) (part float64, n int) {
	for f, packets := range w.Packets {
		if packets >= low && packets <= high {
			n++
			if r.MeanInterval(f, 0.95).Contains(w.truth[f]) {
				part++
			}
		}
	}
	return part / float64(n), n
}

// sizeClasses are the sizes of flows that intervals must cover alike.
var sizeClasses = [][2]float64{{1, math.Inf(1)}, {1, 9}, {10, 99}, {100, math.Inf(1)}}

// lowestCoverage is what n flows that are covered with 95 % fall below with a
// probability of 1e-6.
func lowestCoverage(n int) float64 {
	return 0.95 + estimate.NormalQuantile(1e-6)*math.Sqrt(0.95*0.05/float64(n))
}

// holds reports flows of a class of sizes whose intervals do not cover, and tells if those with
// a part of their width, the control, do.
func (w *world) holds(t *testing.T, name string, r Result, part float64) {
	t.Helper()
	for _, class := range sizeClasses {
		covered, n := w.covered(r, class[0], class[1])
		if covered < lowestCoverage(n) {
			t.Errorf("%s: 95 %% intervals of flows of %g to %g packets cover %.4f of %d", name, class[0], class[1], covered, n)
		}
	}
	for f := range r.StdDev {
		r.StdDev[f] *= part
	}
	if covered, n := w.covered(r, 1, math.Inf(1)); covered >= lowestCoverage(n) {
		t.Errorf("%s: %g of the width still covers %.4f of %d", name, part, covered, n)
	}
}

// Intervals are no wider than they need be: in every class of size
// the errors that a twentieth of the flows exceed are
// close to the half width of 95 % intervals.
func TestIntervalsAreNarrow(t *testing.T) {
	heavy(t)
	for i, s := range []shape{
		{flows: 4000, columns: 500, rows: 4, perRow: 1, counted: true},
		{flows: 4000, columns: 1300, rows: 4, perRow: 1, counted: true},
		{flows: 4000, columns: 500, rows: 4, perRow: 1, counted: true, rates: []float64{1, 1, 0.1, 0.01}},
	} {
		// Times as wide as need be: where the equations have one solution, errors are
		// those of a few flows.
		most := []float64{2.5, 40, 2.5}[i]
		w := simulate(s, 17)
		r := w.solve(t, Options{})
		for _, class := range sizeClasses {
			check := func(factor float64) bool {
				var parts []float64
				for f, packets := range w.Packets {
					if packets >= class[0] && packets <= class[1] {
						half := r.Mean[f] - r.MeanInterval(f, 0.95).Low
						parts = append(parts, math.Abs(r.Mean[f]-w.truth[f])/(factor*half))
					}
				}
				slices.Sort(parts)
				return parts[len(parts)*95/100] > 1/most
			}
			if !check(1) {
				t.Errorf("%d columns, %g to %g packets: intervals are more than %g times as wide as need be", s.columns, class[0], class[1], most)
			}
			if check(3 * most) {
				t.Error("the check does not notice intervals that are far too wide")
			}
		}
	}
}
