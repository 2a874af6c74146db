package paper_test

import (
	"fmt"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lds/paper"
)

// A receiver that finds the sending time in each packet: 2 rows of 1,000 cells tell the mean of any flow.
func ExampleSDS() {
	sketch, _ := paper.NewSDS(2, 1000)
	flow := func(n uint64) hashing.Flow { return hashing.Flow(hashing.Word(0x8d3c5f21b96e0a47, n)) }
	for i := range int64(5000) {
		sent, received := i*1000, i*1000+20_000+i%50*100 // flow 0 takes 20 µs, flow 49 takes 24.9 µs
		sketch.Update(flow(uint64(i%50)), received-sent)
	}
	mean, packets, err := sketch.Estimate(flow(49))
	fmt.Println(mean, "ns, from", packets, "packets", err)
	// Output:
	// 24900 ns, from 100 packets <nil>
}
