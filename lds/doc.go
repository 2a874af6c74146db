// Package lds is the Lossy Difference Sketch: the one-way delay of every flow
// between two points without state for any flow and without a model of how
// delays behave, so that it also holds where neighbouring packets took
// different queues or paths. It needs an array of cells at each point, a
// megabyte for 150,000 flows.
//
//	up, err := lds.New(lds.DefaultConfig) // upstream, and the same downstream
//	up.Update(tuple.Flow(seed), hashing.Digest(seed, packet), time.Now().UnixNano())
//	result, err := lds.Estimate(up, down, tuple.Flow(seed)) // where both are, after an interval
//	fmt.Println(result.Mean, result.MeanInterval(0.95))
//
// # The machine
//
// A [Sketch] has a few rows of cells, and a cell is a sum of time stamps, a
// packet count and a digest of the packets. Each packet is added to one cell of
// each row, chosen by hashes of its flow and, where a flow is spread over
// several neighbouring cells (its virtual LDA), of the packet. Both points hash
// alike, so a cell's packets are the same at both; then the difference of its
// sums, divided by its count, is the mean delay of its packets. A loss or a
// packet that crossed the interval's boundary shows in count or digest, and
// spoils only the cell it fell in.
//
// [Estimate] reads a flow's delay from the cells that others load least; the
// larger the flow, the less they matter. [Decode], given the keys of the
// interval's flows, takes all cells apart at once and is several times more
// accurate. The sketches also tell loss, packets, bytes, mean packet size and
// heavy hitters. [NewRotation] measures interval after interval
// ([Sketch.SetInterval] says which), an
// [Accumulator] adds intervals up so that losses cost little, and [Plan] sizes a
// sketch. [Keyed] is for those who have no flow records: up to its limit it
// gives every flow back. [Simple], the paper's SDS, is for packets that carry
// the time they were sent.
//
// # What it assumes
//
// Both points see the same packets, but for losses. An offset between their
// clocks is added to every mean; where packets go both ways, package
// estimate/clock finds it and [Sketch.Correct] takes it out. A cell sees fewer than 2^32 packets, times their
// weights, in an interval: its count is as wide. Flow and packet digests are of bytes that do
// not change on the way, with one seed ([hashing.Digest],
// [hashing.Tuple.Flow]): positions are taken from them without another keyed
// hash, so where flows may be crafted use a keyed family and a secret seed.
//
// # What it cannot measure
//
// Small flows among large ones: below some dozens of packets, a flow's cells
// mostly hold other flows, and Estimate returns little else than the mean of
// all. Flows that lose a packet in each of their cells: with a Spread of 1, one
// loss is enough. How far a flow's packets are from their mean, where all of them
// are in one cell of each row; with a Spread, or rows that sample, Decode tells it
// within a fifth or so, and Estimate roughly. Which of the flows in a cell lost a
// packet. Two packets with equal bytes look like one that came twice; both
// points count both, and nothing is lost by it.
//
// # Choosing a Config
//
// [Plan] chooses by the number and sizes of flows, loss and memory. With a
// Spread of 1, a row has about as many columns as there are flows if most of
// them matter, and a tenth of that if only large ones do. Four rows are enough.
//
// Where nothing is lost, rows that see every packet are best, and fewer and
// larger ones have the smaller median error by Estimate. Where packets are lost,
// compare often and use an [Accumulator]; and let some rows sample, as
// [DefaultConfig] does: with a Spread of k and a row that samples at p, a flow
// bears about k/p losses between two comparisons. A Spread costs more precision
// than rows that sample, at the same memory.
//
// The experiments lds-rows, ours-lds-default and ours-lds-accumulate of the
// project's bench show this in figures:
//
//	go run ./bench ours-lds-default ours-lds-accumulate
//
// # Source
//
// J. Sanjuàs-Cuxart, P. Barlet-Ros, N. Duffield and R. Kompella, Sketching the
// Delay: Tracking Temporally Uncorrelated Flow-Level Latencies, IMC 2011. Names
// and symbols:
//
//	Rows             R          section 2.2
//	Columns          C          section 2.2; in section 3, C is Rows × Columns
//	Spread           k          section 2.3.3, length of the virtual LDA
//	Tolerance        α          section 2.3.4
//	Rates            p          section 4.2, by row
//	home             h_r(f)     section 2.3.4
//	Forecast.Load    z = nP/C   section 3.1
//	Demand.Large     x          section 3.1
//	Failure          ε = 1 − Q  section 3.1
//
// Beyond the paper are the joint decoding of delays and counts, the comparison
// of cells that sampled at different rates ([Estimate] beside
// [EstimateInverted]), the count-conditioned deviation within rows, and a
// digest by addition instead of XOR.
package lds
