package hoplag

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hoplag/hoplag/hashing"
)

// link is two points and traffic between them, in a synctest bubble.
type link struct {
	a      atomic.Pointer[Point]
	b      *Point
	steps  map[*Point]*atomic.Int64 // by how much a point's clock was set since
	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup
}

func newLink(t *testing.T, c Config, ahead time.Duration) *link {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	theirs, theirStep := stepped(ahead)
	ours, ourStep := stepped(0)
	l := &link{}
	c.Name = "a"
	a := newPoint(c.withDefaults(), theirs)
	l.a.Store(a)
	c.Name = "b"
	l.b = newPoint(c.withDefaults(), ours)
	l.steps = map[*Point]*atomic.Int64{a: theirStep, l.b: ourStep}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

func (l *link) close() {
	l.cancel()
	l.all.Wait()
	l.a.Load().Close()
	l.b.Close()
}

// exchange is the transport: a takes the requests.
func (l *link) exchange(_ context.Context, request []byte) ([]byte, error) {
	return l.a.Load().Answer(request)
}

// send sends a message every period, each after the delay that is given for
// it, and a response where back is not nil. A negative delay is a loss.
func (l *link) send(period time.Duration, forth, back func(i int) time.Duration) {
	l.all.Add(1)
	go func() {
		defer l.all.Done()
		for i := 0; l.ctx.Err() == nil; i++ {
			l.all.Add(1)
			go func() {
				defer l.all.Done()
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
			}()
			time.Sleep(period)
		}
	}()
}

// reports returns n reports, by whatever point follows.
func (l *link) reports(n int) []Report {
	var all []Report
	for r := range l.b.FollowOver(l.ctx, l.exchange) {
		if all = append(all, r); len(all) == n {
			break
		}
	}
	return all
}

// Without loss every report has the exact mean, although packets are on their
// way at every cut, and intervals are consecutive.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, Config{Key: "k"}, 0)
		defer l.close()
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
			if r.Err != nil || r.From != "a" || r.To != "b" || r.Clock.Known {
				t.Errorf("%v", r)
			}
			if d := r.Forth; d.Err != nil || d.Lost+d.Extra > 0 || d.Sent < 998 || d.Sent > 1002 || math.Abs(d.Mean-14.5e6) > 0.1e6 {
				t.Errorf("%v", r)
			}
			if !errors.Is(r.Back.Err, ErrIdle) {
				t.Errorf("back: %v", r.Back.Err)
			}
		}
	})
}

// Where messages go both ways, clocks may be days apart.
func TestFollowCorrectsClocks(t *testing.T) {
	for _, ahead := range []time.Duration{0, 30 * time.Millisecond, -70 * time.Second, 1000 * time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLink(t, Config{Key: "k"}, ahead)
				defer l.close()
				l.send(time.Millisecond,
					func(i int) time.Duration {
						return time.Duration(3000+hashing.Word(1, uint64(i))%1000) * time.Microsecond
					},
					func(i int) time.Duration {
						return time.Duration(3000+hashing.Word(2, uint64(i))%500) * time.Microsecond
					})
				for _, r := range l.reports(4)[1:] {
					off := math.Abs(r.Clock.Offset - float64(ahead))
					if r.Err != nil || !r.Clock.Known || off > 30e3 || !r.Clock.Certain.Contains(float64(ahead)) {
						t.Fatalf("%v, want an offset of %v", r, ahead)
					}
					if math.Abs(r.Forth.Mean-3.4995e6) > 50e3 || math.Abs(r.Back.Mean-3.2495e6) > 50e3 {
						t.Errorf("%v", r)
					}
					if r.Forth.Lost+r.Back.Lost+r.Forth.Extra+r.Back.Extra > 0 {
						t.Errorf("%v", r)
					}
				}
			})
		})
	}
}

// What is lost is counted, exactly, within a second; and the mean is near.
func TestFollowCountsLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, Config{Key: "k"}, 0)
		defer l.close()
		l.send(time.Millisecond, func(i int) time.Duration {
			if i%100 == 7 {
				return -1
			}
			return 5 * time.Millisecond
		}, nil)
		var sent, lost uint64
		for _, r := range l.reports(40) {
			sent, lost = sent+r.Forth.Sent, lost+r.Forth.Lost
			if math.Abs(r.Forth.Mean-5e6) > 1 {
				t.Errorf("%v", r)
			}
		}
		// Those of the last second may be missing, and of the first two.
		if want := sent / 100; lost > want || lost < want-30-1 {
			t.Errorf("%d lost of %d, want %d", lost, sent, want)
		}
	})
}

// A point that cannot be reached is reported, interval by interval, and what
// passed meanwhile counts when it is there again.
func TestFollowSurvivesSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, Config{Key: "k"}, 0)
		defer l.close()
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
		for r := range l.b.FollowOver(l.ctx, exchange) {
			if n > 0 && r.Number != last+1 {
				t.Errorf("report %d after %d", r.Number, last)
			}
			last = r.Number
			if errors.Is(r.Err, ErrSilent) {
				silent++
				if !errors.Is(r.Err, cut) {
					t.Errorf("the reason is %v", r.Err)
				}
			} else if r.Err != nil || math.Abs(r.Forth.Mean-5e6) > 1 || r.Forth.Lost != 0 {
				t.Errorf("%v", r)
			}
			received += r.Forth.N
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
