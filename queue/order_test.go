package queue

import (
	"math"
	"testing"
)

func TestFIFOOrder(t *testing.T) {
	out, _ := drive(must(NewFIFO(lossyLink))(t), tracked(5000, 7), 3)
	for i := 1; i < len(out); i++ {
		if out[i].Seq <= out[i-1].Seq {
			t.Fatalf("packet %d came out after %d", out[i].Seq, out[i-1].Seq)
		}
	}
}

// While a packet of class High waits, none of class Low begins.
func TestPriorityOrder(t *testing.T) {
	const rate = 1e9
	s := must(NewScheduler(SchedulerConfig{Rate: rate}))(t)
	out, _ := drive(s, tracked(5000, 8), 0)
	overtaken := 0
	for i, low := range out {
		if low.Class != Low {
			continue
		}
		began := low.Time - int64(float64(low.Bytes)*8e9/rate)
		for _, high := range out[i+1:] {
			if high.Class == High && high.Sent < began-1 { // 1 ns of rounding
				t.Fatalf("a Low packet began at %d while a High one had waited since %d", began, high.Sent)
			}
			if high.Class == High && high.Sent >= began {
				break
			}
		}
		if i > 0 && out[i-1].Seq > low.Seq {
			overtaken++
		}
	}
	if overtaken < 100 {
		t.Errorf("only %d Low packets were overtaken: the test shows nothing", overtaken)
	}
}

// Whatever the order of service, the link is never idle while a packet waits:
// packets of one size leave at the same times.
func TestWorkConservation(t *testing.T) {
	packets := tracked(5000, 15)
	for i := range packets {
		packets[i].Bytes = 500
	}
	const rate = 7e9 + 1
	fifo, _ := drive(must(NewFIFO(LinkConfig{Rate: rate}))(t), packets, 0)
	for _, weights := range [][Classes]int{{}, {500, 500}, {1500, 100}} {
		out, _ := drive(must(NewScheduler(SchedulerConfig{Rate: rate, Weights: weights}))(t), packets, 2)
		reordered := 0
		for i := range fifo {
			if out[i].Time != fifo[i].Time {
				t.Fatalf("weights %v: departure %d at %d, want %d", weights, i, out[i].Time, fifo[i].Time)
			}
			if out[i].Seq != fifo[i].Seq {
				reordered++
			}
		}
		if reordered < 100 {
			t.Errorf("weights %v: only %d packets in another order: the test shows nothing", weights, reordered)
		}
	}
}

// While both classes wait, neither gets more than its share: service counted
// in rounds differs by at most one round and, for each class, a packet.
func TestWeightedShares(t *testing.T) {
	weights := [Classes]int{3000, 1000}
	s := must(NewScheduler(SchedulerConfig{Rate: 1e9, Weights: weights}))(t)
	random := generator(3, 3)
	const n, largest = 4000, 1500
	var total [Classes]int
	for i := range n { // all at once, so that both wait
		p := Packet{Bytes: 1 + int32(random.Uint64()%largest), Class: Class(i % 2)}
		total[p.Class] += int(p.Bytes)
		s.Send(&p)
	}
	var served [Classes]int
	var p Packet
	for s.Next(math.MaxInt64, &p) {
		served[p.Class] += int(p.Bytes)
		if served[High] == total[High] || served[Low] == total[Low] {
			break
		}
		high, low := float64(served[High])/float64(weights[High]), float64(served[Low])/float64(weights[Low])
		if slack := 1 + largest/float64(weights[High]) + largest/float64(weights[Low]); math.Abs(high-low) > slack {
			t.Fatalf("%v bytes served, %.2f and %.2f rounds: more than %.2f apart", served, high, low, slack)
		}
	}
	if served[High] < total[High]/2 {
		t.Errorf("only %v of %v bytes compared", served, total)
	}
}

// A class that falls empty keeps nothing of its turn for later.
func TestWeightsAreNotSaved(t *testing.T) {
	s := must(NewScheduler(SchedulerConfig{Rate: 8e9, Weights: [Classes]int{1000, 1000}}))(t)
	for i, p := range []Packet{
		{Class: High, Bytes: 100}, // would leave 900 bytes
		{Class: Low, Bytes: 500, Time: 5000},
		{Class: High, Bytes: 900, Time: 5001}, {Class: High, Bytes: 900, Time: 5001},
		{Class: Low, Bytes: 900, Time: 5001}, {Class: Low, Bytes: 900, Time: 5001},
	} {
		p.Seq = uint64(i)
		s.Send(&p)
	}
	var p Packet
	for _, want := range []uint64{0, 1, 2, 4, 3, 5} {
		if !s.Next(math.MaxInt64, &p) || p.Seq != want {
			t.Errorf("packet %d, want %d", p.Seq, want)
		}
	}
}
