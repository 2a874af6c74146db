package queue_test

import (
	"fmt"

	"github.com/hoplag/hoplag/queue"
)

// Packets of 12 µs that arrive every 10 µs at a queue that holds four.
func ExampleLink() {
	link, err := queue.NewLink(queue.LinkConfig{Rate: 1e9, Queue: queue.QueueConfig{Packets: 4}})
	if err != nil {
		panic(err)
	}
	fates, longest := map[queue.Fate]int{}, int64(0)
	for sent := int64(0); sent < 1e6; sent += 10_000 {
		left, fate := link.Send(sent, 1500)
		fates[fate]++
		longest = max(longest, left-sent)
	}
	fmt.Println(fates, longest)
	// Output:
	// map[passed:86 full:14] 48000
}
