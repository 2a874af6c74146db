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
	injector, err := rli.NewInjector(rli.InjectorConfig{Every: 20, ReferenceBytes: 64})
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
	// Output: 983 packets, mean 801 ns, in truth 814 ns
}

// A reference packet on the wire.
func ExampleReferencePacket() {
	p := rli.ReferencePacket{Sequence: 7, Sent: 1_000_000, Behind: 1500}
	wire, err := p.MarshalBinary()
	if err != nil {
		panic(err)
	}
	var q rli.ReferencePacket
	if err := q.UnmarshalBinary(wire); err != nil {
		panic(err)
	}
	fmt.Println(len(wire), q == p)
	// Output: 35 true
}

// Records of flows that ended are given over as they would be to a collector.
func ExampleReceiver_Expire() {
	c := rli.DefaultConfig
	c.Inactive = 30e9
	receiver, err := rli.NewReceiver(c)
	if err != nil {
		panic(err)
	}
	receiver.Reference(rli.ReferencePacket{Sequence: 0, Sent: 0}, 400)
	receiver.Update(0xF00D, 1000, 1000)
	receiver.Update(0xF00D, 1000, 2000)
	receiver.Reference(rli.ReferencePacket{Sequence: 1, Sent: 2000}, 2800)
	for flow, r := range receiver.Expire(60e9) {
		fmt.Printf("flow %x: %d packets, mean %.1f ns, deviation %.1f ns\n", uint64(flow), r.N, r.Mean, r.StdDev)
	}
	fmt.Println(receiver.Flows(), "left")
	// Output:
	// flow f00d: 2 packets, mean 583.5 ns, deviation 83.5 ns
	// 0 left
}
