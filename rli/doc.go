// Package rli is Reference Latency Interpolation. It estimates the one-way delay of every packet through a
// queue, and so of every flow. The sender injects reference packets that carry the time at which they were
// sent. Other packets carry nothing, and only the receiver keeps state: nothing is collected from the sender.
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
// Use it where packets cannot carry timestamps and the two ends cannot exchange synopses: lda, lds and colate
// assume less. It needs a single path that is first come, first served, an injector in line with the traffic,
// and timestamps whose errors are below 4 % of the wait, or 20 % with straight lines.
//
// # How it works
//
// An [Injector] sends references directly behind packets. A [Receiver] holds packets in a buffer until the next
// reference, gives each a delay, and adds it to the record of its flow, by one of three methods:
//
//   - [Left] takes the delay of the reference before. There is no buffer.
//   - [Linear] interpolates over the time of departure, on the straight line between the packets that
//     references name, or between the references; eq. (1).
//   - [Auto] interpolates within busy periods of the link. A packet that departs later than the link could have sent it
//     found the link idle, and did not wait; packets behind it wait for no longer than the link has been busy. Auto learns
//     the link's rate and base delay, the errors of timestamps and the drift of the clocks, and uses straight lines where
//     its assumptions conflict with references. With lines, flows with packets of unusual sizes miss their intervals too often.
//
// # How sure it is
//
// The receiver estimates every reference from its neighbours, as if it had not arrived, and so learns how far off its
// estimates are. References do not reveal all delays: the injector may stop, packets may overtake each other,
// references may be lost where packets are not, the sender's software may pause, a clock may be stepped. If this
// concerns more than one in 20 of a flow's packets, the answer is an error that wraps [ErrUntrusted] and says why;
// otherwise the interval is wider. It is wider, too, by what references do to packets behind them: these wait for the
// reference itself, and for a sender that stops for P ns at each, every T ns, as references say or departures show.
// Where the queue never empties within P nothing shows such a pause, and the mean is off by up to P²/2T.
//
// # What it assumes
//
// There is one path with one queue, first come, first served. Measure each class with its own references and
// receiver, and report all packets that join the queue from elsewhere to that receiver with [Receiver.Pass].
// An offset of the clocks is added to every mean, exactly; package estimate/clock can remove it. A step that is
// shorter than the time between two references looks like a longer wait. Nothing is known of lost packets.
//
// # Source
//
// M. Lee, N. Duffield, R. R. Kompella, Not All Microseconds are Equal: Fine-Grained Per-Flow Measurements with
// Reference Latency Interpolation, SIGCOMM 2010, extended version. Linear is its RLI estimator, eq. (1),
// section III-C, and Left RLI-L; Config.Rate is l_c, Config.ReferenceBytes b, and InjectorConfig.Rate Algorithm
// 1, section III-B.1; a record holds c, m and v, eq. (2) to (6). The rest is ours: METHODS.md, section 4.
package rli
