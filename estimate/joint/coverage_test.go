package joint

import (
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

// covered returns the share of flows of low to high packets whose 95 % interval holds the truth, and their number.
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
var sizeClasses = [][2]float64{{1, math.Inf(1)}, {1, 9}, {10, 99}, {100, math.Inf(1)}, {1000, math.Inf(1)}}

// lowestCoverage is a coverage that n flows with 95 % intervals fall below with a probability of 1e-6.
func lowestCoverage(n int) float64 {
	return 0.95 + estimate.NormalQuantile(1e-6)*math.Sqrt(0.95*0.05/float64(n))
}

// holds reports classes of sizes whose intervals do not cover, and whether the control, with narrower ones, does.
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
