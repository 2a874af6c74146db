package joint

import (
	"math"
	"slices"
	"testing"
)

// offBy returns how far means are from others, in deviations: the median and the greatest.
func offBy(got, want Result) (median, most float64) {
	off := make([]float64, len(got.Mean))
	for f, mean := range got.Mean {
		off[f] = math.Abs(mean-want.Mean[f]) / want.StdDev[f]
	}
	slices.Sort(off)
	return off[len(off)/2], off[len(off)-1]
}

// The iteration ends when it adds little to the error of means that are known to a millionth, or hardly at all.
func TestIterationEndsInTheNoise(t *testing.T) {
	worlds := map[string]*world{"determined": determinedWorld(3200, 11, 3), "crowded": determinedWorld(9000, 12, 30)}
	for name := range shapes {
		worlds[name] = simulate(shapes[name], 13)
	}
	for name, w := range worlds {
		got, want := w.solve(t, Options{}), w.solve(t, Options{tolerance: 1e-9})
		median, most := offBy(got, want)
		if median > 0.2 || most > 6 {
			t.Errorf("%s: off by %.3f of the deviations, at most %.2f", name, median, most)
		}
	}
	// Negative control: a few iterations are not enough.
	w := worlds["determined"]
	few := w.solve(t, Options{tolerance: math.Inf(1)})
	if median, _ := offBy(few, w.solve(t, Options{tolerance: 1e-9})); median < 0.3 {
		t.Errorf("off by %.3f of the deviations after 16 iterations", median)
	}
}
