package hoplag_test

import (
	"fmt"

	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lds"
)

// Sizes follow from what is expected and what is to be known of it: every
// package that has sizes has a Demand, and a Plan that answers with a Config and
// what to expect of it.
func Example_sizes() {
	// All packets' mean to 1 % in 95 of 100 intervals, at up to 1 % loss.
	all, err := lda.Plan(lda.Demand{
		Packets: 1e6, LowLoss: 0.0001, HighLoss: 0.01, MeanError: 0.01, Confidence: 0.95, Variation: 1,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println("lda:", all.Config.EncodedSize(), "bytes an interval")

	// Flows of 1,000 packets and more, 99 of 100 of them, at 0.1 % loss.
	flows, err := lds.Plan(lds.Demand{
		Flows: 100_000, Sizes: lds.Pareto{Shape: 0.8, Scale: 1}, Large: 1000, Loss: 0.001, Failure: 0.01, Base: lds.DefaultConfig,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println("lds:", flows.Memory, "bytes, compared", flows.Comparisons, "times an interval")

	// 50,000 packets a second, to be kept for months in 3 GB a day.
	months, err := colate.Plan(colate.Demand{Rate: 50_000, BytesADay: 3e9, Loss: 0.001})
	if err != nil {
		panic(err)
	}
	fmt.Printf("colate: %d counters, %.1f bits a packet\n", months.Config.Counters, months.BitsPerPacket)
	// Output:
	// lda: 28706 bytes an interval
	// lds: 215280 bytes, compared 1 times an interval
	// colate: 343140 counters, 5.6 bits a packet
}
