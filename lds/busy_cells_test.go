package lds

import (
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// TestCellsThatNeverEmpty asks for flows whose cells always have packets on their
// way, soon after the beginning and later, with losses and without. Intervals hold the
// time that packets spent on their way, though no cell shows when some were lost.
// Intervals a tenth as wide, the control, do not.
func TestCellsThatNeverEmpty(t *testing.T) {
	narrow := 0
	for _, delay := range []float64{0.3, 1} { // in intervals
		for _, loss := range []float64{0, 0.01, 0.05} {
			misses, tenths, answers := busyCells(t, delay, loss)
			t.Logf("delay %g, loss %g: %d of %d outside, %d of a tenth", delay, loss, misses, answers, tenths)
			// Of intervals of 95 %, 11 of 90 are outside once in a thousand runs.
			if answers < 50 || misses > 11 {
				t.Errorf("delay %g, loss %g: %d of %d outside", delay, loss, misses, answers)
			}
			narrow += tenths
		}
	}
	if narrow < 60 {
		t.Errorf("intervals a tenth as wide miss %d times", narrow)
	}
}

// busyCells counts answers of 30 flows after 2, 5 and 16 intervals.
func busyCells(t *testing.T, delay, loss float64) (misses, tenths, answers int) {
	const flows, packets, intervals, length, start = 30, 100, 16, int64(1e9), int64(1e15)
	c := DefaultConfig
	c.Columns = 600
	var up, down [intervals]*Sketch
	for i := range up {
		up[i], down[i] = mustNew(t, c), mustNew(t, c)
	}
	type packet struct {
		sent, received int64
		flow           int
		lost           bool
	}
	random := rand.New(rand.NewPCG(3, 14))
	var all []packet
	for i := range flows * packets * intervals {
		sent := random.Int64N(intervals * length)
		p := packet{sent, sent + int64(delay*float64(length)*random.ExpFloat64()), i % flows, random.Float64() < loss}
		f, id := hashing.Flow(hashing.Word(50, uint64(p.flow))), hashing.Packet(hashing.Word(7, uint64(i)))
		up[p.sent/length].Update(f, id, start+p.sent)
		if at := p.received / length; !p.lost && at < intervals {
			down[at].Update(f, id, start+p.received)
		}
		all = append(all, p)
	}
	a := mustAccumulate(t, c)
	for i := range up {
		if err := a.Add(start+int64(i)*length, start+int64(i+1)*length, up[i], down[i]); err != nil {
			t.Fatal(err)
		}
		if i != 1 && i != 4 && i != 15 {
			continue
		}
		var way, received [flows]float64
		end := int64(i+1) * length
		for _, p := range all {
			if p.sent < end && !p.lost {
				way[p.flow] += float64(min(end, p.received) - p.sent)
				if p.received < end {
					received[p.flow]++
				}
			}
		}
		for f := range flows {
			r, err := a.Estimate(hashing.Flow(hashing.Word(50, uint64(f))))
			within := r.MeanInterval(0.95)
			if err != nil || !within.Bounded() {
				continue
			}
			mean := way[f] / received[f]
			tenth := estimate.Interval{Low: r.Mean - (r.Mean-within.Low)/10, High: r.Mean + (within.High-r.Mean)/10}
			answers++
			misses += outside(within, mean)
			tenths += outside(tenth, mean)
		}
	}
	return misses, tenths, answers
}

// outside returns 1 if a figure is outside an interval by more than rounding.
func outside(within estimate.Interval, figure float64) int {
	if within.Low-1 <= figure && figure <= within.High+1 {
		return 0
	}
	return 1
}
