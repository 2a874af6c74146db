package trace_test

import (
	"fmt"

	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/queue/trace"
)

// Traffic like TCP's at 70 % of a link's rate, and how long it waits there.
func ExampleNewFlows() {
	config := trace.DefaultFlows
	config.Load.Utilisation = 0.7
	config.Seed = 1
	source, err := trace.NewFlows(config)
	if err != nil {
		panic(err)
	}
	link, err := queue.NewLink(queue.LinkConfig{Rate: config.Load.Rate})
	if err != nil {
		panic(err)
	}
	var p queue.Packet
	var n, delay float64
	for source.Next(&p); p.Time < 100e6; source.Next(&p) { // 100 ms
		egress, _ := link.Send(p.Time, int(p.Bytes))
		delay += float64(egress - p.Time)
		n++
	}
	fmt.Printf("%.0f packets took %.0f µs on average\n", n, delay/n/1e3)
	// Output: 251598 packets took 8 µs on average
}
