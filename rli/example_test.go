package rli_test

import (
	"fmt"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/queue/trace"
	"github.com/hoplag/hoplag/rli"
)

// An injector and a receiver at the two ends of a 10 Gb/s queue.
func Example() {
	const rate = 10e9
	link, err := queue.NewLink(queue.LinkConfig{Rate: rate})
	if err != nil {
		panic(err)
	}
	traffic, err := trace.NewPoisson(trace.PoissonConfig{
		Load: trace.Load{Rate: rate, Utilisation: 0.6}, Sizes: trace.IMIX, Flows: 100, Seed: 1,
	})
	if err != nil {
		panic(err)
	}
	injector, err := rli.NewInjector(rli.InjectorConfig{Every: 20})
	if err != nil {
		panic(err)
	}
	c := rli.DefaultConfig
	c.Rate, c.ReferenceBytes = rate, 64
	receiver, err := rli.NewReceiver(c)
	if err != nil {
		panic(err)
	}

	var flow hashing.Flow
	truth, n := 0.0, 0
	for range 100000 {
		var p queue.Packet
		traffic.Next(&p)
		out, _ := link.Send(p.Time, int(p.Bytes))
		receiver.Update(p.Flow, int(p.Bytes), out)
		if reference, ok := injector.Packet(int(p.Bytes), p.Time); ok {
			out, _ := link.Send(p.Time, 64)
			receiver.Reference(reference, out)
		}
		if n == 0 {
			flow = p.Flow
		}
		if p.Flow == flow {
			truth += float64(out - p.Time)
			n++
		}
	}
	receiver.Flush()

	result, err := receiver.Estimate(flow)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d packets, mean %.0f ns, in truth %.0f ns\n", result.N, result.Mean, truth/float64(n))
	// Output: 983 packets, mean 812 ns, in truth 814 ns
}
