package joint

import (
	"math"
	"testing"
)

// TestWeigh compares the weighing of sizes, by steps and where they are too wide, with the sum over all sizes.
func TestWeigh(t *testing.T) {
	p := newSizePrior()
	differs := func(told, deviation, mean, variance float64) bool {
		var total, sum, squares float64
		for n := 1.0; n <= max(told, 1)+20*deviation; n++ {
			z := (n - told) / deviation
			w := (math.Pow(n, -0.8) - math.Pow(n+1, -0.8)) * math.Exp(-z*z/2)
			total += w
			sum += w * n
			squares += w * n * n
		}
		want := sum / total
		wantVariance := squares/total - want*want
		// A step is no wider than the deviation: the midpoint rule is good to far less than a twentieth of it.
		// Large sizes that are known to a packet are not rounded.
		if told > single-1 && deviation < 1 {
			return math.Abs(mean-want) > 0.5
		}
		return math.Abs(mean-want) > 0.05*deviation || math.Abs(variance-wantVariance) > 0.05*wantVariance+2*leastVariance
	}
	passed, caught := 0, 0
	for _, told := range []float64{-30, 0.4, 1, 3.3, 8, 15.7, 30, 105, 180, 5000} {
		for _, deviation := range []float64{0.05, 0.4, 1, 1.9, 3, 9, 31, 400} {
			if told < 1-3*deviation {
				continue
			}
			mean, variance := p.weigh(told, deviation*deviation, math.Inf(1))
			if differs(told, deviation, mean, variance) {
				t.Errorf("told %g ± %g: %g ± %g", told, deviation, mean, math.Sqrt(variance))
			}
			if most, v := p.weigh(told, deviation*deviation, 7); !(most >= 1 && most <= 7 && v > 0) {
				t.Errorf("told %g ± %g, at most 7: %g with a variance of %g", told, deviation, most, v)
			}
			// Negative control: what is told, as it is.
			passed++
			if differs(told, deviation, max(told, 1), deviation*deviation) {
				caught++
			}
		}
	}
	if caught < passed/2 {
		t.Errorf("of %d, %d would do without being weighed", passed, passed-caught)
	}
}

func TestSteps(t *testing.T) {
	next := 0.0
	for b := range steps {
		low, width := step(b)
		if low != next || width < 1 {
			t.Fatalf("step %d begins at %g and is %g wide, want %g", b, low, width, next)
		}
		next = low + width
		if b < steps-1 && (stepOf(uint64(low)) != b || low < 1<<50 && stepOf(uint64(next)-1) != b) {
			t.Fatalf("step %d of %g is %d, of %g is %d", b, low, stepOf(uint64(low)), next-1, stepOf(uint64(next)-1))
		}
	}
	if next != 1<<64 || stepOf(1<<64-1) != steps-1 {
		t.Errorf("steps end at %g, and the largest number's is %d of %d", next, stepOf(1<<64-1), steps)
	}
}
