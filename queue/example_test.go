package queue_test

import (
	"fmt"

	"github.com/hoplag/hoplag/queue"
)

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
		delay, passed, dropped, marked := 0.0, 0, 0, 0
		var p queue.Packet
		for source.Next(&p) && p.Sent < 2e9 {
			p.Time, p.Fate = link.Send(p.Sent, int(p.Bytes))
			if p.Marked = link.Marked(); p.Marked {
				marked++
			}
			source.Tell(&p)
			if p.Fate != queue.Passed {
				dropped++
				continue
			}
			delay += float64(p.Time - p.Sent)
			passed++
		}
		fmt.Printf("%d delivered after %.0f µs, %d dropped, %d marked\n", passed, delay/float64(passed)/1e3, dropped, marked)
	}
	// Output:
	// 166627 delivered after 856 µs, 1386 dropped, 0 marked
	// 166417 delivered after 216 µs, 39 dropped, 3246 marked
}
