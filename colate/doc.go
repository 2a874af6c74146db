// Package colate is COLATE: every point records the times of all packets that
// pass it in a few shared counters, which are kept for months, and the delays
// of any flow between any two points are asked for later, when it is known
// which flow mattered.
//
// # The machine
//
// A point has a vector of n counters of b bits. A flow f owns m of them, at
// H(f, 1) to H(f, m), and shares each with whoever else hashes there. A packet
// of the flow chooses one of the m by its own digest, so that every point
// chooses alike, and adds its time to it. That is all: one hash, one memory
// update, no time stamp in the packet and no state per flow. When a counter
// could overflow, or the vector has seen enough, the vector is handed over as
// an epoch by exchanging it for an empty one, and kept in a [Store].
//
// A query ([Subvector], [Store.Gather], [Estimate]) adds up the epochs of both
// points that overlap the flow's lifetime and subtracts them, counter by
// counter. What is left in a counter is the sum of the delays of the packets
// that fell in it: the flow's, and as noise those of others. Given the number
// of the flow's packets, from flow records, the mean and the deviation follow.
//
// # What it assumes
//
//   - Clocks of all points are synchronised. An offset between them shifts
//     every mean by itself; it shifts the delays of all packets in a counter
//     alike, so that without counts to tell how many these are it adds to the noise.
//   - Both points compute the same digests (see package hashing) with the same
//     Config.
//   - The epochs of both points that are added up hold the same packets. A
//     packet that only one point recorded, be it lost or in an epoch that the
//     query did not reach, leaves its whole time stamp in one counter. Vectors
//     that saw different packets disagree in number or digest and are not used;
//     Config.Vectors says into how many the packets are divided for that, and
//     Config.CountBits makes every counter tell by itself. So let points end
//     their epochs together ([Recorder.Rotate]), query some time beyond either
//     end of the flow's life, and keep a recorder at each end of each link: of a
//     point that talks to several others, the paper keeps one vector for all of
//     them, in which every packet of another link leaves its whole time stamp.
//   - The delays in one counter add up to less than half the modulus of its
//     sum: see Config.TimeBits. [Estimate] refuses a flow of which most
//     counters hold more than a quarter of that; [Joint] cannot tell.
//   - The number of a flow's packets is known; where some were lost, of those
//     that passed.
//
// # What it cannot measure
//
// The distribution of delays beyond mean and deviation; the order of packets;
// loss, which other packages count. The mean of a small flow among big ones,
// from its counters alone: they hold mostly the delays of others, and
// [Result.Interval] is wide. [Joint] explains these by the records of the other
// flows.
//
// # Time stamps
//
// The paper adds the current time to a counter of 19 bits, in a unit that it does
// not name. Its example lets an epoch's time stamps come to T = 8×10¹⁰ and
// promises less than 0.1 bit per packet; together, a time stamp is then below
// 10³ on average, and for an epoch of minutes to hours the unit is a tenth of
// a second to seconds. Delays of microseconds do not show in such a unit but
// by chance: whether the clock ticks while a packet is on its way, so that the
// mean of p packets with a delay d much below the unit u is off by some √(u/(p·d))
// of itself by that alone. Microsecond units need counters that hold the sum of microsecond
// clocks, or sums that wrap: what a query needs is only differences, and these
// are exact modulo a power of two so long as the sum of delays is not larger.
// That is Config.TimeBits = 0, and what [DefaultConfig] does: then epochs end
// by their number of packets, or when their points agree, and never because a
// sum was full.
//
// # Estimators
//
// The paper's are in functions of their own, faithful to its equations:
// [Theorem2], [Theorem2Interval], [Subvector.Denoise], [VirtualRepetitions],
// [ClosedForm] and [Requirements.Solve]. [Estimate] does better with the same
// counters: a trimmed mean that an elephant of another flow cannot drag along;
// with packet counts, what is common to all packets taken off, and counters
// left out by count alone; and an interval that is calibrated by flows that
// never were.
//
// # Source
//
// M. Shahzad, A. X. Liu, Noise Can Help: Accurate and Efficient Per-flow
// Latency Measurement without Packet Probing and Time Stamping, SIGMETRICS
// 2014.
//
//	paper        here                                      where
//	n            Config.Counters                           §3.1
//	m            Config.PerFlow                            §3.1
//	b            Config.Bits                               §3.1
//	C_X          one vector of an [Epoch]                  §3.1
//	S_X^f        [Subvector]                               §3.1
//	H(f, j)      position                                  §3.1
//	j            choice, from the packet's digest          §3.1
//	t_X          Vector.Fill                               §3.2
//	T            Config.Threshold                          §5
//	p_f          packets                                   §4.1
//	t̃_f,X        Subvector.timeSum, eq. (4)                §4.1
//	μ̃_f          [Theorem2], eq. (3)                       §4.1
//	w̃_f,X        [Subvector.Denoise], eq. (7)              §4.2.1
//	γ            repetitions of [VirtualRepetitions]       §4.2.2
//	M, α, β      [Requirements]                            §5
//	B            [Requirements.TimeError], eq. (12)        §5.1
package colate
