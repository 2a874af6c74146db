package joint

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Counts that are off by a third, at random: with Doubt saying so the intervals still cover, and a tenth of their width does not.
func TestDoubt(t *testing.T) {
	heavy(t)
	for _, name := range []string{"SDS", "LDS", "COLATE, counted"} {
		w := simulate(shapes[name], 31)
		rng := rand.New(rand.NewPCG(31, 31))
		w.Doubt = make([]float64, len(w.Packets))
		for f, n := range w.Packets {
			w.Doubt[f] = n / 3
			w.Packets[f] = n * (1 + (2*rng.Float64()-1)/math.Sqrt(3))
		}
		w.holds(t, name, w.solve(t, Options{}), 0.1)
	}
}

// Cells none of which is certain: intervals hold whether cells say something or next to nothing. Where they say
// nothing of a flow, it has no interval, and not the mean of all as if that were known.
func TestUncertainSums(t *testing.T) {
	heavy(t)
	for _, off := range []float64{0.1, 1, 10} { // times the mean of all, of a cell
		w := simulate(shapes["LDS"], 37)
		rng := rand.New(rand.NewPCG(37, 37))
		w.Variance = make([]float64, len(w.Sum))
		for c, n := range w.Count {
			deviation := off * n * w.prior.Mean
			w.Variance[c] = deviation * deviation
			w.Sum[c] += deviation * rng.NormFloat64()
		}
		r := w.solve(t, Options{})
		for _, class := range sizeClasses {
			if covered, n := w.covered(r, class[0], class[1]); covered < lowestCoverage(n) {
				t.Errorf("off by %g: intervals of %g to %g packets cover %.4f of %d", off, class[0], class[1], covered, n)
			}
		}
	}
}
