package joint

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Means from cells and samples are better than those of cells alone, and than those of samples alone, and intervals
// hold; but not those of samples that claim to be of a hundred times as many packets.
func TestSamples(t *testing.T) {
	heavy(t)
	w := simulate(shapes["COLATE, counted"], 41)
	rng, only := rand.New(rand.NewPCG(41, 41)), make([]float64, len(w.Packets))
	cells := w.medianError(w.solve(t, Options{}).Mean, 30)
	w.Sampled = make([]Sample, len(w.Packets))
	for f, n := range w.Packets {
		if k := math.Floor(n / 10); k > 0 {
			only[f] = w.truth[f] * (1 + rng.NormFloat64()*math.Sqrt(1/k-1/n))
			w.Sampled[f] = Sample{Mean: only[f], Packets: k}
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
