package colate_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// Two points record what passes them; later the delay of one flow is asked
// for.
func Example() {
	c := colate.DefaultConfig
	up, err := colate.New(c)
	if err != nil {
		fmt.Println(err)
		return
	}
	down, _ := colate.New(c)

	// 2,000 flows of 20 packets, delayed by 50 µs, and one of 500 that takes 80 µs.
	rng := rand.New(rand.NewPCG(1, 2))
	pass := func(f hashing.Flow, sent, delay int64) {
		p := hashing.Packet(rng.Uint64())
		up.Update(f, p, sent)
		down.Update(f, p, sent+delay)
	}
	slow := hashing.Word(c.Identity, 7)
	for i := range int64(40_000) {
		pass(hashing.Flow(hashing.Word(c.Identity, uint64(100+i%2000))), i*1000, 45_000+rng.Int64N(10_000))
		if i%80 == 0 {
			pass(hashing.Flow(slow), i*1000, 75_000+rng.Int64N(10_000))
		}
	}

	// A query gathers the flow's counters from all epochs that overlap its
	// lifetime; here each point has one.
	sender, _ := colate.NewSubvector(c)
	receiver, _ := colate.NewSubvector(c)
	sender.Reset(hashing.Flow(slow))
	receiver.Reset(hashing.Flow(slow))
	if err := sender.Add(up.Current()); err != nil {
		fmt.Println(err)
	}
	if err := receiver.Add(down.Current()); err != nil {
		fmt.Println(err)
	}
	r, err := colate.Estimate(sender, receiver, 500)
	fmt.Printf("%.0f µs, within 2: %v, %v\n", r.Mean/1000, r.Interval.High-r.Interval.Low < 4000, err)
	// Output:
	// 80 µs, within 2: true, <nil>
}

// With the records of all flows every counter is explained by those that
// share it.
func ExampleJoint() {
	c := colate.Config{Counters: 2000, PerFlow: 20, Bits: 60, CountBits: 20, Vectors: 1}
	up, err := colate.New(c)
	if err != nil {
		fmt.Println(err)
		return
	}
	down, _ := colate.New(c)
	rng := rand.New(rand.NewPCG(3, 4))
	var records []joint.FlowRecord
	for i := range uint64(200) {
		f := hashing.Flow(hashing.Word(0, i))
		packets := 10 + i*i/20
		records = append(records, joint.FlowRecord{Flow: f, Packets: float64(packets)})
		for range packets {
			p := hashing.Packet(rng.Uint64())
			sent := rng.Int64N(1e9)
			up.Update(f, p, sent)
			down.Update(f, p, sent+int64(100_000+500*i))
		}
	}
	r, err := colate.Joint(context.Background(), []*colate.Epoch{up.Current()}, []*colate.Epoch{down.Current()}, records, joint.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	// Flow 190 was delayed by 195 µs.
	near := r.Mean[190] > 190_000 && r.Mean[190] < 200_000
	fmt.Printf("flow 190, %.0f packets: near 195 µs: %v, expected error %.0f µs\n", records[190].Packets, near, r.StdDev[190]/1000)
	// Output:
	// flow 190, 1815 packets: near 195 µs: true, expected error 3 µs
}

// What §5 derives for 1 MB, 95 % and 5 %.
func ExampleRequirements_Solve() {
	p, err := colate.Requirements{
		MemoryBits: 1 << 23, Reliability: 0.95, Error: 0.05, DelayPart: 1,
		Least: 85_003.26, Most: 3_514_677,
	}.Solve()
	fmt.Printf("n %.0f, b %.2f, m %.1f, T %.1e %v\n", p.Counters, p.Bits, p.PerFlow, p.Threshold, err)
	// Output:
	// n 455334, b 18.42, m 20.0, T 8.0e+10 <nil>
}
