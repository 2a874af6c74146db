package flows

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/hashing"
)

// An entry is a packet that passed.
type entry struct {
	flow   hashing.Flow
	packet hashing.Packet
	time   int64
}

// A packet that comes after it has counted as lost is on its way all that time; one that was never sent has no delay.
func TestFlowWithLatePackets(t *testing.T) {
	const length = int64(1e8)
	w := New(10, time.Duration(length), 0, false)
	up, down := NewTable(10), NewTable(10)
	late := entry{flow: 1, packet: 0x5_0000_0000} // in the cell of few packets
	late.time = 35e7
	for cut := range int64(60) {
		up.Reset(10)
		down.Reset(10)
		sent := entry{flow: 1, packet: hashing.Packet(uint64(cut+9)<<32 | 63), time: cut*length + 1e6}
		up.Update(sent.flow, sent.packet, sent.time)
		sent.time += 5e6
		down.Update(sent.flow, sent.packet, sent.time)
		switch cut {
		case 3:
			up.Update(late.flow, late.packet, late.time)
		case 30:
			late.time = 30*length + 5e7
			down.Update(late.flow, late.packet, late.time)
			down.Update(2, 7<<32, 30*length+5e7)
		}
		w.Add((cut+1)*length, up, down, estimate.Interval{Low: float64(cut), High: float64(cut + 1)})
	}
	w.End()
	known, unknown := w.Report(1, 0, false)
	came := estimate.Interval{Low: 1800.0 / 61, High: 1861.0 / 61, Confidence: 1} // one in each cut, and one more in cut 30
	if len(known) != 1 || unknown != 1 || known[0].Came != came {
		t.Fatalf("%+v known, %d not", known, unknown)
	}
	got := known[0]
	if want := (60*5e6 + 2.7e9) / 61; math.Abs(got.Mean-want) > 0.03*want || !got.MeanInterval95.Contains(want) {
		t.Errorf("mean %.4g in %v, want %.4g", got.Mean, got.MeanInterval95, want)
	}
	x := total{received: 1, exact: span{1, 1e5, 0, 0}, ends: edges{{1, 1, 76e6, 184e6}}} // most of its time was before the report
	if i := x.delay(&areas.Transit{Greatest: 480e6}, 1, 1e9).MeanInterval95; !i.Contains(95.6e6) {
		t.Errorf("%v does not hold 95.6 ms", i)
	}
}

// traceFlows sends packets of flows at random, each flow with delays of its own, and passes to visit what each report says of a flow
// and the true mean delay of the packets received. Reports wait until it is known what was lost.
func traceFlows(seed uint64, number int, gap func(r *rand.Rand, at float64) float64, loss, copies, scatter float64,
	delay func(r *rand.Rand, flow int, at float64) float64,
	visit func(d Delay, mean float64)) {
	const cuts, length = 160, int64(1e8)
	r := rand.New(rand.NewPCG(seed, 1))
	up, down := make([]*Table, cuts+1), make([]*Table, cuts+1)
	for i := range up {
		up[i], down[i] = NewTable(number), NewTable(number)
	}
	var means [cuts/10 + 1][13]estimate.Moments
	for at := 0.0; at < cuts*float64(length); at += gap(r, at) {
		f := 1 + r.IntN(number)
		e := entry{flow: hashing.Flow(f), packet: hashing.Packet(r.Uint64()), time: int64(at)}
		up[e.time/length].Update(e.flow, e.packet, e.time)
		d, came := int64(delay(r, f, at)), r.Float64() >= loss
		for e.time += d; came && e.time < cuts*length; came = r.Float64() < copies {
			down[e.time/length].Update(e.flow, e.packet, e.time)
			means[e.time/(10*length)][f].Add(float64(d))
		}
	}
	w, report, idle := New(number, time.Duration(length), 0, false), 0, false
	for cut := range cuts {
		if idle && (cut+1)%10 > 0 { // points that were idle cut seldom
			up[cut+1].Merge(up[cut])
			down[cut+1].Merge(down[cut])
			continue
		}
		idle = len(up[cut].rows)+len(down[cut].rows) == 0
		w.Add(int64(cut+1)*length, up[cut], down[cut], estimate.Interval{})
		if (cut+1)%10 == 0 {
			w.End()
		}
		for ; len(w.reports) > 4 || len(w.reports) > 1 && w.areas.Cuts()-w.reports[1].from >= w.areas.Settling(90); report++ {
			known, _ := w.Report(scatter, 0, false)
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

// Intervals hold the mean of the packets received in the report, and are a few times as wide as the error: with and without losses, of
// sparse flows and of those that always have packets on their way, where a few packets are far slower, and where copies come and delays
// are long for a while. Hardly any misses where bursts leave a few packets on their way when a report ends, and where traffic begins
// shortly before that, so that in some reports nothing tells what was lost. A tenth as wide, they would miss.
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
		{7, evenly(0.25e6), random(0, 5e6, 1), 0.01, 0, 1, 0.2, 500, 0.05}, {7, evenly(0.25e6), random(0, 20e6, 1), 0.01, 0, 1, 0.2, 700, 0.05},
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

// A flow that lacked room in a cut has no mean then. One that begins long after that has, though it always has packets on their way.
func TestRoom(t *testing.T) {
	w := New(1, 1e8, 0, false)
	for cut := range int64(730) {
		tables := [2]*Table{NewTable(1), NewTable(1)}
		for at := cut * 1e8; at < (cut+1)*1e8; at += 2e6 {
			for point, sent := range [2]int64{at, at - 8e6} {
				for f := range hashing.Flow(4) {
					if c := sent / 1e8; f == 3 && sent >= 0 && c < 10 || f == 2 && (c >= 5 && c < 10 || c > 700) {
						tables[point].Update(f, hashing.Packet(hashing.Word(1, uint64(sent))), at)
					}
				}
			}
		}
		if w.Add((cut+1)*1e8, tables[0], tables[1], estimate.Interval{}); cut%10 == 9 {
			w.End()
			known, _ := w.Report(1, 3e8, true)
			if n := len(known); n > 0 != (cut > 700) || n > 0 && known[0].MeanInterval95.High > 10e6 {
				t.Errorf("cut %d: %+v", cut, known)
			}
		}
	}
}

// Flows that have ended make room for others, even if they lose packets. Where more pass than there is room for, both
// points keep the same ones; a report says how many lacked room, and has no mean of those counted in part.
func TestFlowsComeAndGo(t *testing.T) {
	w := New(10, 1e8, 0, false)
	for cut := range int64(700) {
		phase := max(0, cut/50-11)
		flows, most := [3]int64{8, 13, 200}[phase], [3]int{100, 100, 10}[phase]
		tables := [2]*Table{NewTable(most), NewTable(most)}
		for i := range flows {
			f := hashing.Flow(cut/10*10 + 1 + i + min(i/8, 1)*(1e6+cut*200)) // those beyond 8 pass once
			for point, t := range tables {
				if point == 0 || cut > 610 || cut%10 > 0 { // or it is lost
					t.Update(f, hashing.Packet(hashing.Word(uint64(cut), uint64(f))), cut*1e8+int64(point)*5e6)
				}
			}
		}
		if w.Add((cut+1)*1e8, tables[0], tables[1], estimate.Interval{}); cut%10 == 9 {
			w.End()
		} else if cut%10 == 2 && cut > 10 {
			known, unknown := w.Report(1, 0, false)
			bad := slices.ContainsFunc(known, func(d Delay) bool { return d.Received < 9 && d.Flow < 1e6 || math.Abs(d.Mean-5e6) > 1e5 })
			if n := len(known); bad || cut < 610 && (n != 8 || unknown != 0) || cut > 610 && (n < 5 || unknown < 5 || cut > 660 && unknown < 100) {
				t.Errorf("cut %d: %+v are known, %d not", cut, known, unknown)
			}
		}
	}
}
