package estimate_test

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
)

// Three cells of a switch with 40-bit sums: packets that passed both points,
// and the sums of their timestamps there. One register has wrapped.
func ExampleCells() {
	var cells estimate.Cells
	for _, c := range []struct{ count, up, down uint64 }{
		{4, 1_000, 1_840},
		{2, 1<<40 - 100, 290},
		{5, 7_000, 8_010},
	} {
		cells.Add(float64(estimate.SignExtend(c.down-c.up, 40)), c.count)
	}
	delay, err := cells.Delay()
	if err != nil {
		fmt.Println(err)
		return
	}
	i := estimate.StudentInterval(delay, cells.DegreesOfFreedom(), 0.9)
	fmt.Printf("%.1f ns, deviation %.1f ns, %d packets\n", delay.Mean, delay.StdDev, delay.N)
	fmt.Printf("between %.1f and %.1f ns\n", i.Low, i.High)
	// Output:
	// 203.6 ns, deviation 12.7 ns, 11 packets
	// between 192.4 and 214.9 ns
}

func ExampleProportionInterval() {
	i := estimate.ProportionInterval(3, 10_000, 0.95)
	fmt.Printf("3 of 10,000 lost: between %.1e and %.1e of packets\n", i.Low, i.High)
	// Output: 3 of 10,000 lost: between 6.2e-05 and 8.8e-04 of packets
}

func ExampleEmpirical() {
	delays := make([]float64, 1000)
	for i := range delays {
		delays[i] = float64(i * i)
	}
	e := estimate.NewEmpirical(delays)
	p99, err := e.Quantile(0.99)
	if err != nil {
		fmt.Println(err)
		return
	}
	i := e.QuantileInterval(0.99, 0.95)
	fmt.Printf("p99 is %.0f, between %.0f and %.0f\n", p99, i.Low, i.High)
	// Output: p99 is 978121, between 964324 and 992016
}
