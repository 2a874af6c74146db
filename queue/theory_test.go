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

// Under steady overload RED holds the average where it drops just the excess
// f: counted drops come at a rate of 2·p_b, so at Min + (Max-Min)·f/(2·max_p).
// The tolerance is that of batch means. The queue forgets a deviation in about
// (Max-Min)/(2·max_p) = 2,500 packets, a tenth of a batch.
func TestREDHoldsTheAverage(t *testing.T) {
	queue.Heavy(t)
	const overload, batches, perBatch = 1.1, 40, 25_000
	const rate = 1e9
	red := queue.REDConfig{Min: 400, Max: 900, Weight: 0.002, Probability: 0.1, Typical: 500}
	source, err := trace.NewPoisson(trace.PoissonConfig{
		Load: trace.Load{Rate: rate, Utilisation: overload}, Sizes: trace.Fixed(500), Flows: 1, Seed: 13,
	})
	if err != nil {
		t.Fatal(err)
	}
	link, err := queue.NewLink(queue.LinkConfig{Rate: rate, Queue: queue.QueueConfig{Packets: 1000, RED: red}})
	if err != nil {
		t.Fatal(err)
	}
	var p queue.Packet
	send := func() {
		source.Next(&p)
		link.Send(p.Time, int(p.Bytes))
	}
	for range 2 * perBatch { // fill the queue
		send()
	}
	var means []float64
	for range batches {
		sum := 0.0
		for range perBatch {
			send()
			if avg := link.Average(); avg < red.Min || avg > red.Max {
				t.Fatalf("average %v, want between the thresholds, %v and %v", avg, red.Min, red.Max)
			}
			sum += link.Average()
		}
		means = append(means, sum/perBatch)
	}
	mean, squares := 0.0, 0.0
	for _, m := range means {
		mean += m / batches
	}
	for _, m := range means {
		squares += (m - mean) * (m - mean)
	}
	deviation := math.Sqrt(squares / (batches - 1) / batches)
	excess := 1 - 1/overload
	want := red.Min + (red.Max-red.Min)*excess/(2*red.Probability)
	// Student's t of 39 degrees of freedom: 5.7 deviations for 1 in 10^6.
	if math.Abs(mean-want) > 5.7*deviation {
		t.Errorf("average %.0f ± %.0f, want %.0f", mean, deviation, want)
	}
	uncounted := red.Min + (red.Max-red.Min)*excess/red.Probability
	if math.Abs(mean-uncounted) <= 5.7*deviation {
		t.Errorf("negative control: average %.0f ± %.0f also fits RED without counting, %.0f", mean, deviation, uncounted)
	}
}
