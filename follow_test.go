package hoplag

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// testKey is long enough.
var testKey = NewKey("0123456789abcdef")

// A testClock is a machine's clock, which may be ahead, fast or coarse, and may be set.
type testClock struct {
	since time.Time
	rate  float64
	tick  atomic.Int64 // ns
	ahead atomic.Int64 // ns
}

func (c *testClock) Now() time.Time {
	now := time.Now().Round(0)
	return now.Add(time.Duration(c.ahead.Load()) + time.Duration(c.rate*float64(now.Sub(c.since)))).Truncate(time.Duration(c.tick.Load()))
}

func newTestClock(ahead time.Duration, rate float64) *testClock {
	c := &testClock{since: time.Now().Round(0), rate: rate}
	c.ahead.Store(int64(ahead))
	return c
}

// link is two points and traffic between them, in a synctest bubble.
type link struct {
	a      atomic.Pointer[Point]
	b      *Point
	clocks map[*Point]*testClock
	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup
}

func newLink(t *testing.T, c Config, ahead time.Duration) *link {
	t.Helper()
	l := &link{clocks: map[*Point]*testClock{}}
	l.a.Store(l.newPoint(t, c, "a", newTestClock(ahead, 0)))
	l.b = l.newPoint(t, c, "b", newTestClock(0, 0))
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// onLink runs a test in a bubble of virtual time, on a link that is closed at its end.
func onLink(t *testing.T, c Config, ahead time.Duration, test func(t *testing.T, l *link)) {
	t.Helper()
	long(t)
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, c, ahead)
		defer l.close()
		test(t, l)
	})
}

func (l *link) newPoint(t *testing.T, c Config, name string, clock *testClock) *Point {
	t.Helper()
	c.Name, c.Clock = name, clock
	p, err := NewPoint(c)
	if err != nil {
		t.Fatal(err)
	}
	l.clocks[p] = clock
	return p
}

func (l *link) close() {
	l.cancel()
	l.all.Wait()
	l.a.Load().Close()
	l.b.Close()
}

// exchange is the transport: a takes the requests, which take a while.
func (l *link) exchange(_ context.Context, request []byte) ([]byte, error) {
	time.Sleep(5 * time.Millisecond)
	reply, err := l.a.Load().Answer(request)
	time.Sleep(10 * time.Millisecond)
	return reply, err
}

// each calls f every period until the link is closed, with numbers from 0, each in a goroutine of its own.
func (l *link) each(period time.Duration, f func(i int)) {
	l.all.Go(func() {
		for i := 0; l.ctx.Err() == nil; i++ {
			l.all.Go(func() { f(i) })
			time.Sleep(period)
		}
	})
}

// send sends a message every period, each after the delay that is given for
// it, and a response where back is not nil. A negative delay is a loss.
func (l *link) send(period time.Duration, forth, back func(i int) time.Duration) {
	l.each(period, func(i int) {
		id := uint64(i)
		l.a.Load().PassedNumber(id)
		if d := forth(i); d >= 0 {
			time.Sleep(d)
			l.b.PassedNumber(id)
		}
		if back != nil {
			l.b.Back.PassedNumber(id)
			time.Sleep(back(i))
			l.a.Load().Back.PassedNumber(id)
		}
	})
}

// reports returns n reports, by whatever point follows.
func (l *link) reports(n int) []Report {
	var all []Report
	for r := range l.b.Follow(l.ctx, l.exchange) {
		if all = append(all, r); len(all) == n {
			break
		}
	}
	return all
}

// near reports whether a delay's interval has a mean, and is no wider than that.
func (d *Traffic) near(mean float64) bool {
	i := d.MeanInterval95
	return i.Contains(mean) && i.High-i.Low < 20*mean
}

// Without loss every report has the exact mean, although packets are on their way at every cut, and intervals are consecutive.
func TestFollow(t *testing.T) {
	onLink(t, Config{Key: testKey, ClocksAgree: true}, 0, func(t *testing.T, l *link) {
		l.send(time.Millisecond, func(i int) time.Duration { return time.Duration(10+i%10) * time.Millisecond }, nil)
		for i, r := range l.reports(5) {
			if i > 0 && r.Number-l.b.number(r.Start.UnixNano())/10 != 0 {
				t.Errorf("report %d starts at %v", r.Number, r.Start)
			}
			if r.Begins {
				if i > 1 {
					t.Error("the beginning lasts long")
				}
				continue
			}
			if r.Err != nil || r.From != "a" || r.To != "b" || r.Clock.Likely.Confidence > 0 {
				t.Errorf("%v", r)
			}
			if d := r.Forth; d.Err != nil || d.Lost+d.Extra > 0 || d.Sent < 998 || d.Sent > 1002 || !d.near(14.5e6) {
				t.Errorf("%v", r)
			}
			if !errors.Is(r.Back.Err, ErrIdle) {
				t.Errorf("back: %v", r.Back.Err)
			}
		}
	})
}

// Of the clock of a point that was never reached nothing is known, nor of what passed there.
func TestClockOfAnUnknownPoint(t *testing.T) {
	onLink(t, Config{Key: testKey}, 0, func(t *testing.T, l *link) {
		never := func(context.Context, []byte) ([]byte, error) { return nil, errors.New("no route") }
		for r := range l.b.Follow(l.ctx, never) {
			if r.ClockErr == nil || strings.Contains(r.String(), "apart") || !errors.Is(r.Err, ErrSilent) || !errors.Is(r.Forth.Err, ErrSilent) {
				t.Errorf("%v, error %v", r, r.Err)
			}
			break
		}
	})
}

// A point that cannot be reached is reported, interval by interval, and what passed meanwhile counts when it is there again.
func TestFollowSurvivesSilence(t *testing.T) {
	onLink(t, Config{Key: testKey, ClocksAgree: true}, 0, func(t *testing.T, l *link) {
		l.send(time.Millisecond, func(int) time.Duration { return 5 * time.Millisecond }, nil)
		began := time.Now()
		cut := errors.New("the cable is cut")
		exchange := func(ctx context.Context, request []byte) ([]byte, error) {
			if s := time.Since(began).Seconds(); s > 3 && s < 8 {
				return nil, cut
			}
			return l.a.Load().Answer(request)
		}
		var silent, received uint64
		var last int64
		n := uint64(0)
		for r := range l.b.Follow(l.ctx, exchange) {
			if n > 0 && r.Number != last+1 {
				t.Errorf("report %d after %d", r.Number, last)
			}
			last = r.Number
			if errors.Is(r.Err, ErrSilent) {
				silent++
				if !errors.Is(r.Err, cut) {
					t.Errorf("the reason is %v", r.Err)
				}
			} else if r.Err != nil || !r.Forth.near(5e6) || r.Forth.Lost != 0 {
				t.Errorf("%v", r)
			}
			received += r.Forth.Received
			if n++; n == 12 {
				break
			}
		}
		if silent < 2 || silent > 5 {
			t.Errorf("%d intervals of silence", silent)
		}
		if received < (n-1)*1000 || received > (n+1)*1000 {
			t.Errorf("%d packets in %d intervals", received, n)
		}
	})
}

// both is delays of messages and responses, of some milliseconds.
func both(seed uint64) func(int) time.Duration {
	return func(i int) time.Duration {
		return time.Duration(2000+hashing.Word(seed, uint64(i))%1000) * time.Microsecond
	}
}

// want expects consecutive reports with means of 2.5 ms both ways, except for those in which a session begins.
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
		for _, d := range []Traffic{r.Forth, r.Back} {
			unpaired := errors.Is(d.Err, estimate.ErrNoSamples) && i+1 < len(reports) && reports[i+1].Begins
			if r.ClockErr != nil || !unpaired && (d.Err != nil || !d.near(2.5e6)) || d.Lost+d.Extra > 0 {
				t.Errorf("%v", r)
			}
		}
	}
	return begins
}

// A point that is started again begins a session; what its goroutines put down before and after is never mixed.
func TestFollowSurvivesRestart(t *testing.T) {
	onLink(t, Config{Key: testKey}, 30*time.Millisecond, func(t *testing.T, l *link) {
		l.send(time.Millisecond, both(1), both(2))
		time.AfterFunc(4300*time.Millisecond, func() {
			// The other process is gone, and with it what it counted. The new one's clock is elsewhere.
			old := l.a.Swap(l.newPoint(t, Config{Key: testKey}, "a", newTestClock(-5*time.Second, 0)))
			old.Close()
		})
		reports := l.reports(10)
		// At the beginning and at the restart one to three reports have a session that begins.
		if n := want(t, reports); n < 2 || n > 6 {
			t.Errorf("a session begins in %d reports", n)
		}
		if last := reports[9].Clock; math.Abs(last.Offset+5e9) > 30e3 {
			t.Errorf("offset %v", last)
		}
	})
}

// A clock that is stepped begins a session, at either point, before it makes a mean that looks right.
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
			onLink(t, Config{Key: testKey}, 0, func(t *testing.T, l *link) {
				l.send(time.Millisecond, both(1), both(2))
				point := l.a.Load()
				if step.here {
					point = l.b
				}
				time.AfterFunc(4300*time.Millisecond, func() {
					l.clocks[point].ahead.Add(int64(step.by))
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
				named := 0
				for i := range reports {
					if errors.Is(reports[i].Err, ErrStep) {
						if d := reports[i].Forth; !strings.Contains(d.Err.Error(), step.by.String()) || d.Err == nil {
							t.Errorf("%v does not say that it was by %v", d.Err, step.by)
						}
						reports[i].Err = nil
						named++
					}
				}
				if n := want(t, reports); n < 2 || n > 7 || named != 1 {
					t.Errorf("a session begins in %d reports, and %d name a step", n, named)
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

// A used answer does not answer another request, and a record counts once, whatever sessions have begun since.
func TestReplays(t *testing.T) {
	onLink(t, Config{Key: testKey}, 0, func(t *testing.T, l *link) {
		l.send(time.Millisecond, both(1), both(2))
		time.Sleep(time.Second)
		a := l.a.Load()
		seal := a.seal
		q := newRequest(1, position{}, nil)
		answer, err := a.Answer(seal.request(q))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := seal.answered(newRequest(1, position{}, nil), answer); !errors.Is(err, errForged) {
			t.Errorf("a reply to another request: %v", err)
		}
		r, err := seal.answered(q, answer)
		if err != nil || len(r.records) != 1 {
			t.Fatal(err, len(r.records))
		}
		p := newMeeting(a.config)
		other := &record{interval: interval{session: 1, after: 5, through: 6}}
		for _, step := range []struct {
			record *record
			queued int
		}{{r.records[0], 1}, {r.records[0], 1}, {other, 2}, {r.records[0], 2}, {other, 2}} {
			if _, err := p.take(first, "", step.record); err != nil {
				t.Fatal(err)
			}
			if n := len(p.ends[first].shards[0].queue); n != step.queued {
				t.Fatalf("%d records wait, want %d", n, step.queued)
			}
		}
		if _, err := p.take(first, "", &record{interval: interval{session: 1, after: 5, through: 9}}); err == nil {
			t.Error("a record that overlaps the one before is taken")
		}
	})
}

// A follower that comes late has the oldest cuts that are left, and one that was away for longer than the history begins anew.
func TestFollowBeyondHistory(t *testing.T) {
	onLink(t, Config{Key: testKey, History: 64 << 10}, 0, func(t *testing.T, l *link) {
		l.send(time.Millisecond, both(1), both(2))
		began := time.Now()
		var reports []Report
		for r := range l.b.Follow(l.ctx, func(ctx context.Context, request []byte) ([]byte, error) {
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

// Exchanges that take long, as over a satellite, leave clocks known to half of that and no better: the
// reports' intervals are as wide, and hold. They do not fall behind to ask for the names of what is lost.
func TestSlowExchangesWiden(t *testing.T) {
	onLink(t, Config{Key: testKey}, 0, func(t *testing.T, l *link) {
		l.send(time.Millisecond, func(i int) time.Duration { return time.Duration(5-6*(i%100/99)) * time.Millisecond }, nil)
		slow := func(ctx context.Context, request []byte) ([]byte, error) {
			time.Sleep(400 * time.Millisecond)
			reply, err := l.a.Load().Answer(request)
			time.Sleep(400 * time.Millisecond)
			return reply, err
		}
		n := 0
		for r := range l.b.Follow(l.ctx, slow) {
			f := &r.Forth
			n++
			wide := n > 9 && f.MeanInterval95.High > 1e9
			if f.Err != nil || !f.MeanInterval95.Contains(5e6) || f.Received == 0 || wide || time.Since(r.Start) > 6e9 {
				t.Errorf("%v later: %v", time.Since(r.Start), r)
			}
			if n == 40 {
				break
			}
		}
	})
}

// A report that is longer than the history holds is complete.
func TestLongReports(t *testing.T) {
	onLink(t, Config{Key: testKey, ClocksAgree: true, Report: 20 * time.Second, History: 64 << 10}, 0, func(t *testing.T, l *link) {
		l.send(2*time.Millisecond, both(1), nil)
		for i, r := range l.reports(3) {
			if d := r.Forth; i > 0 && (r.Err != nil || r.Begins || d.Received < 9_900 || math.Abs(d.Mean-2.5e6) > 0.02e6) {
				t.Errorf("%v, begins %t", r, r.Begins)
			}
		}
	})
}

// Of messages alone, a path that gets shorter and another that gets longer look like a clock that was set.
func TestPathsThatChange(t *testing.T) {
	onLink(t, Config{Key: testKey}, 0, func(t *testing.T, l *link) {
		then := func(first, later time.Duration) func(i int) time.Duration {
			return func(i int) time.Duration { return map[bool]time.Duration{true: first, false: later}[i < 4500] }
		}
		l.send(time.Millisecond, then(60e6, 30e6), then(40e6, 75e6))
		for _, r := range l.reports(10) {
			if errors.Is(r.Err, ErrStep) || !r.Clock.Certain.Contains(0) {
				t.Error(r)
			}
		}
	})
}
