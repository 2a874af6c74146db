package hoplag

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hoplag/hoplag/hashing"
)

// both is delays of messages and responses, of some milliseconds.
func both(seed uint64) func(int) time.Duration {
	return func(i int) time.Duration {
		return time.Duration(2000+hashing.Word(seed, uint64(i))%1000) * time.Microsecond
	}
}

// want holds reports to means of 2.5 ms both ways, but for those in which a
// session begins, and to their being consecutive.
func want(t *testing.T, reports []Report) (begins int) {
	t.Helper()
	for i, r := range reports {
		if i > 0 && r.Number != reports[i-1].Number+1 {
			t.Errorf("report %d after %d", r.Number, reports[i-1].Number)
		}
		if r.Err != nil {
			t.Errorf("%v", r)
		}
		if r.Begins {
			begins++
			continue
		}
		for _, d := range []Delay{r.Forth, r.Back} {
			if !r.Clock.Known || d.Err != nil || math.Abs(d.Mean-2.5e6) > 0.1e6 || d.Lost+d.Extra > 0 {
				t.Errorf("%v", r)
			}
		}
	}
	return begins
}

// A point that is started again begins a session; what its goroutines put down
// before and after is never mixed.
func TestFollowSurvivesRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, Config{Key: "k"}, 30*time.Millisecond)
		defer l.close()
		l.send(time.Millisecond, both(1), both(2))
		time.AfterFunc(4300*time.Millisecond, func() {
			// The other process is gone, and with it what it counted. The
			// new one's clock is elsewhere.
			old := l.a.Swap(newPoint(l.a.Load().config, shifted(-5*time.Second)))
			old.Close()
		})
		reports := l.reports(10)
		// What was on its way is lost at the restart, and counted as such or
		// not at all; at the beginning and at the restart two or three
		// reports have a session that begins.
		if n := want(t, reports); n < 3 || n > 6 {
			t.Errorf("a session begins in %d reports", n)
		}
		if last := reports[9].Clock; math.Abs(last.Offset+5e9) > 30e3 {
			t.Errorf("offset %v", last)
		}
	})
}

// A clock that is stepped begins a session, at either point, before it makes a
// mean that looks right.
func TestFollowSurvivesSteps(t *testing.T) {
	for name, step := range map[string]struct {
		here bool
		by   time.Duration
	}{
		"theirs ahead":        {false, 37 * time.Millisecond},
		"theirs by an hour":   {false, -time.Hour},
		"ours ahead":          {true, 37 * time.Millisecond},
		"ours by half a year": {true, 4000 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLink(t, Config{Key: "k"}, 0)
				defer l.close()
				l.send(time.Millisecond, both(1), both(2))
				point := l.a.Load()
				if step.here {
					point = l.b
				}
				time.AfterFunc(4300*time.Millisecond, func() {
					l.steps[point].Add(int64(step.by))
				})
				reports := l.reports(10)
				if step.here && step.by > time.Minute {
					// Intervals that never were are not reported.
					if jump := reports[9].Number - reports[0].Number; jump < 3600*4000 {
						t.Errorf("from %d to %d", reports[0].Number, reports[9].Number)
					}
					for i := range reports {
						reports[i].Number = int64(i)
					}
				}
				if n := want(t, reports); n < 3 || n > 7 {
					t.Errorf("a session begins in %d reports", n)
				}
				offset := float64(step.by)
				if step.here {
					offset = -offset
				}
				if last := reports[9].Clock; math.Abs(last.Offset-offset) > 30e3 {
					t.Errorf("%v, want %v", last, step.by)
				}
			})
		})
	}
}

// What was answered once is no answer to another request, and a record that
// was taken counts once, whatever session came since.
func TestReplays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, Config{Key: "k"}, 0)
		defer l.close()
		l.send(time.Millisecond, both(1), both(2))
		time.Sleep(time.Second)
		a := l.a.Load()
		seal := a.seal
		q := newRequest(position{})
		answer, err := a.Answer(seal.request(q))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := seal.reply(newRequest(position{}), answer); !errors.Is(err, ErrForged) {
			t.Errorf("a reply to another request: %v", err)
		}
		r, err := seal.reply(q, answer)
		if err != nil || len(r.records) != 1 {
			t.Fatal(err, len(r.records))
		}
		p := newPairing(a.config)
		other := seal.record(1, 5, 6, [2]*tally{})
		for _, step := range []struct {
			data   []byte
			queued int
		}{{r.records[0], 1}, {r.records[0], 1}, {other, 2}, {r.records[0], 2}, {other, 2}} {
			if err := p.take(first, step.data); err != nil {
				t.Fatal(err)
			}
			if n := len(p.feeds[first].queue); n != step.queued {
				t.Fatalf("%d records wait, want %d", n, step.queued)
			}
		}
		if err := p.take(first, seal.record(1, 5, 9, [2]*tally{})); err == nil {
			t.Error("a record that overlaps the one before is taken")
		}
	})
}

// A follower that comes late has the oldest cuts that are left, and one that
// was away for longer than the history begins anew.
func TestFollowBeyondHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, Config{Key: "k", History: 64 << 10}, 0)
		defer l.close()
		l.send(time.Millisecond, both(1), both(2))
		began := time.Now()
		var reports []Report
		for r := range l.b.FollowOver(l.ctx, func(ctx context.Context, request []byte) ([]byte, error) {
			if s := time.Since(began).Seconds(); s > 4 && s < 11 {
				return nil, errors.New("away")
			}
			return l.exchange(ctx, request)
		}) {
			if errors.Is(r.Err, ErrSilent) {
				r.Err, r.Begins = nil, true
			}
			if reports = append(reports, r); len(reports) == 18 {
				break
			}
		}
		if n := want(t, reports); n < 5 || n > 14 {
			t.Errorf("%d reports of 18 are silent or begin", n)
		}
	})
}

// shifted is a timeline whose wall clock is ahead of the machine's.
func shifted(ahead time.Duration) *timeline {
	t := newTimeline()
	t.wall.Add(int64(ahead))
	wall := t.wall.Load()
	t.set = func() int64 { return wall }
	return t
}

// stepped is shifted by an amount that may change.
func stepped(ahead time.Duration) (*timeline, *atomic.Int64) {
	t := newTimeline()
	by := new(atomic.Int64)
	t.wall.Add(int64(ahead))
	wall := t.wall.Load()
	t.set = func() int64 { return wall + by.Load() }
	return t, by
}
