package queue_test

import (
	"math"
	"testing"

	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/queue/trace"
)

// A cycle is what one busy cycle, from an arrival at an empty link to the
// next, adds to the sums that a mean waiting time is made of. Cycles of a link
// with Poisson arrivals are independent, packets are not.
type cycle struct{ waits, packets float64 }

// deviations returns by how many standard deviations the mean wait of these
// cycles is off: the sum of waits-mean·packets over cycles has mean zero if
// the mean is right, and its variance is the sum of its squares.
func deviations(cycles []cycle, mean float64) float64 {
	sum, squares := 0.0, 0.0
	for _, c := range cycles {
		z := c.waits - mean*c.packets
		sum += z
		squares += z * z
	}
	return sum / math.Sqrt(squares)
}

// falseAlarm is how many standard deviations a normal variable exceeds with a
// chance of 1 in 10^6.
const falseAlarm = 4.9

// waits sends n packets into an unlimited link and returns its busy cycles.
// next returns the next packet's time and size.
func waits(t *testing.T, rate int64, n int, next func() (int64, int)) (cycles []cycle) {
	link, err := queue.NewLink(queue.LinkConfig{Rate: rate})
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		at, bytes := next()
		if backlog := link.Backlog(at); backlog == 0 {
			cycles = append(cycles, cycle{})
		}
		egress, fate := link.Send(at, bytes)
		if fate != queue.Passed {
			t.Fatalf("a packet is %v", fate)
		}
		c := &cycles[len(cycles)-1]
		c.waits += float64(egress-at) - float64(bytes)*8e9/float64(rate)
		c.packets++
	}
	return cycles[:len(cycles)-1] // the last is not over
}

// Packets of one size: a wait of ρ·S/(2(1-ρ)) on average, where S is the
// service time (Pollaczek and Khinchine). Times are rounded to 1 ns where S is
// 12,000: nothing beside the tolerance, about half a percent.
func TestMD1(t *testing.T) {
	queue.Heavy(t)
	const rate, bytes = 1e9, 1500
	for _, load := range []float64{0.2, 0.55, 0.7, 0.88} {
		source, err := trace.NewPoisson(trace.PoissonConfig{
			Load: trace.Load{Rate: rate, Utilisation: load}, Sizes: trace.Fixed(bytes), Flows: 1, Seed: 11,
		})
		if err != nil {
			t.Fatal(err)
		}
		cycles := waits(t, rate, 1_000_000, func() (int64, int) {
			var p queue.Packet
			source.Next(&p)
			return p.Time, int(p.Bytes)
		})
		service := bytes * 8e9 / rate
		mean := load * service / (2 * (1 - load))
		if z := deviations(cycles, mean); math.Abs(z) > falseAlarm {
			t.Errorf("load %v: mean wait is %.1f deviations from %.0f ns", load, z, mean)
		}
		if z := deviations(cycles, 2*mean); math.Abs(z) <= falseAlarm {
			t.Errorf("negative control: load %v passes for random service times, %.1f deviations", load, z)
		}
	}
}
