package queue_test

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/queue/trace"
)

// Two hops with cross traffic that joins at the second.
func ExampleChain() {
	var hops [2]queue.Hop
	for i := range hops {
		link, err := queue.NewFIFO(queue.LinkConfig{
			Rate: 1e9, Propagation: 5000, Queue: queue.QueueConfig{Packets: 50}, Seed: uint64(i),
		})
		if err != nil {
			panic(err)
		}
		hops[i] = link
	}
	chain, err := queue.NewChain(hops[:]...)
	if err != nil {
		panic(err)
	}
	load := func(u float64, seed uint64) queue.Source {
		source, err := trace.NewPoisson(trace.PoissonConfig{
			Load: trace.Load{Rate: 1e9, Utilisation: u}, Sizes: trace.IMIX, Flows: 10, Seed: seed,
		})
		if err != nil {
			panic(err)
		}
		return source
	}
	if err := chain.Join(1, load(0.6, 2)); err != nil {
		panic(err)
	}
	source := load(0.4, 1)
	var p queue.Packet
	for range 10_000 {
		source.Next(&p)
		chain.Send(&p)
	}
	delivered, dropped, delay := 0, [2]int{}, 0.0
	for chain.Next(math.MaxInt64, &p) {
		if p.Fate == queue.Passed {
			delivered++
			delay += float64(p.Time - p.Sent)
		} else {
			dropped[p.Hop]++
		}
	}
	fmt.Printf("%d delivered after %.0f µs, %d dropped at the second hop\n", delivered, delay/float64(delivered)/1e3, dropped[1])
	// Output: 9720 delivered after 78 µs, 280 dropped at the second hop
}

// Senders that heed what becomes of their packets, into a queue that drops what
// does not fit, and into one that marks packets before it is full (ECN).
func ExampleClosed() {
	tail := queue.QueueConfig{Packets: 100}
	marking := tail
	marking.RED = queue.REDConfig{Min: 10, Max: 90, Weight: 0.05, Probability: 0.1, Typical: 1500, Mark: true}
	for _, c := range []queue.QueueConfig{tail, marking} {
		link, err := queue.NewLink(queue.LinkConfig{Rate: 1e9, Queue: c})
		if err != nil {
			panic(err)
		}
		source, err := queue.NewClosed(queue.ClosedConfig{
			Senders: 10, Bytes: 1500, Return: 1_000_000, Gap: 1200, Window: 1000, Transfer: 10_000,
		})
		if err != nil {
			panic(err)
		}
		delay := 0.0
		var p queue.Packet
		for source.Next(&p) && p.Sent < 2e9 {
			p.Time, p.Fate = link.Send(p.Sent, int(p.Bytes))
			p.Marked = link.Marked()
			source.Tell(&p)
			if p.Fate == queue.Passed {
				delay += float64(p.Time - p.Sent)
			}
		}
		n := link.Counts()
		fmt.Printf("%d delivered after %.0f µs, %d dropped, %d marked\n", n.Packets[queue.Passed],
			delay/float64(n.Packets[queue.Passed])/1e3, n.Packets[queue.Full], n.Marked)
	}
	// Output:
	// 166627 delivered after 856 µs, 1386 dropped, 0 marked
	// 166417 delivered after 216 µs, 0 dropped, 3246 marked
}
