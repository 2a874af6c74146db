package joint

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

// Means from cells and samples of packets that vary twice as much as guesses have it are better than those of cells alone, and than
// those of samples alone, and intervals hold; but not those of samples that claim to be of a hundred times as many packets.
func TestSamples(t *testing.T) {
	heavy(t)
	w := simulate(shapes["COLATE, counted"], 41)
	rng, only := rand.New(rand.NewPCG(41, 41)), make([]float64, len(w.Packets))
	cells := w.medianError(w.solve(t, Options{}).Mean, 30)
	w.Sampled = make([]Sample, len(w.Packets))
	for f, n := range w.Packets {
		if k := math.Floor(n / 2); k > 0 {
			only[f] = w.truth[f] * (1 + rng.NormFloat64()*math.Sqrt(4*(1/k-1/n)))
			w.Sampled[f] = Sample{Mean: only[f], Packets: k, Part: 4}
		}
	}
	r := w.solve(t, Options{})
	if samples, both := w.medianError(only, 30), w.medianError(r.Mean, 30); both > 0.8*min(cells, samples) {
		t.Errorf("median error %.4f by cells, %.4f by samples, %.4f by both", cells, samples, both)
	}
	w.holds(t, "sampled", r, 0.1)
	for f := range w.Sampled {
		w.Sampled[f].Packets *= 100
	}
	if covered, n := w.covered(w.solve(t, Options{}), 100, math.Inf(1)); covered >= lowestCoverage(n) {
		t.Errorf("samples that claim too much: %.4f of %d covered", covered, n)
	}
}

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
