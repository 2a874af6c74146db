package hoplag

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hoplag/hoplag/estimate"
)

// quick is a Config for tests in real time.
var quick = Config{Key: testKey, Cut: 10 * time.Millisecond, Report: 50 * time.Millisecond}

func newTestPoint(t *testing.T, c Config, name string) *Point {
	t.Helper()
	c.Name = name
	p, err := NewPoint(c)
	must0(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

// measure sends messages and follows a from b until a report has a mean.
func measure(t *testing.T, a, b *Point, ask func(context.Context, []byte) ([]byte, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var latest Report
	n := uint64(0)
	for latest = range b.Follow(ctx, ask) {
		for range 100 {
			a.PassedNumber(n)
			b.PassedNumber(n)
			n++
		}
		if latest.Forth.Err == nil && latest.From == "a" && latest.Forth.Lost == 0 {
			return
		}
	}
	t.Fatal("no report has a mean, and the last is", latest)
}

func TestServeHTTP(t *testing.T) {
	a := newTestPoint(t, quick, "a")
	server := httptest.NewServer(a)
	defer server.Close()
	measure(t, a, newTestPoint(t, quick, "b"), HTTP(nil, server.URL))

	stranger := newSealer(Config{Key: NewKey("another secret key")})
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for err := error(nil); err == nil; _, err = w.Write(make([]byte, 1<<16)) {
		}
	}))
	defer endless.Close()
	for _, url := range []string{server.URL, endless.URL} {
		if reply, err := HTTP(nil, url)(t.Context(), stranger.request(newRequest(1, position{}, nil))); err == nil {
			t.Errorf("a stranger gets %d bytes", len(reply))
		}
	}
	w := httptest.NewRecorder()
	if a.ServeHTTP(w, httptest.NewRequest("GET", "/", nil)); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET gives %d", w.Code)
	}
}

// A stranger gets no answer, and a closed point gives none.
func TestStrangersGetNothing(t *testing.T) {
	p := newTestPoint(t, quick, "a")
	request := p.seal.request(newRequest(1, position{}, nil))
	changed := slices.Clone(request)
	changed[20] ^= 1
	for name, message := range map[string][]byte{
		"nothing that is signed": []byte("GET / HTTP/1.1\r\n\r\n........................................................"),
		"nothing":                nil,
		"half a request":         request[:len(request)/2],
		"another request":        changed,
	} {
		if _, err := p.Answer(message); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := p.Answer(request); err != nil {
		t.Error(err)
	}
	p.Close()
	if _, err := p.Answer(request); !errors.Is(err, errClosed) {
		t.Errorf("a closed point answers: %v", err)
	}
}

// attacked reports on messages while an attacker acts every period: one way, of 5 ms, if clocks agree, and both
// ways, of 2.5 ms, if they are 30 ms apart.
func attacked(t *testing.T, agree bool, n int, period time.Duration, attacker func(l *link, i uint64)) (reports []Report) {
	t.Helper()
	ahead := 30 * time.Millisecond
	if agree {
		ahead = 0
	}
	onLink(t, Config{Key: testKey, ClocksAgree: agree}, ahead, func(t *testing.T, l *link) {
		if agree {
			l.send(time.Millisecond, func(int) time.Duration { return 5 * time.Millisecond }, nil)
		} else {
			l.send(time.Millisecond, both(1), both(2))
		}
		l.each(period, func(i int) { attacker(l, uint64(i)) })
		reports = l.reports(n)[2:]
	})
	return reports
}

// TestRepeatedMessages: someone who knows nothing sends one message again and
// again, with 25 ms to go. Reports have no mean, and say that messages repeat.
func TestRepeatedMessages(t *testing.T) {
	for _, c := range []struct {
		every time.Duration
		lose  uint64
	}{{5 * time.Millisecond, 0}, {5 * time.Millisecond, 20}, {time.Millisecond, 0}} {
		for _, r := range attacked(t, true, 8, c.every, func(l *link, i uint64) {
			l.a.Load().PassedNumber(1 << 50)
			time.Sleep(25 * time.Millisecond)
			if c.lose == 0 || i%c.lose != 0 {
				l.b.PassedNumber(1 << 50)
			}
		}) {
			if !errors.Is(r.Forth.Err, estimate.ErrNoSamples) {
				t.Errorf("%+v: %v", c, r)
			}
		}
	}
}

// TestReplayedMessages: whoever sees messages passes some of them at the second
// point again, a tenth of a second later. They are Extra; no mean has them.
func TestReplayedMessages(t *testing.T) {
	extra := uint64(0)
	for _, r := range attacked(t, true, 20, 100*time.Millisecond, func(l *link, i uint64) {
		time.Sleep(150 * time.Millisecond)
		l.b.PassedNumber(100*i + 50)
	}) {
		extra += r.Forth.Extra
		if d := r.Forth; d.Err != nil || !d.near(5e6) {
			t.Errorf("%v", r)
		}
	}
	if extra < 150 || extra > 190 {
		t.Errorf("%d extra, want some 180", extra)
	}
}

// TestSeedSignsNothing: whoever found out the seed that a point hashes with cannot sign as it does, whatever
// part of it is tried as the key; nor does a point that hashes in the same way answer for another.
func TestSeedSignsNothing(t *testing.T) {
	p := newTestPoint(t, quick, "a")
	for _, key := range []string{"", fmt.Sprintf("%016x", p.Seed()), string(rune(p.Seed())), "seed"} {
		forger := newSealer(Config{Key: NewKey(key)})
		forger.identity = p.seal.identity
		if _, err := p.Answer(forger.request(newRequest(1, position{}, nil))); !errors.Is(err, errForged) {
			t.Errorf("a request signed with %q: %v", key, err)
		}
	}
}

// TestRepeatedMessagesLeaveClocks: one message again and again, so that it is on its way at every cut, moves
// neither the clocks' offset nor the means that are corrected by it.
func TestRepeatedMessagesLeaveClocks(t *testing.T) {
	const cut = 100 * time.Millisecond
	for _, early := range []time.Duration{2 * time.Millisecond, 30 * time.Millisecond} {
		for _, r := range attacked(t, false, 8, cut, func(l *link, _ uint64) {
			time.Sleep(cut - time.Duration(time.Now().UnixNano())%cut - early)
			l.a.Load().PassedNumber(1 << 50)
			time.Sleep(3 * time.Millisecond)
			l.b.PassedNumber(1 << 50)
		}) {
			for _, d := range []Traffic{r.Forth, r.Back} {
				if d.Err == nil && !d.MeanInterval95.Contains(2.5e6) || d.Err != nil && !errors.Is(d.Err, estimate.ErrNoSamples) {
					t.Errorf("%v before a cut: %v", early, r)
				}
			}
			if r.ClockErr != nil || errors.Is(r.Err, ErrStep) || math.Abs(r.Clock.Offset-30e6) > 30e3 {
				t.Errorf("%v before a cut: %v", early, r)
			}
		}
	}
}

// TestReplaysWhileOnTheirWay: a message that is replayed while the original, by the points' clocks, was on its
// way at a cut is taken for it. Of one in ten, 50 ms later, means are off by a tenth of that at most, and the
// clocks are right or not known; the numbers of extra and lost messages tell.
func TestReplaysWhileOnTheirWay(t *testing.T) {
	off := 0.0
	for _, r := range attacked(t, false, 8, 10*time.Millisecond, func(l *link, i uint64) {
		time.Sleep(60 * time.Millisecond)
		l.b.PassedNumber(10*i + 10)
		l.b.Back.PassedNumber(10*i + 10)
	}) {
		if r.ClockErr == nil && !r.Clock.Certain.Contains(30e6) {
			t.Errorf("the clock is certainly %v", r.Clock)
		}
		if r.Forth.Err == nil {
			off = max(off, math.Abs(r.Forth.Mean-2.5e6))
		}
		if r.Forth.Extra < 80 || r.Back.Lost < 80 {
			t.Errorf("%v", r)
		}
	}
	if off > 5e6 {
		t.Errorf("means are off by %s", Format(off))
	}
}

// A clock that is set by a day spoils no earlier report. If the clocks were said to agree, reports say that they do not, and
// not that a point is silent. Nor does one that is set by less, while a follower asks, spoil reports of a cut.
func TestClockSetByADay(t *testing.T) {
	for i, by := range []time.Duration{24 * time.Hour, 24 * time.Hour, -24 * time.Hour, -2600 * time.Millisecond, -500 * time.Millisecond} {
		agree := i == 0
		onLink(t, Config{Key: testKey, ClocksAgree: agree, Report: time.Second / time.Duration(1+i/3*9)}, 0, func(t *testing.T, l *link) {
			l.send(2*time.Millisecond, func(int) time.Duration { return 5 * time.Millisecond }, nil)
			time.AfterFunc(5500*time.Millisecond, func() { l.clocks[l.b].ahead.Add(int64(by)) })
			time.AfterFunc(time.Minute, l.cancel)
			named, told := 0, 0
			for _, r := range l.reports(12 + i/3*68) {
				f := &r.Forth
				if f.Err == nil && f.Received > 0 {
					told++
					if r.Err == nil && (!f.Certain.Contains(5e6) || agree && r.Start.After(time.Now())) {
						t.Errorf("ClocksAgree %t: %v", agree, r)
					}
				}
				if named += map[bool]int{true: 1}[errors.Is(r.Err, estimate.ErrClocks)]; errors.Is(r.Err, ErrSilent) {
					t.Errorf("ClocksAgree %t: %v", agree, r)
				}
			}
			if agree && (named < 4 || told < 4) || !agree && told < 8 {
				t.Errorf("ClocksAgree %t: %d reports have a mean, and %d name the clocks", agree, told, named)
			}
		})
	}
}

// The follower's clock is set while few messages pass: reports go on, and say so.
func TestStepWhileQuiet(t *testing.T) {
	for _, by := range []time.Duration{128 * time.Millisecond, -128 * time.Millisecond, -time.Hour} {
		onLink(t, Config{Key: testKey}, 0, func(t *testing.T, l *link) {
			l.send(300*time.Millisecond, both(1), both(2))
			time.AfterFunc(5300*time.Millisecond, func() { l.clocks[l.b].ahead.Add(int64(by)) })
			received := uint64(0)
			for _, r := range l.reports(14) {
				if received += r.Forth.Received; r.Forth.Err == nil && r.Forth.Received > 0 && !r.Forth.MeanInterval95.Contains(2.5e6) {
					t.Errorf("set by %v: %v", by, r)
				}
			}
			if received < 30 {
				t.Errorf("set by %v: %d received", by, received)
			}
		})
	}
}

// The fastest of these bursts arrive in an earlier pair of cuts than they are sent in.
func TestBurstsInPhase(t *testing.T) {
	onLink(t, Config{Key: testKey}, 50*time.Millisecond, func(t *testing.T, l *link) {
		l.each(100*time.Microsecond, func(i int) {
			if a, b, n := l.a.Load(), l.b, i%1000-850; n >= 0 && n < 100 {
				a.PassedNumber(uint64(i))
				b.Back.PassedNumber(uint64(i))
				time.Sleep(time.Millisecond + time.Duration(n)*50*time.Microsecond)
				b.PassedNumber(uint64(i))
				a.Back.PassedNumber(uint64(i))
			}
		})
		for _, r := range l.reports(5) {
			if !r.Begins && (!r.Forth.MeanInterval95.Contains(3.475e6) || !r.Back.MeanInterval95.Contains(3.475e6)) {
				t.Error(r)
			}
		}
	})
}

// A clock goes on drifting while a message is on its way. Intervals allow for what it drifts in half a cut, and hold.
func TestDriftWhileOnTheWay(t *testing.T) {
	c := Config{Key: testKey, Cut: 500 * time.Millisecond, Report: time.Second}
	onLink(t, c, 0, func(t *testing.T, l *link) {
		l.a.Load().Close()
		l.a.Store(l.newPoint(t, c, "a", newTestClock(time.Second, 9e-4)))
		l.send(4*time.Second, func(int) time.Duration { return 2 * time.Second }, nil)
		n, at := 0, func(_ context.Context, request []byte) ([]byte, error) { return l.a.Load().Answer(request) }
		for r := range l.b.Follow(l.ctx, at) {
			if i := r.Forth.MeanInterval95; r.Forth.Err == nil && !r.Begins && (!i.Contains(2e9) || i.High-i.Low > 1e6) {
				t.Errorf("%v, certainly %v", r, r.Forth.Certain)
			}
			if n++; n == 40 {
				return
			}
		}
	})
}

// Nobody waits for a client that sends only a part of a request.
func TestSlowRequestsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		server := &http.Server{Handler: newTestPoint(t, quick, "a")}
		go server.Serve(&oneConn{far, make(chan struct{})})
		defer server.Close()
		begin := time.Now()
		near.SetReadDeadline(begin.Add(3 * requestTimeout))
		go near.Write([]byte("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n12345"))
		if _, err := io.ReadAll(near); err != nil || time.Since(begin) > 2*requestTimeout {
			t.Errorf("%v, after %v", err, time.Since(begin))
		}
	})
}

// oneConn listens for one connection.
type oneConn struct {
	net.Conn
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.Conn; c != nil {
		l.Conn = nil
		return c, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}
func (l *oneConn) Close() error   { close(l.closed); return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// A packet that is on its way all through a report has the ages at both its ends, and the time between.
func TestOnItsWayThroughout(t *testing.T) {
	for _, seed := range []uint64{4, 17, 28} {
		onLink(t, Config{Key: testKey, ClocksAgree: true}, 0, func(t *testing.T, l *link) {
			var mu sync.Mutex
			var took, came [90]float64 // by second
			start := time.Now()
			l.each(6*time.Millisecond, func(i int) {
				delay := time.Duration(2e8 * math.Pow(1-rand.New(rand.NewPCG(seed, uint64(i))).Float64(), -1/1.5))
				if i >= 2667 || delay > time.Minute {
					return
				}
				l.a.Load().PassedNumber(uint64(i))
				time.Sleep(delay)
				l.b.PassedNumber(uint64(i))
				mu.Lock()
				defer mu.Unlock()
				took[time.Since(start)/time.Second] += float64(delay)
				came[time.Since(start)/time.Second]++
			})
			for _, r := range l.reports(40)[15:] {
				second, i := r.Start.Sub(start)/time.Second, r.Forth.Certain
				mu.Lock()
				mean := took[second] / came[second]
				mu.Unlock()
				if r.Forth.Err == nil && (mean < i.Low-10 || mean > i.High+10) {
					t.Errorf("%d: %v, want %s", seed, r, Format(mean))
				}
			}
		})
	}
}

// A point that follows itself is told so, and reports nothing.
func TestFollowsItself(t *testing.T) {
	onLink(t, Config{Key: testKey}, 0, func(t *testing.T, l *link) {
		n := 0
		for r := range l.b.Follow(t.Context(), func(_ context.Context, q []byte) ([]byte, error) { return l.b.Answer(q) }) {
			if r.Err == nil || n > 0 && !strings.Contains(r.String(), "the other point is this one") {
				t.Errorf("a point that follows itself: %v", r)
			}
			if n++; n == 3 {
				break
			}
			l.b.PassedNumber(uint64(n))
		}
	})
}

// Where exchanges take several cuts one way, packets that come before they are sent tell which cuts belong together.
func TestSlowOneWay(t *testing.T) {
	onLink(t, Config{Key: testKey}, 0, func(t *testing.T, l *link) {
		l.send(10*time.Millisecond, both(5), nil)
		n := 0
		for r := range l.b.Follow(l.ctx, func(_ context.Context, request []byte) ([]byte, error) {
			defer time.Sleep(800 * time.Millisecond)
			return l.a.Load().Answer(request)
		}) {
			if n++; n > 4 && (r.Forth.Err != nil || r.Forth.Lost > 0 || !r.Forth.MeanInterval95.Contains(5e6)) {
				t.Error(r)
			}
			if n == 8 {
				return
			}
		}
	})
}
