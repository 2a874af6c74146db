// Package colate is COLATE. A point records the times of all packets that pass it in a few shared counters, and
// keeps them for months. When you know which flow mattered, ask for its delays between two such points.
//
// The example of [Store] has a point that stores what it records each second, and asks for a flow.
//
// # The machine
//
// A point has n counters. A flow owns m of them, chosen by its hash, and shares each with all other flows that hash
// there. A packet chooses one of its flow's m counters by its own digest, so every point chooses alike. The point adds
// the packet's time, its digest and 1 to that counter: one hash, one memory update, no timestamp in the packet and no
// state per flow. At each multiple of a period of the clock the counters go to a [Store], and empty ones take over. One
// packet in 64, chosen by a hash so that both points keep the same ones, is also kept by itself.
//
// A query compares the two points' counters epoch by epoch. If a counter's count and digests change alike at both points over some
// epochs, nothing was lost in these, and the difference of the sums of times is the time that the packets spent on their way: the
// flow's, and those of others as noise. It is exact however many packets cross the cuts of the clock. Where a packet was lost, the
// flow's other counters stand for this one. Given the flow's number of packets, as flow records have it, the mean follows. A record
// that the counters contradict is refused. Answers are about the packets that came in the window; where one point lacks an epoch,
// about those that were sent in an epoch that the first has and came in one that the second has. Of packets that take more than
// eight epochs (in [Path.Decode] three, if no Delay says more) only the number is known. If there may be any
// ([StoreOptions].Delay), intervals have upper ends as if these took twice as long as the latest shows: choose a Period of at least
// an eighth of the greatest delay. Intervals also hold what packets that cross the window's ends waited outside of it.
//
// The samples tell deviations, quantiles and losses, need no records, and answer for an elephant that loses packets in
// all of its counters. A query weighs samples and counters by their variances. There is no answer if they contradict
// each other, if neither tells of some epochs, which the error names, or if the interval is wider than the window.
//
// A packet takes 7 to 12 bits of a store from 100 packets a second on, 7.1 at the 70,000 that [DefaultConfig]
// is for, which is 5.4 GB a day at each point (go test ./colate -run TestSizes -v). [Plan] computes the size
// for a rate and a number of bytes. For as many bytes samples say more about flows of some hundred packets, and
// counters about larger ones, most where the records of all flows explain them ([Path.Decode]).
//
// # What it assumes
//
//   - An offset between the points' clocks is added to every mean, unless
//     [Path].Clock, from package estimate/clock, removes it with its drift.
//     Deviations are refused where a drift that is not known would explain them.
//   - Both points compute the same digests (see package hashing) with the same Config, and there is a point at
//     each end of each link: packets that only one of them sees spoil their counter for an epoch, as losses do.
//   - The number of a flow's packets that passed both points is known, or its uncertainty is. A flow that is
//     large enough to show in its counters or samples needs no record. A record that is wrong by less than what
//     others put into the flow's counters looks right, and moves the mean towards that of all packets, or away
//     from it, in the same proportion.
//
// It cannot tell the order of packets. [Result.MeanInterval] is wide where a small flow's counters hold mostly
// the delays of others, and where heavy loss hides packets that take longer than an epoch.
//
// # Source
//
// M. Shahzad, A. X. Liu, Noise Can Help: Accurate and Efficient Per-flow Latency Measurement without Packet Probing and Time
// Stamping, SIGMETRICS 2014. Package colate/paper follows the paper, and names its symbols. SPEC.md describes the files. In a
// [Config], Counters is the paper's n, PerFlow its m, and Bits its b (§3.1); a flow's counter j is at its H(f, j).
package colate
