// Package lda is the Lossy Difference Aggregator. It measures the delay of all packets between two points, as
// mean, deviation and quantiles, and how many packets were lost. Each point keeps a few kilobytes and adds each
// packet to one cell; nothing is added to packets.
//
//	up, err := lda.New(lda.DefaultConfig) // upstream, and the same downstream
//	up.Update(hashing.Digest(seed, packet), time.Now().UnixNano())
//	result, err := lda.Estimate(up, down) // where both are, after an interval
//	fmt.Println(result.Mean, result.MeanInterval(0.98), result.Lost)
//
// Start with:
//
//	New, Update, UpdateBatch, Merge, Reset   one point, one interval
//	estimate.NewRotation(New, config)        one interval after another
//	Estimate, Result                         two points, one interval
//	Accumulator                              two points, many intervals, cut by clocks; quantiles
//	Plan                                     which Config, and what to expect of it
//
// Package control sends intervals between points. [AppendClockSamples] serves to find the offset between
// clocks.
//
// # The machine
//
// Both points keep the same array of cells: sums of timestamps, counts of packets, and digests, which are sums
// of hashes. A hash of a packet's bytes chooses its cell. At the end of an interval one point sends its array
// to the other. If count and digest show that a cell lost no packet, the difference of its two sums is the sum
// of its packets' delays. A loss spoils one cell, so the more packets are lost, the fewer should be sampled: a
// bank is an array of cells with its own sampling rate, and several banks are ready for several rates of loss.
//
// # What is right, and what is refused
//
// The hash puts packets into cells whatever their delay, so the usable cells are a fair sample. The interval of
// the mean shrinks with the share of packets seen, and without losses the mean is exact. If nothing tells how
// often sums wrapped, the error is [ErrContradiction]. If there are too few samples, or too few to bound a
// quantile, it is [estimate.ErrNoSamples].
//
// # What spoils it
//
//   - Points that hash different bytes, or with different seeds, differ in Config.Identity and are refused.
//   - Clocks that disagree shift the mean by their offset. A clock that is set during an interval makes the
//     sums meaningless, which they do not show: call the Sender's or Receiver's ClockSet, or [Accumulator.Gap].
//   - Packets that cross a cut of the clock, or are overtaken by a marker, are missing from the cells of one
//     interval; slow packets more often. Estimate widens its interval for them. An Accumulator uses them, and
//     needs more Rows in some bank than packets are on their way in it.
//   - A duplicate spoils its cell, as a loss does, and widens the interval, because the packets that arrive
//     twice may be the slow ones.
//   - Identical packets share a cell. Where they overfill it, Result.Repeats counts them. Smaller groups show
//     by their effect, and widen the intervals. Groups that are too few to show may move the mean by more than
//     its interval.
//   - Packets that join on the way hide losses: [Result.Loss] estimates how many.
//   - If something changes all packets on the way, the error is [ErrDifferent].
//
// LDA cannot tell the delay of one packet or flow, nor the longest delay. Lost packets have no delay.
//
// # Source
//
// R. R. Kompella, K. Levchenko, A. C. Snoeren and G. Varghese, Router Support for Fine-Grained Latency
// Measurements (2012), sections III to V. Package lda/paper has its deviation.
//
//	m, n         Bank.Rows, and the number of Config.Banks with rows
//	p_j          2^-Shift less the next bank's 2^-Shift
//	h(x), g(x)   low-order bits and leading zeros of the packet's hash (section V)
//	T, S[i, j]   sum and count of a cell
//	S, D, σ      Delay.N, Delay.Mean, Delay.StdDev
//	N, R, L      Result.Sent, Received, Lost
//
// Rows and rates of sampling are powers of two, as in section V, so that no packet costs a division. Packets
// that no bank samples are counted outside the banks, so Sent, Received and Lost are exact. A cell can hold
// 2^32 packets in an interval.
package lda
