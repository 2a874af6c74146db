package hoplag

import (
	"sync/atomic"
	"time"
)

// stepLimit is how far the wall clock may differ from the time it was set to
// when the timeline began, plus the time since, before that counts as a step.
const stepLimit = 100 * time.Microsecond

// A timeline tells the time in nanoseconds since 1970. It reads the monotonic
// clock, which is cheaper than the wall clock and never steps, and notices
// when the wall clock is set.
type timeline struct {
	base time.Time
	wall atomic.Int64 // the wall clock's time at base
	set  func() int64 // returns what the wall clock says the time at base was
}

func newTimeline() *timeline {
	t := &timeline{base: time.Now()}
	t.wall.Store(t.base.UnixNano())
	t.set = func() int64 {
		now := time.Now()
		return now.UnixNano() - int64(now.Sub(t.base))
	}
	return t
}

// now returns the time.
func (t *timeline) now() int64 { return t.wall.Load() + t.elapsed() }

// of returns the timeline's time for a time.Time; if that came from time.Now,
// by the monotonic clock as well.
func (t *timeline) of(at time.Time) int64 {
	if at == at.Round(0) { // it has no monotonic reading
		return at.UnixNano()
	}
	return t.wall.Load() + int64(at.Sub(t.base))
}

// elapsed returns the time since the timeline began, whatever the wall clock
// says.
func (t *timeline) elapsed() int64 { return int64(time.Since(t.base)) }

// follow sets the timeline to the wall clock if that was stepped, and reports
// whether it was. The wall clock and the monotonic one are read one after the
// other, so a single reading may be off because of the scheduler.
func (t *timeline) follow() bool {
	var set int64
	for range 5 {
		set = t.set()
		if d := time.Duration(set - t.wall.Load()); d.Abs() <= stepLimit {
			return false
		}
	}
	t.wall.Store(set)
	return true
}
