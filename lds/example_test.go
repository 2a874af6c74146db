package lds_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lds"
)

// traffic calls pass for each packet of three flows: of 1,000 packets delayed by about 20 µs, of 200 by 300 µs, and of 50 by 80 µs.
func traffic(pass func(f hashing.Flow, p hashing.Packet, sent, delay int64)) {
	for i, kind := range []struct{ packets, delay int64 }{{1000, 20_000}, {200, 300_000}, {50, 80_000}} {
		tuple := hashing.MakeTuple(6,
			netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 40_000),
			netip.MustParseAddrPort("192.0.2.1:443"))
		f := tuple.Flow(seed)
		for j := range kind.packets {
			p := hashing.Word(seed, uint64(i)<<32|uint64(j)) // a real program hashes the packet's bytes
			pass(f, p, j*1_000_000, kind.delay+j%10)
		}
	}
}

// seed is shared by the points.
const seed = 2

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func Example() {
	c := lds.DefaultConfig
	c.Identity = seed
	up, down := must(lds.New(c)), must(lds.New(c))
	var flows []hashing.Flow // whose delay is asked for later
	traffic(func(f hashing.Flow, p hashing.Packet, sent, delay int64) {
		up.Update(f, p, sent)
		down.Update(f, p, sent+delay)
		if len(flows) == 0 || flows[len(flows)-1] != f {
			flows = append(flows, f)
		}
	})

	// The upstream point sends its sketch to the downstream point.
	record := must(up.MarshalBinary())
	var received lds.Sketch
	if err := received.UnmarshalBinary(record); err != nil {
		log.Fatal(err)
	}
	for _, f := range flows {
		r := must(lds.Estimate(&received, down, f))
		fmt.Printf("%.1f µs over %d packets, %d lost\n", r.Mean/1e3, r.N, r.Lost)
	}
	_, err := lds.Estimate(&received, down, 12345)
	fmt.Println(errors.Is(err, estimate.ErrNoSamples))
	// Output:
	// 20.0 µs over 1000 packets, 0 lost
	// 300.0 µs over 200 packets, 0 lost
	// 80.0 µs over 50 packets, 0 lost
	// true
}

// A sketch for a link that loses packets: flows are spread over five cells of a
// row, and rows sample at different rates, so that some cells stay usable.
func ExampleEstimate_loss() {
	c := lds.DefaultConfig
	c.Spread, c.Columns = 5, 5*c.Columns
	c.Rates = [lds.MaxRows]float64{1, 0.5, 0.1, 0.01}
	up, down := must(lds.New(c)), must(lds.New(c))
	n := 0
	var flow hashing.Flow
	traffic(func(f hashing.Flow, p hashing.Packet, sent, delay int64) {
		up.Update(f, p, sent)
		if n++; n%200 != 0 { // one in 200 is lost
			down.Update(f, p, sent+delay)
		}
		if flow == 0 {
			flow = f
		}
	})
	r := must(lds.Estimate(up, down, flow))
	fmt.Printf("%.1f µs, %d of %d lost, %d cells usable\n", r.Mean/1e3, r.Lost, r.Sent, r.Usable)
	// Output: 20.0 µs, 5 of 1000 lost, 13 cells usable
}

// In rows of two cells, three flows cannot but share them. Decode, which knows the flows and how many packets they had, tells them apart.
func ExampleDecode() {
	c := lds.DefaultConfig
	c.Columns, c.Rates = 2, [lds.MaxRows]float64{1, 1, 1, 1}
	up, down := must(lds.New(c)), must(lds.New(c))
	var flows []joint.FlowRecord
	traffic(func(f hashing.Flow, p hashing.Packet, sent, delay int64) {
		up.Update(f, p, sent)
		down.Update(f, p, sent+delay)
		if len(flows) == 0 || flows[len(flows)-1].Flow != f {
			flows = append(flows, joint.FlowRecord{Flow: f})
		}
		flows[len(flows)-1].Packets++
	})
	r := must(lds.Decode(context.Background(), up, down, flows, joint.Options{}))
	for i := range flows {
		alone := must(lds.Estimate(up, down, flows[i].Flow))
		fmt.Printf("%3.0f µs ± %.0f, by Estimate %3.0f µs\n", r.Mean[i]/1e3, r.StdDev[i]/1e3, alone.Mean/1e3)
	}
	// Output:
	//  20 µs ± 0, by Estimate  20 µs
	// 300 µs ± 0, by Estimate 300 µs
	//  80 µs ± 0, by Estimate  80 µs
}

// The paper's traffic: 146,000 flows, their sizes Pareto with shape 0.8.
func ExamplePlan() {
	plan, err := lds.Plan(lds.Demand{
		Flows: 146_000, Shape: 0.8, Large: 50,
		Failure: 0.05, // of the flows of more than 50 packets
		Base:    lds.DefaultConfig,
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range append([]lds.Forecast{plan}, plan.Others...) {
		cells := f.Config.Rows * f.Config.Columns
		fmt.Printf("%d flows in a table, %d cells in %d rows: %d kB\n", f.Table.Flows, cells, f.Config.Rows, f.EncodedSize/1000)
	}
	// Output:
	// 15832 flows in a table, 0 cells in 0 rows: 809 kB
	// 8240 flows in a table, 32403 cells in 1 rows: 842 kB
	// 0 flows in a table, 65496 cells in 3 rows: 851 kB
}

// One packet in 250 is lost. With a hundred comparisons a second, most cells are settled most of the time, and it is known when.
func ExampleAccumulator() {
	c := lds.DefaultConfig
	a := must(lds.NewAccumulator(c))
	up, down := must(lds.New(c)), must(lds.New(c))
	for k := range int64(100) {
		const length = 10_000_000
		for i := range int64(50) {
			p, sent := hashing.Word(uint64(k), uint64(i)), k*length+i*length/60
			up.Update(7, p, sent)
			if hashing.Mix(uint64(p), 3)%250 != 0 {
				down.Update(7, p, sent+200_000)
			}
		}
		if err := a.Add(k*length, (k+1)*length, up, down); err != nil {
			log.Fatal(err)
		}
		up.Reset()
		down.Reset()
	}
	r := must(a.Estimate(7))
	fmt.Printf("%.0f µs, of %d packets %d to %d lost\n", r.Mean/1e3, r.Sent, r.Overdue, r.Lost)
	// Output: 200 µs, of 5000 packets 17 to 17 lost
}
