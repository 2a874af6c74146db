package areas

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestAlikePackets: a few packets share one digest and take ten times as long as the others. At a report's end
// nothing tells which of them are on their way, and the interval says so. Where some of them are lost, those
// that come may be any.
func TestAlikePackets(t *testing.T) {
	for _, loss := range []float64{0, 0.05} {
		if n, of := alikeReports(loss, 0xabcdef01); n > allowedOutside || of < 40 {
			t.Errorf("loss %v: %d of %d reports are outside of 97.5 %%", loss, n, of)
		}
	}
	if n, of := alikeReports(0, 0); n > allowedOutside { // the control: all digests differ
		t.Errorf("unlike: %d of %d reports are outside of 97.5 %%", n, of)
	}
}

// allowedOutside is a number that 60 reports exceed once in 1,000 times if 97.5 % of them hold.
const allowedOutside = 6

// alikeReports returns how many reports of one second were outside, of how many. Packets of each tenth of a
// second fall into few cells.
func alikeReports(loss float64, digest uint32) (outside, answered int) {
	const cells, cut, cuts, report = 256, 100e6, 630, 10
	r := rand.New(rand.NewPCG(9, uint64(digest)))
	pairs := make([][cells]CellPair, cuts+10)
	var received, time [cuts + 10]float64
	for now := 0.0; now < cuts*cut; now += r.ExpFloat64() * 1e6 {
		cell, tally, delay, lost := r.IntN(cells), uint64(r.Uint32())<<32|1, 1e6+5e6*r.ExpFloat64(), 0.0
		if r.Float64() < 0.01 {
			if delay, lost = delay+60e6, loss; digest != 0 {
				cell, tally = 0, uint64(digest)<<32|1
			}
		}
		sent := &pairs[int(now/cut)][cell]
		sent.SentSum += uint64(now)
		sent.SentTally += tally
		if r.Float64() < lost {
			continue
		}
		came := int((now + delay) / cut)
		at := &pairs[came][cell]
		at.ReceivedSum += uint64(now + delay)
		at.ReceivedTally += tally
		received[came]++
		time[came] += math.Floor(now+delay) - math.Floor(now)
	}
	a := New([]int{cells}, 64, 32)
	for k := range cuts {
		for i, p := range pairs[k] {
			a.Cut(i, p)
		}
		if a.Next(int64((k + 1) * cut)); k < 2*report || k%report != 4 {
			continue
		}
		to := k + 1 - 5
		x, err := a.Transit(to-report, to, nil)
		a.Settle(to)
		if err != nil {
			continue
		}
		n, sum := 0.0, 0.0
		for j := to - report; j < to; j++ {
			n += received[j]
			sum += time[j]
		}
		answered++
		mean := x.Mean + (x.First.Ages-x.Last.Ages)/x.Received
		variance := sq(x.Error) + (x.First.Variance+x.Last.Variance+sq(x.First.Shared-x.Last.Shared))/sq(x.Received)
		if math.Abs(mean-sum/n) > 2.24*1.15*math.Sqrt(variance)+1 {
			outside++
		}
	}
	return outside, answered
}
