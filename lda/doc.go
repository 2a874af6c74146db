// Package lda is the Lossy Difference Aggregator. It measures the delay of all
// packets between two points: its mean, its deviation and its quantiles, and
// how many packets were lost. Each point keeps a few kilobytes and adds each
// packet to one cell; nothing is added to packets.
//
//	up, err := lda.New(lda.DefaultConfig) // upstream, and the same downstream
//	up.Update(hashing.Digest(seed, packet), time.Now().UnixNano())
//	result, err := lda.Estimate(up, down) // where both are, after an interval
//	fmt.Println(result.Mean, result.MeanInterval(0.98), result.Lost)
//
// After R. R. Kompella, K. Levchenko, A. C. Snoeren and G. Varghese, Router
// Support for Fine-Grained Latency Measurements (2012), sections III to V.
//
//	New, Update, UpdateBatch, Merge, Reset   one point, one interval
//	NewRotation                              one interval after another
//	Estimate, Result                         two points, one interval
//	Accumulator                              two points, many intervals that clocks cut
//	Distribute, Distribution                 quantiles
//	Sender, Receiver, Tuner                  intervals cut by markers, control packets
//	Classes, Classifier, ClassSender         many aggregators, by class of packet
//	Plan, Expectation                        which Config; what to expect of it
//	AppendClockSamples                       what clocks that disagree are known by
//	Paper                                    the paper's formulas, to compare
//
// # The machine
//
// Both points keep the same array of cells, each a sum of timestamps and a
// count of packets, and put each packet into the cell that a hash of its bytes
// chooses. At the end of an interval one sends its array to the other. The
// difference of two sums is the sum of the delays of a cell's packets, if none
// of them was lost, which the counts show. A loss spoils one cell, so where
// losses are many packets are sampled, by the same hash. A bank is an array
// with its own rate of sampling, and several banks are ready for several rates
// of loss. A digest beside the count, a sum of hashes, tells cells in which
// other packets came in place of those lost.
//
// # What is right, and what is refused
//
// Packets are in cells by their hash, whatever their delay, so the usable cells
// are a fair sample. A [Result] has its mean and deviation, and intervals for
// both that shrink with the share of packets that was seen: where nothing was
// lost the mean is exact. No sample knows of delays so rare that it has none;
// [Result.MeanInterval] reaches up for them, and [Result.Unseen] says how many
// there may be. [Result.CentralLimitInterval] is for delays whose tails are
// known to be light.
//
// Sums wrap and are unwrapped. Where nothing tells how often, or cells
// contradict each other, the error wraps [ErrContradiction]. Too few samples are
// [estimate.ErrNoSamples], and a quantile that its samples do not bound is
// refused.
//
// The bench's experiment ours-lda-right sends sessions through what the default
// Config is for: 10^4 to 10^7 packets, delays of 1 µs to 10 s, clocks up to a
// year apart, losses to 30 %, evenly and in bursts, duplicates, identical
// packets, crossed markers, restarts and steps of clocks, with tails up to
// lognormal σ=2 and one packet in 10^4 1,000 times slower; and counts reports
// that are presented as good and are outside their interval.
//
// # What spoils it
//
//   - Points that hash different bytes, or with different seeds, differ in
//     Config.Identity and are refused.
//   - Clocks that disagree shift the mean by their offset. Package
//     estimate/clock finds it where both directions are measured.
//   - A clock that is set within an interval makes its sums meaningless, and
//     nothing in them shows it: tell [Sender.ClockSet], [Receiver.ClockSet] or
//     [Accumulator.Gap].
//   - Packets that are overtaken by markers, or cross a cut by the clock, are
//     missing from the cells of one interval, and slow ones more often. Estimate
//     widens its interval for them; an Accumulator uses them.
//   - A duplicate spoils its cell as a loss does.
//   - Losses that come with long delays do not bias an interval. Over many, each
//     counts by what was received in it.
//
// The delay of one packet or flow and the longest delay are not to be had, and
// delays of lost packets do not exist.
//
// # Symbols
//
//	paper       here
//	m           Bank.Rows
//	n           number of Config.Banks with rows
//	p_j         2^-Shift less the next bank's 2^-Shift
//	h(x)        low-order bits of the packet's hash
//	g(x)        its leading zeros (section V)
//	T[i, j]     sum of a cell
//	S[i, j]     count of a cell
//	u_ij        Result.Usable counts them
//	S, D        Delay.N, Delay.Mean
//	N, R, L     Result.Sent, Received, Lost
//	σ           Delay.StdDev
//	F, s_x      Paper.CollapsedVariance; the lowest bit of the hash
//	α           of Paper.ShiftFor
//
// Rows are powers of two and rates of sampling too, as in section V, so that
// no packet costs a division. Packets that no bank samples are counted all the
// same, outside the banks: so Sent, Received and Lost are exact. A cell is
// good for 2^32 packets in an interval.
package lda
