package queue

import (
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
	out, _ := drive(must(NewScheduler(SchedulerConfig{Rate: rate}))(t), packets, 2)
	reordered := 0
	for i := range fifo {
		if out[i].Time != fifo[i].Time {
			t.Fatalf("departure %d at %d, want %d", i, out[i].Time, fifo[i].Time)
		}
		if out[i].Seq != fifo[i].Seq {
			reordered++
		}
	}
	if reordered < 100 {
		t.Errorf("only %d packets in another order: the test shows nothing", reordered)
	}
}
