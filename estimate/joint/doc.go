// Package joint takes the cells of a shared synopsis apart: given the flows of an interval and the cells each of
// them fell in, it finds the mean delays of all flows together.
//
//	flows := []joint.FlowRecord{{Flow: tuple.Flow(seed), Packets: 5000}, …}
//	result, err := lds.Decode(ctx, up, down, flows, joint.Options{})
//	fmt.Println(result.Mean[0], result.MeanInterval(0, 0.95))
//
// A [Problem] holds the cells and the flows; [Problem.Solve] answers with a [Result]. Users of a synopsis need only
// [FlowRecord] and [Options]: lds.Decode and colate.Decode write the Problem.
//
// The same input gives the same result: the signs that the deviations are probed with come from a generator of a
// fixed seed.
package joint

import "github.com/hoplag/hoplag/hashing"

// A FlowRecord says that a flow was there and how many packets it sent, as NetFlow and IPFIX do.
type FlowRecord struct {
	Flow hashing.Flow
	// Packets is how many packets the flow sent, times its weight if it has
	// one. 0 is for a number that is not known: synopses that count decode it,
	// others refuse it.
	Packets float64
	// Doubt is the standard deviation of Packets from the truth: 0 where the
	// records see every packet, and √(Packets·(1−p)/p) where they sample with
	// probability p and Packets is what they saw divided by p.
	Doubt float64
}
