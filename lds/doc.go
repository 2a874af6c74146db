// Package lds is the Lossy Difference Sketch. It measures the one-way delay of every flow between two points.
// It needs no state per flow: each point keeps an array of cells, a megabyte for 150,000 flows. Nor does it
// need a model of delays, so it also works if neighbouring packets took different queues or paths.
//
//	up, err := lds.New(lds.DefaultConfig) // upstream, and the same downstream
//	up.Update(tuple.Flow(seed), hashing.Digest(seed, packet), time.Now().UnixNano())
//	result, err := lds.Estimate(up, down, tuple.Flow(seed)) // where both are, after an interval
//	fmt.Println(result.Mean, result.MeanInterval(0.95))
//
// # The machine
//
// A [Sketch] has a few rows of cells. A cell is a sum of timestamps, a packet count and a digest of the packets. Each packet is
// added to one cell of each row. A hash of its flow chooses the cell; if a flow is spread over several neighbouring cells (its
// virtual LDA), a hash of the packet helps to choose. Both points hash alike, so a cell gets the same packets at both. The
// difference of its two sums, divided by its count, is then the mean delay of its packets. A lost packet, or one that crossed the
// interval's boundary, shows in the count or the digest, and spoils only its own cells.
//
// [Estimate] reads a flow's delay from those of its cells that other flows load least; the larger the flow, the
// less the others matter. [Decode] takes the keys of all flows and solves for all cells at once. It is several
// times as accurate, except for flows alone in a cell, where Estimate is exact. Sketches also tell losses and packet counts.
//
// A [Table] holds some flows in cells of their own, and is far more accurate for these: if 100,000 flows share 910 kB, errors are
// a seventh of Decode's or less (go run ./bench ours-lds-table). So use a Table if the flows that matter fit, a Sketch if all flows
// matter, or half of each; [Plan] compares the three.
//
// An [Accumulator] adds up intervals: then losses cost little, and packets that cross an interval's ends cost nothing.
//
// # What it assumes
//
// Both points see the same packets, apart from losses. An offset between their clocks is added to every mean. If packets go both ways,
// package estimate/clock finds the offset and [Sketch.Correct] removes it. A cell sees fewer than 2^32 packets in an interval. Flow and
// packet digests cover bytes that do not change on the way, and use one seed ([hashing.Digest], [hashing.Tuple.Flow]). Positions come
// straight from the digests, so if someone may craft flows, use a keyed family and a secret seed.
//
// # What it cannot measure
//
// It cannot measure small flows among large ones: the cells of a flow of fewer than some dozens of packets
// mostly hold others, and Estimate returns little more than the mean of all. With a single row, one in six intervals may miss.
//
// It cannot measure a flow that loses packets in each of its cells if cuts are much further apart than delays
// are long: what a cell tells after a loss depends on when the lost packet was sent (TestLossyCellsAreWeighed).
// If sketches or tables are compared once, fast and slow packets must be lost alike, but not copied alike.
//
// An Accumulator does not notice a copied packet if others of the flow are always on their way. It says little of flows whose packets
// take more than three times as long as any did before ([Result.Late]), nor of slow packets before the first of them has come.
//
// It cannot tell which of the flows in a cell lost a packet, nor how many are lost in a cell that always has
// some on their way: an Accumulator gives a range. Packets with equal bytes do no harm.
//
// # Choosing a Config
//
// [Plan] chooses a sketch, a table or both from the number and sizes of flows, the loss and the memory. Without losses, rows that see
// every packet are best. With losses, compare often and use an [Accumulator], and let some rows sample, as [DefaultConfig] does.
//
// # Source
//
// J. Sanjuàs-Cuxart, P. Barlet-Ros, N. Duffield and R. Kompella, Sketching the Delay: Tracking Temporally
// Uncorrelated Flow-Level Latencies, IMC 2011. Names and symbols:
//
//	Rows             R          section 2.2
//	Columns          C          section 2.2; in section 3, C is Rows × Columns
//	Spread           k          section 2.3.3, length of the virtual LDA
//	Tolerance        α          section 2.3.4
//	Rates            p          section 4.2, by row
//	home             h_r(f)     section 2.3.4
//	Demand.Large     x          section 3.1
//	Failure          ε = 1 − Q  section 3.1
package lds
