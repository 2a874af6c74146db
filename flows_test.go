package hoplag

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/heap"
	"github.com/hoplag/hoplag/lda/flows"
)

// passIn sends a message of a flow with a delay, or loses it if that is negative.
func (l *link) passIn(flow hashing.Flow, number int, delay time.Duration) {
	id := binary.BigEndian.AppendUint32(nil, uint32(number))
	if l.a.Load().Passed(id, flow); delay >= 0 {
		time.Sleep(delay)
		l.b.Passed(id, flow)
	}
}

// A pass is what happens to message i at a time: it leaves a, arrives at b or never does, or its response returns.
type pass struct {
	at    time.Duration
	i, to int
}

const leaves, arrives, misses, returns = 0, 1, 2, 3

func (p pass) Before(q pass) bool { return p.at < q.at || p.at == q.at && p.i < q.i }

// play is send for messages that leave when sent says. One goroutine for all costs less than one for each.
func (l *link) play(messages int, sent, forth, back func(i int) time.Duration) {
	begin, next := time.Now(), heap.Heap[pass]{{sent(0), 0, leaves}}
	l.all.Go(func() {
		for len(next) > 0 && l.ctx.Err() == nil {
			p := next.Pop()
			time.Sleep(time.Until(begin.Add(p.at)))
			switch id := uint64(p.i); p.to {
			case leaves:
				l.a.Load().PassedNumber(id)
				d, to := forth(p.i), arrives
				if d < 0 {
					d, to = 0, misses
				}
				if next.Push(pass{p.at + d, p.i, to}); p.i+1 < messages {
					next.Push(pass{sent(p.i + 1), p.i + 1, leaves})
				}
			case arrives, misses:
				if p.to == arrives {
					l.b.PassedNumber(id)
				}
				if back != nil {
					l.b.Back.PassedNumber(id)
					next.Push(pass{p.at + back(p.i), p.i, returns})
				}
			case returns:
				l.a.Load().Back.PassedNumber(id)
			}
		}
	})
}

// Each flow has its own delay, and the report finds it, although packets cross every cut; the slowest come first.
func TestFollowFlows(t *testing.T) {
	onLink(t, Config{Key: testKey, Flows: 100, ClocksAgree: true}, 0, func(t *testing.T, l *link) {
		delay := func(flow int) time.Duration { return time.Duration(1+flow) * time.Millisecond }
		names := map[hashing.Flow]int{}
		for flow := range 40 {
			name := l.a.Load().Flow([]byte{byte(flow)})
			names[name] = flow
			l.each(7*time.Millisecond, func(i int) { l.passIn(name, flow<<20+i, delay(flow)) })
		}
		for _, r := range l.reports(6)[3:] {
			if n := len(r.Forth.Flows) + r.Forth.UnknownFlows; n != 40 || r.Forth.UnknownFlows > 4 {
				t.Fatalf("%d flows, %d of them unknown", n, r.Forth.UnknownFlows)
			}
			right := 0
			for i, f := range r.Forth.Flows {
				want := delay(names[f.Flow]).Seconds() * 1e9
				if math.Abs(f.Mean/want-1) < 0.05 && f.MeanInterval95.Contains(want) {
					right++
				}
				if i > 0 && f.Mean > r.Forth.Flows[i-1].Mean {
					t.Errorf("flow %d comes after a faster one", i)
				}
			}
			// One packet more at one end than at the other, out of 143, is 0.7 %.
			if right < 36 {
				t.Errorf("%d of 40 flows are right to 5 %%", right)
			}
		}
	})
}

// Delays that no reading of the clocks corrects are not told: where a clock is set, neither flows nor quantiles are.
// Where clocks are not known, a flow's mean is off by as much as that of all. Until half of a flow's packets came the clock drifted
// by 125 µs less or more than for all, and by up to 250 µs for the slowest. In which cuts they came is known: half of one is 25 µs.
func TestFlowsOfUnknownClocks(t *testing.T) {
	c := Config{Key: testKey, Flows: 10, Asymmetry: time.Microsecond}
	onLink(t, c, 0, func(t *testing.T, l *link) {
		l.a.Load().Close()
		l.a.Store(l.newPoint(t, c, "a", newTestClock(40*time.Second, 5e-4)))
		flows, set, known := []hashing.Flow{l.b.Flow([]byte("a")), l.b.Flow([]byte("b"))}, 0, 0
		l.each(5*time.Millisecond, func(i int) {
			l.passIn(flows[i/100%2], i, 3*time.Millisecond)
			l.b.Back.PassedNumber(uint64(i))
			time.Sleep(3 * time.Millisecond)
			l.a.Load().Back.PassedNumber(uint64(i))
		})
		time.AfterFunc(5300*time.Millisecond, func() { l.clocks[l.a.Load()].ahead.Add(20e6) })
		for _, r := range l.reports(9) {
			for _, f := range r.Forth.Flows {
				if known++; !f.MeanInterval95.Contains(3e6) || f.MeanInterval95.High-f.MeanInterval95.Low > 2*30e3 {
					t.Errorf("%v: %+v", r, f)
				}
			}
			if q := r.Forth.Quantiles; len(q) > 1 && !q[len(q)-2].Interval.Contains(3e6) {
				t.Errorf("%v: %+v", r, q)
			}
			if errors.Is(r.Err, ErrStep) {
				set += 1 + len(r.Forth.Quantiles)
			}
		}
		if set != 1 || known < 5 {
			t.Errorf("the clock was set, or quantiles told, %d times; %d flows known", set, known)
		}
	})
	d := Traffic{Mean: 50e6, MeanInterval95: estimate.Interval{Low: 49e6, High: 51e6}, Flows: []flows.Delay{{Mean: 50e6}}}
	if d.unsettle(ErrStep, &way{told: placing{added: 40e6, least: 48e6}}); d.Err != nil || d.Mean != 10e6 || d.Flows[0].Mean != d.Mean {
		t.Errorf("%v, and %v of its only flow", d, d.Flows[0].Mean)
	}
}

// A flow that always has dozens of packets on their way loses one in fifty, and
// the counters never see it without any. Reports do not say that it lost none.
func TestFlowLosesAmongPacketsOnTheirWay(t *testing.T) {
	onLink(t, Config{Key: testKey, Flows: 100, ClocksAgree: true}, 0, func(t *testing.T, l *link) {
		name := l.a.Load().Flow([]byte("busy"))
		l.each(time.Millisecond, func(i int) {
			delay := 45 * time.Millisecond
			if i%50 == 0 {
				delay = -1
			}
			l.passIn(name, i, delay)
		})
		answered := 0
		for _, r := range l.reports(12)[2:] {
			for _, f := range r.Forth.Flows {
				if answered++; f.Lost != 20 || f.Sent < 990 || f.Sent > 1010 || !f.MeanInterval95.Contains(45e6) {
					t.Errorf("%+v, want 20 of 1,000 lost", f)
				}
			}
		}
		if answered < 5 {
			t.Errorf("%d answers of 10", answered)
		}
	})
}

// A flow that always has packets on their way is known while none is lost or was on its way at the beginning, and all flows have room.
func TestFarFlow(t *testing.T) {
	onLink(t, Config{Key: testKey, Flows: 10, ClocksAgree: true, Cut: 2e7, Report: 2e8}, 0, func(t *testing.T, l *link) {
		for i := range 1500 {
			flow, delay := i%3, time.Duration(i*i%97*10_000+i%3/2*25e6)
			at := time.Duration(1e9 + i*1e6 + i/900*1e8)
			l.all.Go(func() { time.Sleep(at); l.passIn(hashing.Flow(1+flow), i, delay) })
			if i/20 == 45 {
				l.all.Go(func() { time.Sleep(at); l.passIn(hashing.Flow(i), -i, 0) })
			}
		}
		known := 0
		for _, r := range l.reports(15) {
			if f := r.Forth.Flows; len(f) == 3 && f[0].Flow == 3 {
				if known++; !f[0].MeanInterval95.Contains(25.5e6) {
					t.Errorf("%+v", f[0])
				}
			}
		}
		if known < 4 {
			t.Errorf("%d answers of 5", known)
		}
	})
}

// A flow that passed long ago is forgotten, even while one of its packets may be on its way.
func TestForgottenFlow(t *testing.T) {
	c := Config{Key: testKey, Flows: 100, ClocksAgree: true, Cut: time.Second, Report: time.Second}
	onLink(t, c, 0, func(t *testing.T, l *link) {
		l.each(20*time.Millisecond, func(i int) {
			delay := time.Duration(3e9 * math.Pow(1-rand.New(rand.NewPCG(0, uint64(i))).Float64(), -1/1.5))
			if i < 4500 && delay < 400*time.Second {
				l.passIn(hashing.Flow(1+i%50), i, delay)
			}
		})
		for _, r := range l.reports(480) {
			for _, f := range r.Forth.Flows {
				if i := f.MeanInterval95; i.Low > f.Mean || i.High < f.Mean {
					t.Errorf("mean %s, in %s to %s", Format(f.Mean), Format(i.Low), Format(i.High))
				}
			}
		}
	})
}

func TestLooksAgain(t *testing.T) {
	w := newComparison(Config{Key: testKey}.withDefaults()).ways[forth]
	for _, x := range [][3]int64{{100, 500, 0}, {101, 109, 0}, {101, 110, 1}, {99, 99, 1}} { // the latest that came, the cut, whether it looks
		w.asked, w.losing, w.came = 100, true, x[0]
		if w.open(false); w.loses(x[1], 10) != (x[2] == 0) || w.delay(90, 100, 1e9, false).Err == nil || w.losing || w.asked > 0 {
			t.Errorf("cut %d, if something came at %d: looked %v, or it counts for the next report", x[1], x[0], x[2] == 0)
		}
	}
}
