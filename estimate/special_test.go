package estimate

import (
	"math"
	"testing"
)

// The bar that every special function is held to.
const specialBar = 1e-7

// off is the relative error of got, or the absolute one below 1e-5, with NaN never close to anything.
func off(got, want float64) float64 {
	if got == want {
		return 0
	}
	return math.Abs(got-want) / max(math.Abs(want), 1e-5)
}

// What the documentation says of the ends of each function's range, and of arguments beyond.
func TestSpecialEdges(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"NormalQuantile(-1)", NormalQuantile(-1), nan},
		{"NormalQuantile(0)", NormalQuantile(0), -inf},
		{"NormalQuantile(1)", NormalQuantile(1), inf},
		{"NormalQuantile(2)", NormalQuantile(2), nan},
		{"NormalQuantile(NaN)", NormalQuantile(nan), nan},
		{"StudentQuantile(2)", StudentQuantile(2, 3), nan},
		{"StudentQuantile(0)", StudentQuantile(0, 3), -inf},
		{"StudentQuantile(0.5)", StudentQuantile(0.5, 3), 0},
		{"StudentQuantile(1)", StudentQuantile(1, 3), inf},
		{"StudentQuantile, no degrees", StudentQuantile(0.4, 0), nan},
		{"StudentQuantile, infinite degrees", StudentQuantile(0.01, inf), NormalQuantile(0.01)},
	} {
		if c.got != c.want && !(math.IsNaN(c.got) && math.IsNaN(c.want)) {
			t.Errorf("%s is %v, want %v", c.name, c.got, c.want)
		}
	}
}
