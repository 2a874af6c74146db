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
)

// passIn sends a message of a flow with a delay, or loses it if that is negative.
func (l *link) passIn(flow hashing.Flow, number int, delay time.Duration) {
	id := binary.BigEndian.AppendUint32(nil, uint32(number))
	if l.a.Load().PassedIn(flow, id); delay >= 0 {
		time.Sleep(delay)
		l.b.PassedIn(flow, id)
	}
}

// Each flow has its own delay, and the report finds it, although packets cross
// every cut; the slowest come first.
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
			if slowest := names[r.Forth.Flows[0].Flow]; slowest < 35 {
				t.Errorf("flow %d is the slowest", slowest)
			}
		}
	})
}

// Delays that no reading of the clocks corrects are not told: where a clock is set, neither flows nor quantiles are.
// Where clocks are not known, a flow's mean is off by as much as that of all.
func TestFlowsOfUnknownClocks(t *testing.T) {
	onLink(t, Config{Key: testKey, Flows: 10}, 40*time.Second, func(t *testing.T, l *link) {
		flow, set, known := l.b.Flow([]byte("a")), 0, 0
		l.each(5*time.Millisecond, func(i int) {
			l.passIn(flow, i, 3*time.Millisecond)
			l.b.Back.PassedNumber(uint64(i))
			time.Sleep(3 * time.Millisecond)
			l.a.Load().Back.PassedNumber(uint64(i))
		})
		time.AfterFunc(5300*time.Millisecond, func() { l.clocks[l.a.Load()].ahead.Add(20e6) })
		for _, r := range l.reports(9) {
			for _, f := range r.Forth.Flows {
				if known++; !f.MeanInterval95.Contains(3e6) {
					t.Errorf("%v: %+v", r, f)
				}
			}
			if errors.Is(r.Err, ErrStep) {
				set += 1 + len(r.Forth.Quantiles)
			}
		}
		if set != 1 || known < 5 {
			t.Errorf("the clock was set, or quantiles told, %d times; %d flows known", set, known)
		}
	})
	d := Traffic{Delay: Delay{Mean: 50e6, MeanInterval95: estimate.Interval{Low: 49e6, High: 51e6}}, Flows: []Delay{{Mean: 50e6}}}
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
			if len(r.Forth.Flows)+r.Forth.UnknownFlows != 1 {
				t.Fatalf("%d flows", len(r.Forth.Flows))
			}
			if len(r.Forth.Flows) == 0 {
				continue
			}
			answered++
			if f := r.Forth.Flows[0]; f.Lost != 20 || f.Sent < 990 || f.Sent > 1010 || !f.MeanInterval95.Contains(45e6) {
				t.Errorf("%+v, want 20 of 1,000 lost", f)
			}
		}
		if answered < 5 {
			t.Errorf("%d answers of 10", answered)
		}
	})
}

// Where a point has no room for all flows, both keep nearly the same ones, and the answers for these are right.
func TestFewFlowsOfMany(t *testing.T) {
	onLink(t, Config{Key: testKey, Flows: 64, ClocksAgree: true}, 0, func(t *testing.T, l *link) {
		for flow := range 200 {
			name := l.a.Load().Flow([]byte{byte(flow)})
			l.each(20*time.Millisecond, func(i int) { l.passIn(name, flow<<20+i, 5*time.Millisecond) })
		}
		for _, r := range l.reports(6)[3:] {
			if n := len(r.Forth.Flows); n < 32 || n > 64 {
				t.Errorf("%d flows have an answer, of 64 that have room", n)
			}
			for _, f := range r.Forth.Flows {
				if math.Abs(f.Mean-5e6) > 1 {
					t.Errorf("%+v", f)
				}
			}
		}
	})
}

// A packet that comes after it has counted as lost is on its way all that time; one
// that was never sent has no delay.
func TestFlowWithLatePackets(t *testing.T) {
	const length = int64(1e8)
	w := newFlows(&Config{Flows: 10, Cut: 1e8}, 0, false)
	up, down := newFlowTable(10), newFlowTable(10)
	late := entry{flow: 1, packet: 0x5_0000_0000} // in the cell of few packets
	late.time = 35e7
	var got Delay
	for cut := range int64(60) {
		up.reset()
		down.reset()
		sent := entry{flow: 1, packet: hashing.Packet(uint64(cut+9)<<32 | 63), time: cut*length + 1e6}
		up.add(&sent)
		sent.time += 5e6
		down.add(&sent)
		switch cut {
		case 3:
			up.add(&late)
		case 30:
			late.time = 30*length + 5e7
			down.add(&late)
			down.add(&entry{flow: 2, packet: 7 << 32, time: 30*length + 5e7})
		}
		w.add(up, down, (cut+1)*length)
	}
	w.end()
	known, unknown := w.report(1)
	if len(known) != 1 || unknown != 1 {
		t.Fatalf("%+v known, %d not", known, unknown)
	}
	got = known[0]
	if want := (60*5e6 + 2.7e9) / 61; math.Abs(got.Mean-want) > 0.03*want || !got.MeanInterval95.Contains(want) {
		t.Errorf("mean %.4g in %v, want %.4g", got.Mean, got.MeanInterval95, want)
	}
}

// traceFlows sends packets of flows at random, each flow with delays of its own, and passes to visit what each
// report says of a flow and the true mean delay of the packets received. Reports wait until it is known what
// was lost.
func traceFlows(seed uint64, number int, gap func(r *rand.Rand, at float64) float64, loss, copies, scatter float64,
	delay func(r *rand.Rand, flow int, at float64) float64,
	visit func(d Delay, mean float64)) {
	const cuts, length = 160, int64(1e8)
	r := rand.New(rand.NewPCG(seed, 1))
	up, down := make([]*flowTable, cuts+1), make([]*flowTable, cuts+1)
	for i := range up {
		up[i], down[i] = newFlowTable(number), newFlowTable(number)
	}
	var means [cuts/10 + 1][13]estimate.Moments
	for at := 0.0; at < cuts*float64(length); at += gap(r, at) {
		f := 1 + r.IntN(number)
		e := entry{flow: hashing.Flow(f), packet: hashing.Packet(r.Uint64()), time: int64(at)}
		up[e.time/length].add(&e)
		d, came := int64(delay(r, f, at)), r.Float64() >= loss
		for e.time += d; came && e.time < cuts*length; came = r.Float64() < copies {
			down[e.time/length].add(&e)
			means[e.time/(10*length)][f].Add(float64(d))
		}
	}
	w, report, idle := newFlows(&Config{Flows: number, Cut: time.Duration(length)}, 0, false), 0, false
	for cut := range cuts {
		if idle && (cut+1)%10 > 0 { // points that were idle cut seldom
			up[cut+1].merge(up[cut])
			down[cut+1].merge(down[cut])
			continue
		}
		idle = len(up[cut].rows)+len(down[cut].rows) == 0
		w.add(up[cut], down[cut], int64(cut+1)*length)
		if (cut+1)%10 == 0 {
			w.end()
		}
		for ; len(w.ends) > 3 || len(w.ends) > 0 && w.areas.Cuts()-w.ends[0] >= w.areas.Settling(unsettled); report++ {
			known, _ := w.report(scatter)
			for _, d := range known {
				visit(d, means[report][d.Flow].Mean())
			}
		}
	}
}

// evenly has packets come at random, so many nanoseconds apart.
func evenly(apart float64) func(*rand.Rand, float64) float64 {
	return spells(apart, 0, math.Inf(1), math.Inf(1))
}

// spells has them do so for a while after a time, and again after a longer while.
func spells(apart, begin, on, each float64) func(*rand.Rand, float64) float64 {
	return func(r *rand.Rand, at float64) float64 {
		since, gap := math.Mod(at-begin+each, each), apart*r.ExpFloat64()
		if since+gap > on {
			return each - since
		}
		return gap
	}
}

// Intervals hold the mean of the packets received in the report, and are a few times as wide as the error: with
// and without losses, of sparse flows and of those that always have packets on their way, where a few packets
// are far slower, and where copies come and delays are long for a while. Hardly any misses where bursts leave a
// few packets on their way when a report ends, and where traffic begins shortly before that, so that in some
// reports nothing tells what was lost. A tenth as wide, they would miss.
func TestFlowIntervals(t *testing.T) {
	type delays = func(r *rand.Rand, flow int, at float64) float64
	random := func(each, all, part float64) delays {
		return func(r *rand.Rand, f int, _ float64) float64 {
			return (each*float64(f) + all) * (1.2 + part*(r.ExpFloat64()-1))
		}
	}
	const share, fast, slow = 0.02, 10e6, 400e6
	const mean = share*slow + (1-share)*fast
	const scatter = (share*slow*slow+(1-share)*fast*fast)/(mean*mean) - 1
	few := func(r *rand.Rand, _ int, _ float64) float64 {
		if r.Float64() < share {
			return slow
		}
		return fast
	}
	forAWhile := func(r *rand.Rand, _ int, at float64) float64 {
		if math.Mod(at, 1e9) < 0.3e9 {
			return 60e6 + 10e6*r.Float64()
		}
		return 3e6 + 2e6*r.Float64()
	}
	for i, c := range []struct {
		flows                 int
		gap                   func(*rand.Rand, float64) float64
		delay                 delays
		loss, copies, scatter float64
		off, least, miss      float64 // most that means are off, least reports, and most of these that miss
	}{
		{12, evenly(2e6), random(3e6, 0, 1), 0, 0, 1, 0.05, 1400, 0.05}, {12, evenly(2e6), random(3e6, 0, 1), 0.01, 0, 1, 0.1, 1400, 0.05},
		{12, evenly(2e6), random(3e6, 0, 1), 0.1, 0, 1, 0.2, 1000, 0.05}, {12, evenly(2e6), random(20e6, 0, 1), 0, 0, 1, 0.2, 1000, 0.05},
		{3, evenly(1e6), random(20e6, 0, 1), 0, 0, 1, 0.2, 250, 0.05}, {3, evenly(1e6), random(50e6, 0, 1), 0, 0, 1, 0.2, 100, 0.05},
		{12, evenly(8e6), random(17e6, 0, 0), 0.005, 0, 1, 0.2, 1000, 0.05}, {12, evenly(2e6), random(120e6, 0, 0.1), 0, 0, 1, 0.2, 75, 0.05},
		{10, evenly(1e6), few, 0, 0, scatter, 0.2, 100, 0.05}, {10, evenly(1e6), few, 0.01, 0, scatter, 0.2, 100, 0.05},
		{10, evenly(0.4e6), forAWhile, 0, 0.025, 1.5, 0.2, 100, 0.05},
		{10, spells(5e3, 0.15e9, 0.01e9, 3e9), random(0, 125e6, 1), 0, 0, 1, 1, 100, 0.015},
		{10, spells(0.5e6, 0, 3.3e9, 5.7e9), random(0, 100e6, 1.2), 0, 0, 1, 1, 100, 0.015},
	} {
		var n, misses, narrow, wide, off float64
		for seed := range uint64(8) {
			traceFlows(seed, c.flows, c.gap, c.loss, c.copies, c.scatter, c.delay, func(d Delay, mean float64) {
				half, error := (d.MeanInterval95.High-d.MeanInterval95.Low)/2, math.Abs(d.Mean-mean)
				if n++; !d.MeanInterval95.Contains(mean) && error > 1 {
					misses++
				}
				if error > half/10 {
					narrow++
				}
				wide += half / mean
				off += error / mean
			})
		}
		if most := c.miss*n + 3*math.Sqrt(c.miss*n); n < c.least || misses > most || narrow < most || off > c.off*n || wide > 15*off {
			t.Errorf("%d: %v of %v miss, %v a tenth as wide; means are off by %.3f, intervals %.3f", i, misses, n, narrow, off/n, wide/n)
		}
	}
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
