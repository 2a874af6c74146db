package lds

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/truth"
)

// Where the clock of the point downstream is behind, packets come before they are sent. What is lost then looks like what is still
// to be sent: 50 of 600 intervals missed, and those of Decode one in four. With clocks that agree the same packets are answered.
func TestClockBehindIsRefused(t *testing.T) {
	const intervals, length = 30, int64(1e9)
	for _, behind := range []int64{0, 2e8, 1e9} {
		random, a := rand.New(rand.NewPCG(3, 4)), mustAccumulate(t, DefaultConfig)
		x := newTimeline(t, DefaultConfig, intervals, length)
		for now := length; now < (intervals-5)*length; now += int64(random.ExpFloat64() * 1e6) {
			f, p := hashing.Flow(random.Uint64N(20)), hashing.Packet(random.Uint64())
			came := now + int64(20e6*random.ExpFloat64()) - behind
			x.pass(f, p, now, came, random.IntN(100) == 0)
		}
		x.addAll(t, a)
		if _, err := a.Estimate(7); errors.Is(err, estimate.ErrClocks) != (behind > 0) {
			t.Errorf("%d ms behind: %v", behind/1e6, err)
		}
	}
}

// Flows that send a packet just before each cut always have one on its way, in cells of their own. Some of their digests are equal
// by chance, and nothing is lost. When such packets were taken for lost, means were minus 90 ms, or clocks seemed not to agree.
func TestDigestsAlikeByChance(t *testing.T) {
	const intervals, length, flows = 250, int64(1e8), 50
	c := DefaultConfig
	c.Columns = 500
	random, a := rand.New(rand.NewPCG(5, 6)), mustAccumulate(t, c)
	x := newTimeline(t, c, intervals, length)
	var truth [flows]estimate.Moments
	for k := range int64(intervals) {
		for f := range truth {
			p, at := hashing.Packet(random.Uint64()), (k+1)*length-random.Int64N(1e6)-1
			delay := int64(2e6) + int64(6e6*min(10, random.ExpFloat64()))
			x.pass(nth(f), p, at, at+delay, false)
			truth[f].Add(float64(delay))
		}
		x.add(t, a, int(k))
	}
	for f := range truth {
		r := must(a.Estimate(nth(f)))
		if i := r.MeanInterval(0.99); !i.Contains(truth[f].Mean()) || i.High-i.Low > float64(length) || r.Overdue > 0 {
			t.Errorf("flow %d: %.3f to %.3f ms, %d lost; the mean is %.3f", f, i.Low/1e6, i.High/1e6, r.Overdue, truth[f].Mean()/1e6)
		}
	}
}

func nth(f int) hashing.Flow { return hashing.Flow(hashing.Word(6, uint64(f))) }

// A fate says how long a packet takes that is sent at a time, when a copy of it comes, if not 0, and if it is lost.
type fate func(sent int64) (took, again int64, lost bool)

// A flowTruth is what is true of a flow: the packets that came, how long they took together, and the lost ones.
type flowTruth struct {
	came, took float64
	lost       uint64
}

func (f *flowTruth) mean() float64 { return f.took / f.came }

// watch passes packets of 50 flows, at a mean distance, for some intervals of 100 ms, and looks at some more.
func watch(t *testing.T, c Config, r *rand.Rand, gap float64, intervals, more int, way fate) (*Accumulator, map[hashing.Flow]*flowTruth) {
	t.Helper()
	const length = int64(1e8)
	x, flows, last := newTimeline(t, c, intervals+more, length), map[hashing.Flow]*flowTruth{}, int64(intervals)*length
	for now := int64(0); now < last; now += int64(gap * r.ExpFloat64()) {
		f, p := nth(r.IntN(50)), hashing.Packet(r.Uint64())
		took, again, lost := way(now)
		x.pass(f, p, now, now+took, lost)
		if at := (now + took + again) / length; again > 0 && at < int64(len(x.down)) {
			x.down[at].Update(f, p, now+took+again)
		}
		if flows[f] == nil {
			flows[f] = new(flowTruth)
		}
		switch of := flows[f]; {
		case lost:
			of.lost++
		case now+took < last+int64(more)*length:
			of.came++
			of.took += float64(took)
		}
	}
	a := mustAccumulate(t, c)
	x.addAll(t, a)
	return a, flows
}

// Cells of busy flows always have packets on their way, behind which copies hide: cells say far too little, and are not believed.
func TestHiddenCopies(t *testing.T) {
	random, off := rand.New(rand.NewPCG(8, 2)), 0
	a, flows := watch(t, DefaultConfig, random, 1e5, 60, 0, func(int64) (took, again int64, lost bool) {
		if took = int64(5e7 + 8e6*random.ExpFloat64()); random.IntN(500) == 0 {
			again = 1e6
		}
		return took, again, false
	})
	for f, of := range flows {
		r, err := a.Estimate(f)
		i := r.MeanInterval(0.95)
		if err != nil || !r.MeanInterval(0.999).Contains(of.mean()) || i.High-i.Low > of.mean() {
			t.Errorf("%+v, want %.3f ms, %v", r, of.mean()/1e6, err)
		}
		if x := a.known[a.config.at(0, f, 0)]; x.beyond/x.packets < 0.95*of.mean() {
			off++
		}
	}
	if off < len(flows)/2 {
		t.Errorf("copies show in all but %d cells", off)
	}
}

// How long others took in the same intervals is told by whole spans: areas of intervals are delays only where
// nothing crosses cuts. Where a fifth is lost, some flows are in uncertain cells alone. Decode once guessed
// their delays from these cells' sums, as if they were certain, and trusted its guesses: 37 of 200 missed. Nor
// are they sure because cells agree where many packets are on their way at once: there 10 of 100 missed.
func TestConstantDelaysAmongLosses(t *testing.T) {
	c, answers, decoded := DefaultConfig, 0.0, 0.0
	for i, took := range []int64{5e7, 1e8, 2e8, 3e8, 6e8, 1e8, 2e8} {
		random, often, gap := rand.New(rand.NewPCG(8, 3)), 100, 1e6
		if i > 0 {
			c.Columns, often = 500, 5
		}
		if i > 4 {
			gap = 1e5
		}
		a, flows := watch(t, c, random, gap, 40, 30, func(int64) (_, again int64, lost bool) { return took, 0, random.IntN(often) == 0 })
		o := holding(t, a, flows)
		if i == 0 && (min(o.answers, o.read, o.decoded) < 50 || at(0.9, o.wide) > 1) {
			t.Errorf("%v answers, in intervals %v, %v decoded", o.answers, o.read, o.decoded)
		}
		answers, decoded = answers+o.answers, decoded+o.decoded
	}
	if answers < 340 || decoded < answers-3 {
		t.Errorf("%v decoded of %v", decoded, answers)
	}
}

// What is lost in the last interval of a report is outstanding like what is on its way. Where none is known to
// be lost, only the number tells the two apart; all may have been sent at any time.
func TestLossesAtTheEnd(t *testing.T) {
	for _, intervals := range []int64{3, 10, 30} {
		random, answers, held := rand.New(rand.NewPCG(8, 7)), 0.0, 0.0
		for range 4 {
			a, flows := watch(t, lossless, random, 6e4, int(intervals), 0, func(now int64) (took, again int64, lost bool) {
				late := now - (intervals-1)*1e8
				return int64(1.8e6 * random.ExpFloat64()), 0, late > 1e7 && late < 25e6
			})
			o := holding(t, a, flows)
			answers, held = answers+o.answers, held+min(o.read, o.decoded)
		}
		if t.Logf("%d intervals: %v of %v hold", intervals, held, answers); answers < 20 || held < 0.95*answers {
			t.Errorf("%d intervals: %v of %v hold", intervals, held, answers)
		}
	}
}

// What was sent before the second point began is lost, and cells in which nothing came meanwhile are as exact as if they had been silent.
func TestSecondPointBeginsLate(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 5))
	a, flows := watch(t, DefaultConfig, random, 2e6, 60, 20, func(now int64) (took, again int64, lost bool) {
		took = max(int64(5e6*random.ExpFloat64()), 1e9*int64(1-min(1, random.IntN(500)))) // one in 500 takes a second
		return took, 0, now+took < 55e7
	})
	if o := holding(t, a, flows); min(o.answers, o.read+2, o.decoded+2) < 50 || at(0.6, o.wide) > 1 {
		t.Errorf("%v answers, in intervals %v, %v decoded, %g ns wide", o.answers, o.read, o.decoded, at(0.6, o.wide))
	}
}

// Packets that take longer than they are waited for count as lost. Those that come show how long they take, and
// what flows lack may still come: without that six of 50 intervals missed.
func TestSlowerThanWaitedFor(t *testing.T) {
	random, c := rand.New(rand.NewPCG(8, 9)), DefaultConfig
	c.Columns = 500
	a, flows := watch(t, c, random, 1e6, 1000, 0, func(int64) (took, again int64, lost bool) {
		return max(1e6, 4e10*int64(1-min(1, random.IntN(100)))), 0, false
	})
	o := holding(t, a, flows)
	if t.Logf("%v answers, %v and %v in intervals", o.answers, o.read, o.decoded); o.answers < 45 || min(o.read, o.decoded) < o.answers-2 {
		t.Error("too few")
	}
}

func holding(t *testing.T, a *Accumulator, flows map[hashing.Flow]*flowTruth) (o owing) {
	known := map[uint64]truth.Window{}
	for f, of := range flows {
		known[uint64(f)] = truth.Window{Sent: int(of.came) + int(of.lost), Received: int(of.came), Delays: of.took}
	}
	o.report(t, a, known)
	return o
}

// A copy that comes while others are on their way shows later, where fewer than zero are outstanding, though
// others hide it again and no other copy is known of.
func TestOneCopy(t *testing.T) {
	c, out := lossless, 0
	c.Columns = 500
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 5))
		a, flows := watch(t, c, random, 1e6, 240, 0, func(int64) (took, again int64, lost bool) {
			if took = int64(2e8 * random.Float64()); random.IntN(8000) == 0 {
				again = 1e7
			}
			return took, again, false
		})
		for f, of := range flows {
			if r, err := a.Estimate(f); err != nil || !r.MeanInterval(0.999).Contains(of.mean()) {
				out++
			}
		}
	}
	if out > 7 { // where 2 are due
		t.Errorf("%d of 2,000 outside intervals of 99.9 %%", out)
	}
}

// Where slow packets come twice, cells receive more than was sent. If nothing was lost, each may be as slow as any that is
// known, though not as slow as the report is long, and no more intervals are wide than there are copies that come after the
// next cut. Where as many are lost as come twice, Lost still counts them. Where a third come twice, there is no answer.
func TestCopies(t *testing.T) {
	c := DefaultConfig
	c.Columns = 500
	for _, test := range []struct{ slow, loss float64 }{{40e6, 0}, {25e6, 0.02}, {10e6, 0}} {
		random, wide, lost, apart := rand.New(rand.NewPCG(8, 1)), 0, 0, 0
		a, flows := watch(t, c, random, 1e6, 295, 5, func(now int64) (took, again int64, lost bool) {
			if took = int64(5e6 + 8e6*random.ExpFloat64()); float64(took) > test.slow {
				again = 3e6
			}
			apart += int((now+took+again)/1e8 - (now+took)/1e8)
			return took, again, again == 0 && random.Float64() < test.loss
		})
		for f, of := range flows {
			r, err := a.Estimate(f)
			if test.slow < 20e6 {
				if !errors.Is(err, estimate.ErrNoSamples) {
					t.Errorf("most come twice: %+v, %v", r, err)
				}
				continue
			}
			i := r.MeanInterval(0.95)
			if err != nil || !r.MeanInterval(0.999).Contains(of.mean()) || r.Lost < of.lost || r.Late == 0 {
				t.Errorf("%+v: %+v, want %.3f ms, %d lost, %v", test, r, of.mean()/1e6, of.lost, err)
			}
			if i.High-i.Low > 2*of.mean() {
				wide++
			}
			if int(r.Received)+int(of.lost) > int(r.Sent) { // fewer seem to be lost than are
				lost++
			}
		}
		if test.loss == 0 && wide > apart || test.loss > 0 && lost < 10 {
			t.Errorf("%+v: %d too wide, losses hidden in %d", test, wide, lost)
		}
	}
}

// Where the far point holds what comes for seconds, all of it counts as lost. When it comes after all,
// intervals allow for it, though the report ends before cells have settled.
func TestHeldPacketsAreLate(t *testing.T) {
	c := DefaultConfig
	c.Columns = 200
	for seed := range uint64(3) {
		free, in := int64(0), 0
		random, stop := rand.New(rand.NewPCG(seed, 4)), int64(8e9+seed*3e9)
		a, flows := watch(t, c, random, 2e6, 200, 0, func(now int64) (int64, int64, bool) {
			came := now + 3e6
			if came > stop && came < stop+6e9 {
				came = stop + 6e9
			}
			free = max(came, free) + 666_667
			return free - now, 0, false
		})
		for f, of := range flows {
			if r, err := a.Estimate(f); err != nil || r.MeanInterval(0.95).Contains(of.mean()) {
				in++
			}
		}
		if in < 47 { // of 50
			t.Errorf("stopped at %d s: %d in their intervals", stop/1e9, in)
		}
	}
}

// What a stall holds over a report's end passes for lost, and comes in the next report: a flow's mean may be greater
// by what came for it. If it were by what came for all, one in eight would miss. A stall that is over does not change
// how long others took, with which flows that lose some are compared. If it did, half of their means would be off.
func TestStallOverAnEnd(t *testing.T) {
	for end, loss := range map[int64]float64{82e9: 0, 75e9: 0.05} {
		var took, came [300]float64
		x, a, random := newTimeline(t, DefaultConfig, 100, 1e9), mustAccumulate(t, DefaultConfig), rand.New(rand.NewPCG(8, 6))
		for now := int64(0); now < 100e9; now += int64(1.5e6 * random.ExpFloat64()) {
			f, at, lost := int(300*math.Pow(random.Float64(), 3)), now+5e6, random.Float64() < loss
			if now > 72e9 && now < end {
				at = end + int64(f)
			}
			if x.pass(nth(f), hashing.Packet(random.Uint64()), now, at, lost); !lost && at >= 80e9 && at < 100e9 {
				took[f], came[f] = took[f]+float64(at-now), came[f]+1
			}
		}
		for k := range 100 {
			if x.add(t, a, k); k == 79 {
				a.Reset()
			}
		}
		wrong := 0
		for f, n := range came {
			r, err := a.Estimate(nth(f))
			if err == nil && !r.MeanInterval(0.999).Contains(took[f]/n) || loss > 0 && math.Abs(r.Mean-5e6) > 10 {
				wrong++
			}
		}
		if wrong > 10 {
			t.Errorf("stalled until %d, loss %g: %d of 300 are wrong", end, loss, wrong)
		}
	}
}

// A far clock that is 100 ms behind and gains 100 millionths leaves every flow's delay as it is, once the far sketch is corrected.
func TestCorrect(t *testing.T) {
	const start = 1_790_000_000_000_000_000
	c := shapes()["plain"]
	c.SumBits, c.GreatestDelay = 40, 1e6
	ahead := func(at int64) int64 { return -100_000_000 + (at-start)/10_000 }
	stream := packets(1, 500, 8)
	for i := range stream {
		stream[i].sent += start
	}
	up, exact := fill(t, c, stream)
	for i, p := range stream {
		stream[i].delay += ahead(p.sent + p.delay)
	}
	_, far := fill(t, c, stream)
	far.Correct(clock.Reading{Time: start + 5e8, Offset: float64(ahead(start + 5e8)), Drift: 1e-4})
	for i := range uint64(8) {
		flow := hashing.Flow(hashing.Word(1, i))
		want, err := Estimate(up, exact, flow)
		got, errFar := Estimate(up, far, flow)
		if err != nil || errFar != nil || math.Abs(got.Mean-want.Mean) > 1 {
			t.Errorf("flow %d: mean %.1f, %v; with clocks that agree %.1f, %v", i, got.Mean, errFar, want.Mean, err)
		}
	}
}
