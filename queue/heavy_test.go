package queue

import "testing"

// racing reports whether the race detector is on.
var racing bool

// Heavy begins a test, of this package or of queue_test, that does a lot in
// one goroutine: there the race detector has nothing to find, and takes ten
// times as long.
func Heavy(t *testing.T) {
	t.Helper()
	if racing {
		t.Skip("a lot to do in one goroutine, and nothing for the race detector")
	}
}
