// Package queue is a simulated switch: the ground truth that delay
// measurements are compared with. Packets are pushed into it in order of time
// and come out with the time they left, or with what became of them.
//
//	link, err := queue.NewLink(queue.LinkConfig{Rate: 1e9}) // 1 Gb/s
//	left, fate := link.Send(time.Now().UnixNano(), 1500)   // when its last bit leaves
//
// # Two ways to use it
//
// A [Link] serves first come, first served, so what happens to a packet is
// known the moment it arrives, and [Link.Send] answers at once: when its last
// bit leaves, or why it was dropped. A sender that injects packets of its own
// (probes, references) sends them into the same link at the same time and can
// decide to do so from what it has seen so far; cross traffic that joins at
// the queue is sent likewise, merged by time.
//
// Everything else takes packets by Send and gives them back by Next, in order
// of their new time: the interface [Hop]. A [FIFO] is a Link in that shape, a
// [Scheduler] a link that two classes share (strict priority or weighted),
// [Multipath] several links side by side, a [Jitter] what delays each packet at
// random, a [Resequencer] what puts packets back in order, and a [Chain] any of
// these one after another, with cross traffic that joins at a hop and leaves
// after it.
//
// # The machine
//
// Time is int64 nanoseconds, up to 2^62 in size, so that what delays add to it
// fits. A packet arrives whole at an instant, waits, is
// transmitted at the link's rate, and arrives after the propagation delay; no
// other cost is modelled. Between the packets of a busy period the
// transmitter never pauses (it is work-conserving) and its clock is exact:
// what a rate leaves over from whole nanoseconds is carried to the next
// packet, and only the reported time is rounded, down. A packet that arrives
// at the very instant another has left finds it gone.
//
// A Link whose Burst is set is a shaper, a token bucket: packets leave at once
// as long as there are tokens for them, and then as tokens come.
//
// The backlog that limits and thresholds speak of is what has arrived and not
// yet wholly left: the packet in transmission counts.
//
// The sources of queue/trace are open-loop: nobody slows down because a packet
// was lost. A [Closed] is told what becomes of its packets, and its senders slow
// down as those of TCP do, when packets are dropped or marked (ECN).
//
// # Random numbers
//
// Everything random (RED, loss, jitter, the choice of a path) is drawn from a PCG
// generator seeded by the Config, so a run repeats bit for bit.
//
// # Sources
//
//   - RED: S. Floyd, V. Jacobson, Random Early Detection Gateways for
//     Congestion Avoidance, IEEE/ACM Transactions on Networking 1(4), 1993,
//     figure 2; gentle mode: S. Floyd, 2000, as in ns-2.
//   - ECN: K. Ramakrishnan, S. Floyd, D. Black, The Addition of Explicit
//     Congestion Notification (ECN) to IP, RFC 3168, 2001.
//   - Deficit round robin: M. Shreedhar, G. Varghese, Efficient Fair Queueing
//     Using Deficit Round Robin, SIGCOMM 1995.
//   - Loss in episodes: E. N. Gilbert, Capacity of a Burst-Noise Channel,
//     Bell System Technical Journal 39, 1960.
//   - The settings of [RLIConfig]: M. Lee, N. Duffield, R. R. Kompella, Not
//     All Microseconds are Equal, SIGCOMM 2010, section IV-A.
package queue
