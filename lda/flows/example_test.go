package flows_test

import (
	"fmt"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda/flows"
)

// Two flows, whose packets take 5 and 9 ms, for a second that the points cut every 100 ms. The report waits until it
// is known what came of its packets.
func Example() {
	const cut = 100 * time.Millisecond
	meter := flows.New(10, cut, 0, false)
	for k := range int64(20) {
		sent, received := flows.NewTable(10), flows.NewTable(10)
		for i := range int64(20) {
			flow := hashing.Flow(1 + i%2)
			packet := hashing.Digest(1, fmt.Append(nil, k, i))
			at := k*int64(cut) + i*int64(4*time.Millisecond)
			sent.Update(flow, packet, at)
			received.Update(flow, packet, at+int64(1+4*flow)*int64(time.Millisecond))
		}
		meter.Add((k+1)*int64(cut), sent, received, estimate.Interval{})
		if k == 9 {
			meter.End()
		}
	}
	known, _ := meter.Report(1, 0, false)
	for _, d := range known {
		fmt.Printf("flow %d: %.3f ms, %d packets, lost %d\n", d.Flow, d.Mean/1e6, d.Received, d.Lost)
	}
	// Output:
	// flow 2: 9.000 ms, 100 packets, lost 0
	// flow 1: 5.000 ms, 100 packets, lost 0
}
