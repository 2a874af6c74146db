// Package rli is Reference Latency Interpolation. It estimates the one-way
// delay of every packet through a queue, and so of every flow. The sender
// injects reference packets into the traffic that carry the time they were
// sent. Only the receiver keeps state: no other packet carries anything, and
// nothing is collected from the sender.
//
//	injector, err := rli.NewInjector(rli.InjectorConfig{Every: 100}) // at the sender
//	if reference, ok := injector.Packet(length, before); ok { // before the packet was written
//		conn.Write(injector.Append(nil, reference, time.Now().UnixNano())) // behind it
//	}
//
//	receiver, err := rli.NewReceiver(rli.DefaultConfig) // at the far end of the queue
//	receiver.Update(tuple.Flow(seed), length, time.Now().UnixNano())
//	err = receiver.Accept(reference, time.Now().UnixNano())
//	result, err := receiver.Estimate(tuple.Flow(seed))
//	fmt.Println(result.Mean, result.N, result.MeanInterval(0.95))
//
// # Who it is for
//
// Use it where packets cannot be stamped, and the two ends cannot compare notes
// of the packets that they saw. It needs one path that is first come, first
// served, an injector in line with the traffic, and stamps that are better than
// 4 % of the wait, with straight lines than 20 %. Where both ends see
// the packets and can exchange synopses, lda, lds and colate assume less.
//
// # How it works
//
// An [Injector] at the sender sees every packet and decides when a reference
// goes out, directly behind a packet. A [Receiver] at the far end of the queue
// holds packets in a buffer until the next reference, gives each one a delay, and
// adds it to the record of the packet's flow. [Config.Method] says how:
//
//   - [Left] takes the delay of the reference before. There is no buffer.
//   - [Linear] interpolates over the time of departure, on the straight line
//     between the packets that references name, or the references; eq. (1).
//   - [Auto] interpolates within busy periods of the link, once its rate is known,
//     as long as straight lines are no closer to the references themselves.
//
// If the gap before a packet's departure is longer than its own transmission
// takes, the packet found the link idle and did not wait. It begins a busy
// period, in which packets depart back to back, and none can have waited longer
// than the link had been busy. Between packets whose waiting times are known,
// and the ends of the period, Auto gives every packet the mean of a
// Brownian bridge that stays positive, corrected by what references show, also
// of packets that follow their own flow's only. It learns the rate of the link,
// the overhead of packets, the errors of stamps, the base delay, which is neither
// waiting nor transmission, and the drift of the clocks. If references contradict
// each other, or packets depart faster than the link can send
// ([Counts].Conflicts), straight lines are used until 16 references in a row
// agree. A queue that is never empty reveals no base delay; there they are used
// throughout.
//
// # How sure it is
//
// The receiver estimates every reference from its neighbours, as if it had not
// come, and so learns how far off its estimates are: [Result.MeanInterval] and
// [Result.DeviationInterval]. How often they hold the truth, and how wide they
// are: go run ./bench ours-rli-robust.
//
// Some packets have delays that references do not tell. If they are more than
// one in 20 of a flow, its answer is an error that wraps [ErrUntrusted] and says
// why; if they are fewer, the interval is wider by what they may add:
//
//   - no reference followed them, because the injector stopped;
//   - packets overtake each other, lately: there are classes or several paths;
//   - references are lost where packets are not, perhaps just when it is slow;
//   - the sender's software pauses for more than a fifth of what delays vary;
//   - a clock was stepped between the flow's packets.
//
// The mean of all packets is off by less than 1 % of the mean wait in most
// traffic (ours-rli-bias), at fixed rates and with [PaperInjector], which adapts to
// the load and not to single bursts: if references became rare just when a burst
// comes, nothing could tell what most of it met.
//
// # What it assumes
//
// The queue is first come, first served, and there is one way. Measure each
// class with its own references and its own receiver, and report the other
// classes to that receiver with [Receiver.Pass]. Auto must be told, with
// Pass, of all packets that join the queue from elsewhere.
//
// The clocks of injector and receiver agree. An offset is added to every mean,
// exactly, and changes no deviation; package estimate/clock can remove it. A
// step that is shorter than the time between two references looks like a longer
// wait. What loss says about delays is not known: [Counts].Missing counts
// packets that never departed.
//
// # Source
//
// M. Lee, N. Duffield, R. R. Kompella, Not All Microseconds are Equal:
// Fine-Grained Per-Flow Measurements with Reference Latency Interpolation,
// SIGCOMM 2010, extended version. Linear is its RLI estimator, eq. (1), section
// III-C, and Left RLI-L; Config.Rate is l_c, Config.ReferenceBytes b,
// and InjectorConfig.Rate Algorithm 1, section III-B.1; a record holds c, m and v,
// eq. (2) to (6). Busy periods, what references say of the packets that they follow,
// and intervals go beyond the paper.
package rli
