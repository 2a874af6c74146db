package queue

import "testing"

// Backlog returns how many packets have arrived and not yet completely left at time t.
func (l *Link) Backlog(t int64) (packets int) {
	l.settle(max(t, l.now))
	return l.backlog()
}

// Heavy begins a test, of this package or of queue_test, that does a lot in one goroutine: there the race
// detector, which runs with -short, has nothing to find, and takes ten times as long.
func Heavy(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a lot to do in one goroutine")
	}
}
