// Package joint separates the flows in the cells of a shared synopsis. From the flows of an interval and the
// cells that each of them fell in, it estimates the mean delays of all flows together.
//
//	flows := []joint.FlowRecord{{Flow: tuple.Flow(seed), Packets: 5000}, …}
//	result, err := lds.Decode(ctx, up, down, flows, joint.Options{})
//	fmt.Println(result.Mean[0], result.MeanInterval(0, 0.95))
//
// A [Problem] holds the cells and the flows, and [Problem.Solve] returns a [Result]. Users of a synopsis need
// only [FlowRecord] and [Options]: lds.Decode and colate.Decode build the Problem.
package joint

import "github.com/hoplag/hoplag/hashing"

// A FlowRecord says that a flow was present and how many packets it sent, as NetFlow and IPFIX do.
type FlowRecord struct {
	Flow hashing.Flow
	// Packets is the number of packets that the flow sent. Zero means unknown: synopses that count decode it, others refuse it.
	Packets float64
	// Doubt is the standard deviation of the error of Packets. It is 0 if the records see every packet. It is
	// √(Packets·(1−p)/p) if they sample with probability p and Packets is what they saw divided by p.
	Doubt float64
}
