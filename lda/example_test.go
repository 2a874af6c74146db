package lda_test

import (
	"fmt"
	"slices"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

// Two points, one interval: each counts every packet, one sends what it has to the other, and mean delay and loss come out.
func ExampleEstimate() {
	const seed = 0x8d3c5f21b96e0a47 // secret, and the same at both points
	config := lda.DefaultConfig
	config.Identity = hashing.Fingerprint(seed)
	up, _ := lda.New(config)
	down, _ := lda.New(config)
	for i := range int64(100_000) {
		header := fmt.Appendf(nil, "the bytes of packet %d that do not change on the way", i)
		p, now := hashing.Digest(seed, header), i*1000
		up.Update(p, now)
		if i%1000 != 0 { // one in a thousand is lost
			down.Update(p, now+20_000+i%100) // 20 µs later
		}
	}
	data, _ := up.MarshalBinary() // 70 KiB, to be sent to the other point

	var sent lda.Aggregator
	if err := sent.UnmarshalBinary(data); err != nil {
		fmt.Println(err)
	}
	r, err := lda.Estimate(&sent, down)
	fmt.Printf("mean %.1f ns, deviation %.0f ns, lost %d of %d, error %v\n", r.Mean, r.StdDev, r.Lost, r.Sent, err)
	// Output:
	// mean 20049.6 ns, deviation 28 ns, lost 100 of 100000, error <nil>
}

// Classes of packets, as a switch sorts them: the first rule that fits a packet's header names its class (section V), and each class has
// an aggregator. Merged, they are what one of all packets would be.
func ExampleAggregator_classes() {
	rules := []func(*hashing.Tuple) bool{
		func(t *hashing.Tuple) bool { return t.Proto == 6 && t.DstPort == 443 },
		func(t *hashing.Tuple) bool { return t.Proto == 17 },
		func(*hashing.Tuple) bool { return true },
	}
	var classes [3]*lda.Aggregator
	all, _ := lda.New(lda.DefaultConfig)
	for i := range classes {
		classes[i], _ = lda.New(lda.DefaultConfig)
	}
	for i := range uint64(600) {
		t := hashing.Tuple{Proto: uint8(6 + 11*(i%2)), DstPort: uint16(442 + i%3)}
		class := slices.IndexFunc(rules, func(fits func(*hashing.Tuple) bool) bool { return fits(&t) })
		classes[class].Update(hashing.Word(1, i), int64(i))
	}
	for i, c := range classes {
		fmt.Println("class", i, c.Packets())
		if err := all.Merge(c); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("all", all.Packets())
	// Output:
	// class 0 100
	// class 1 300
	// class 2 200
	// all 600
}

// What to build for a million packets an interval of which up to a fiftieth may be lost, and what to expect of it.
func ExamplePlan() {
	demand := lda.Demand{Packets: 1e6, Loss: 0.02, MeanError: 0.02, Variation: 1}
	config, err := lda.Plan(demand)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(config.Banks[0].Rows, "cells,", config.EncodedSize(), "bytes")
	for _, loss := range []float64{0, 0.02} {
		sample, _ := config.Expect(demand.Packets, loss)
		fmt.Printf("%g %% lost: %.0f packets seen\n", 100*loss, sample)
	}
	// Output:
	// 256 cells, 3614 bytes
	// 0 % lost: 7812 packets seen
	// 2 % lost: 4159 packets seen
}

// A tap takes frames off a ring in bursts: an Identifier finds the packets among them, and one call counts those.
func ExampleAggregator_UpdateBatch() {
	const seed = 0x8d3c5f21b96e0a47
	config := lda.DefaultConfig
	config.Identity = hashing.Fingerprint(seed)
	point, _ := lda.New(config)
	identifier := hashing.NewIdentifier(seed, hashing.LinkEthernet, hashing.DefaultTunnels)

	ethernet := []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00}
	udp := []byte{0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 53, 16, 0, 0, 8, 0, 0}
	arp := []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x06}
	ring := [][]byte{append(ethernet, udp...), arp} // what the ring hands over

	packets := make([]hashing.Packet, len(ring))
	n := identifier.Frames(ring, packets, nil, nil)
	point.UpdateBatch(packets[:n], 1_800_000_000_000_000_000) // when it was handed over
	fmt.Println(point.Packets(), "packet of", len(ring), "frames")
	// Output:
	// 1 packet of 2 frames
}
