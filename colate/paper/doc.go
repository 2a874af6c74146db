// Package paper implements COLATE as its paper describes it: counters that are
// plain sums of time stamps, and the paper's estimators, equation by equation.
//
// Package colate does better at all of it with as many bits.
//
//	up, err := paper.New(config)
//	up.Update(flow, packet, now) // for each packet, and the same at the other point
//	mean, err := paper.Theorem2(up, down, flow, packets)
//
// A recorder is one epoch, in which no counter overflows and nothing is lost.
//
// The paper's counters have 19 bits, in a unit that it does not name: so wide a sum of time
// stamps shows a delay only if the clock ticks while a packet is on its way.
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
//	C_X          the counters of a [Recorder]              §3.1
//	H(f, j)      position                                  §3.1
//	t_X          Recorder.fill                             §3.2
//	t̃_f,X        Recorder.timeSum, eq. (4)                 §4.1
//	μ̃_f          [Theorem2], eq. (3)                       §4.1
//	w̃_f,X        see deviation, eq. (7)                    §4.2.1
//	γ            repetitions of [VirtualRepetitions]       §4.2.2
package paper
