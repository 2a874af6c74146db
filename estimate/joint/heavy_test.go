package joint

import (
	"math"
	"testing"
)

// heavy begins a test that does a lot in one goroutine: there the race detector, which
// watches short tests, has nothing to find.
func heavy(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a lot to do in one goroutine")
	}
}

// finite reports whether x is a number.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
