package joint

import (
	"math"
	"testing"
)

// racing tells that the race detector is watching.
var racing bool

// heavy begins a test that does a lot in one goroutine: there the race
// detector has nothing to find, and takes ten times as long.
func heavy(t *testing.T) {
	t.Helper()
	if racing {
		t.Skip("a lot to do in one goroutine, and nothing for the race detector")
	}
}

// finite reports whether x is a number.
func finite(x float64) bool {
	return !math.IsNaN(x) && !math.IsInf(x, 0)
}
