package joint

import (
	"context"
	"math"
	"slices"
	"testing"
)

// offBy is how far means are from others, in deviations: the median and the most.
func offBy(got, want Result) (median, most float64) {
	off := make([]float64, len(got.Mean))
	for f, mean := range got.Mean {
		off[f] = math.Abs(mean-want.Mean[f]) / want.StdDev[f]
	}
	slices.Sort(off)
	return off[len(off)/2], off[len(off)-1]
}

// The iteration ends when it adds little to the error of the means, where they
// are known to a millionth and where they are hardly known.
func TestIterationEndsInTheNoise(t *testing.T) {
	worlds := map[string]*world{"determined": determinedWorld(3200, 11, 3), "crowded": determinedWorld(9000, 12, 30)}
	for name := range shapes {
		worlds[name] = simulate(shapes[name], 13)
	}
	for name, w := range worlds {
		got, want := w.solve(t, Options{}), w.solve(t, Options{tolerance: 1e-9})
		median, most := offBy(got, want)
		t.Logf("%s: %d iterations: means off by %.4f of their deviations, at most %.2f", name, got.Iterations, median, most)
		if !got.Converged || median > 0.2 || most > 6 {
			t.Errorf("%s: off by %.3f of the deviations, at most %.2f, after %d iterations", name, median, most, got.Iterations)
		}
	}
	// Negative control: a few iterations are not enough.
	w := worlds["determined"]
	few, err := w.Solve(context.Background(), Options{MaxIterations: 16})
	if err != nil || few.Converged {
		t.Fatalf("converged after %d iterations: %v", few.Iterations, err)
	}
	if median, _ := offBy(few, w.solve(t, Options{tolerance: 1e-9})); median < 0.3 {
		t.Errorf("off by %.3f of the deviations after 16 iterations", median)
	}
}

// In which order flows are listed is nothing to their means.
func TestOrderOfFlowsIsNoMatter(t *testing.T) {
	w := determinedWorld(5000, 14, 30)
	w.Doubt = make([]float64, len(w.Packets))
	for f := range w.Doubt {
		w.Doubt[f] = float64(f % 2)
	}
	want := w.solve(t, Options{tolerance: 1e-9, Deviations: true})
	flows := len(w.Packets)
	other := &world{Problem: w.Problem}
	other.Packets, other.Doubt, other.Cells = nil, nil, nil
	for f := flows - 1; f >= 0; f-- {
		other.Packets, other.Doubt = append(other.Packets, w.Packets[f]), append(other.Doubt, w.Doubt[f])
		other.Cells = append(other.Cells, w.Cells[4*f:4*f+4]...)
	}
	got := other.solve(t, Options{tolerance: 1e-9, Deviations: true})
	if !slices.Equal(got.Packets, other.Packets) {
		t.Error("packets in another order than the flows")
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-4*math.Abs(b) }
	for f := range flows {
		i := flows - 1 - f
		if !near(got.Mean[i], want.Mean[f]) || !near(got.StdDev[i], want.StdDev[f]) || !near(got.Deviation[i], want.Deviation[f]) ||
			!near(float64(got.Freedom[i]), float64(want.Freedom[f])) || got.Usable[i] != want.Usable[f] {
			t.Fatalf("flow %d: %g ± %g, the other way round %g ± %g", f, want.Mean[f], want.StdDev[f], got.Mean[i], got.StdDev[i])
		}
	}
}
