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

// The intervals cover, over all flows and in each class of size, though flow
// means have two modes, sizes are Pareto, and no prior is given.
func TestCoverage(t *testing.T) {
	heavy(t)
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			w := simulate(shape, 11)
			r := w.solve(t, Options{})
			for _, class := range sizeClasses {
				part, n := w.covered(r, class[0], class[1])
				t.Logf("%g to %g packets: %.4f of %d flows", class[0], class[1], part, n)
				if part < lowestCoverage(n) {
					t.Errorf("95 %% intervals of flows of %g to %g packets cover %.4f of %d", class[0], class[1], part, n)
				}
			}
			// Controls: a prior that believes all flows alike, and one that
			// believes packets exact, must be caught by the same check.
			for _, wrong := range []Prior{
				{Mean: w.prior.Mean, Between: w.prior.Between / 10, Within: w.prior.Within},
				{Mean: w.prior.Mean, Between: w.prior.Between / 10, Within: w.prior.Within / 10},
			} {
				r := w.solve(t, Options{Prior: &wrong})
				if part, n := w.covered(r, 1, math.Inf(1)); part >= lowestCoverage(n) {
					t.Errorf("with prior %+v the intervals still cover %.4f of %d", wrong, part, n)
				}
			}
		})
	}
}

// Intervals are no wider than they need be: in every class of size
// the errors that a twentieth of the flows exceed are
// close to the half width of 95 % intervals.
func TestIntervalsAreNarrow(t *testing.T) {
	heavy(t)
	const most = 2.5 // times as wide as need be
	for _, s := range []shape{
		{flows: 4000, columns: 500, rows: 4, perRow: 1, counted: true},
		{flows: 4000, columns: 1300, rows: 4, perRow: 1, counted: true},
		{flows: 4000, columns: 500, rows: 4, perRow: 1, counted: true, rates: []float64{1, 1, 0.1, 0.01}},
	} {
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

// The deviations are the size of the errors: where everything is normal, the
// mean square of error over deviation is 1 for the model's exact case.
func TestDeviationIsTheError(t *testing.T) {
	shape := shapes["COLATE, counted"]
	shape.normal = true
	w := simulate(shape, 5)
	r := w.solve(t, Options{Prior: &w.prior})
	check := func(scale float64) (float64, float64) {
		var m estimate.Moments
		for f, truth := range w.truth {
			z := (r.Mean[f] - truth) / (scale * r.StdDev[f])
			m.Add(z * z)
		}
		return m.Mean(), math.Sqrt(2 / float64(m.N())) // variance of a normal's square is 2
	}
	// Errors of flows that share cells are not independent; twice the deviation
	// of independent ones allows for it.
	alarm := -2 * estimate.NormalQuantile(1e-6)
	if mean, wrong := check(1); math.Abs(mean-1) > alarm*wrong {
		t.Errorf("mean square of error over deviation is %g, want 1 ± %g", mean, alarm*wrong)
	}
	for _, scale := range []float64{0.8, 1.25} {
		if mean, wrong := check(scale); math.Abs(mean-1) <= alarm*wrong {
			t.Errorf("deviations × %g pass: %g", scale, mean)
		}
	}
}

// Intervals cover though a third of the flows is not listed, whose packets are
// in the cells of the others: counts tell that they are there.
func TestCoverageOfUnlistedFlows(t *testing.T) {
	heavy(t)
	for name, shape := range map[string]shape{"SDS": shapes["SDS"], "LDS": shapes["LDS"]} {
		w := simulate(shape, 23)
		width, kept := w.Rows*w.CellsPerRow, 0
		for f := range w.Packets {
			if f%3 == 0 {
				continue
			}
			w.Packets[kept], w.truth[kept] = w.Packets[f], w.truth[f]
			copy(w.Cells[kept*width:], w.Cells[f*width:(f+1)*width])
			kept++
		}
		w.Packets, w.truth, w.Cells = w.Packets[:kept], w.truth[:kept], w.Cells[:kept*width]
		r := w.solve(t, Options{})
		for _, class := range sizeClasses {
			part, n := w.covered(r, class[0], class[1])
			t.Logf("%s, %g to %g packets: %.4f of %d flows", name, class[0], class[1], part, n)
			if part < lowestCoverage(n) {
				t.Errorf("%s: 95 %% intervals of flows of %g to %g packets cover %.4f of %d", name, class[0], class[1], part, n)
			}
		}
		for f := range r.StdDev { // the control
			r.StdDev[f] /= 4
		}
		if part, n := w.covered(r, 1, math.Inf(1)); part >= lowestCoverage(n) {
			t.Errorf("%s: a quarter of the width still covers %.4f of %d", name, part, n)
		}
	}
}
