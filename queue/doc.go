// Package queue simulates a switch. It provides the ground truth for delay measurements. Send packets in order
// of time: for each it returns when it left, or what became of it.
//
//	link, err := queue.NewLink(queue.LinkConfig{Rate: 1e9}) // 1 Gb/s
//	left, fate := link.Send(time.Now().UnixNano(), 1500)   // when its last bit leaves
//
// A [Link] serves packets first come, first served, so it knows what happens to a packet the moment it arrives:
// [Link.Send] answers at once. Probes, references and cross traffic go into the same link, merged by time.
//
// # The machine
//
// Time is int64 nanoseconds, with an absolute value of up to 2^62. A packet arrives whole at an instant, waits,
// and is transmitted at the link's rate. In a busy period the transmitter never pauses, and its clock is exact:
// fractions of a nanosecond carry over to the next packet, and only the reported time is rounded down. A packet
// that arrives at the very instant at which another leaves finds that one gone.
//
// Limits and thresholds apply to the backlog: the packets that have arrived and not completely left, including
// the one in transmission.
//
// A Link with a Burst is a shaper, a token bucket: packets leave at once while there are tokens for them, and
// then as fast as tokens arrive.
//
// The sources of queue/trace are open-loop: no sender slows down when packets are dropped.
//
// All randomness comes from a PCG generator that the Config seeds, so a run repeats bit for bit.
//
// # Sources
//
//   - RED: S. Floyd, V. Jacobson, Random Early Detection Gateways for
//     Congestion Avoidance, IEEE/ACM Transactions on Networking 1(4), 1993,
//     figure 2.
//   - Loss in episodes: E. N. Gilbert, Capacity of a Burst-Noise Channel,
//     Bell System Technical Journal 39, 1960.
//   - The settings of [RLIConfig]: M. Lee, N. Duffield, R. R. Kompella, Not
//     All Microseconds are Equal, SIGCOMM 2010, section IV-A.
package queue
