// Package rli is Reference Latency Interpolation: the one-way delay of every
// packet, and so of every flow, through a queue, from reference packets that
// the sender injects into the traffic with their time of sending. Only the
// receiver keeps state: nothing is carried in any packet but the references,
// and nothing is collected from the sender.
//
//	injector, err := rli.NewInjector(rli.InjectorConfig{Every: 100, ReferenceBytes: 64}) // at the sender
//	if reference, ok := injector.Packet(length, time.Now().UnixNano()); ok {
//		conn.Write(injector.Append(nil, reference)) // behind the packet
//	}
//
//	receiver, err := rli.NewReceiver(rli.DefaultConfig) // at the far end of the queue
//	receiver.Update(tuple.Flow(seed), length, time.Now().UnixNano())
//	err = receiver.Accept(reference, time.Now().UnixNano())
//	result, err := receiver.Estimate(tuple.Flow(seed))
//	fmt.Println(result.Mean, result.N)
//
// # The machine
//
// An [Injector] at the sender is told of every packet and says when a
// reference goes out: after so many packets, after so long, or at a rate that
// falls with the link's utilisation. The reference follows directly behind a
// packet, as at the same instant, and carries a [ReferencePacket].
//
// A [Receiver] at the far end of the queue is told of every departure. It
// holds the packets in a buffer until the next reference, gives each one a
// delay, and adds it to the record of its flow: count, sum and sum of squares,
// and a histogram if wanted. There are three ways to give a packet its delay:
//
//   - [Left]: that of the reference before, as there is no buffer.
//   - [Linear]: on the straight line between the references on both sides,
//     or the packets that they name, over the time of departure; eq. (1).
//   - [BusyAware]: see below. It is what [Auto] means where the link's rate is
//     known.
//
// All three correct for the time that the link takes to send the packet, where
// its rate is known.
//
// # Busy periods
//
// Where the receiver sees all departures of a link that sends at a known rate
// whatever is there to be sent, the departures tell more than the references
// do. A packet that departs later after the one before than its own
// transmission takes found the link idle: it did not wait at all. It begins a
// busy period, in which packets depart back to back, and none can have waited
// for longer than the link had been busy. A reference tells when it arrived,
// and when the packet directly before it did ([ReferencePacket.Behind]).
//
// Between two packets of a busy period whose waiting times are known, or from the
// last one to the period's end, where nothing waits, the waiting time goes up and
// down at random and never below nothing: BusyAware gives every packet the mean of
// a Brownian bridge that stays positive. How much such bridges spread is learned,
// from references, by time since the known packet and time left in the period.
//
// What is neither waiting nor transmission, the base delay, is learned too. A
// reference that waited w and departed when the link had been busy for e has
// 0 ≤ w ≤ e, which confines the base delay to an interval. The intervals of
// all references must have a point in common. If they have not, or if packets
// depart faster than the link's rate, then the rate is wrong, or the link does
// not send all the time (a shaper, or a class of higher priority), or not all
// departures were told of, or packets left out of order, or the clock was
// stepped. The receiver counts it, is Linear from there on, and believes the
// link again after a run of references that agree, of 16 at first, and twice
// as many after every disappointment. A queue that is never empty tells no
// base delay, and BusyAware is then Linear throughout.
//
// How much longer than its bytes a packet takes, because of a preamble, a gap or a
// checksum that sizes do not count, and by how much time stamps are off, is learned
// from how soon references depart after the packets that they name.
//
// Linear goes on correcting for the time to send a packet at the rate that it
// was told. That is right on a link that another class shares, and wrong behind
// a shaper, which lets a packet pass at once or makes it wait, and takes no time
// to send it: there, use Linear and tell it no rate.
//
// # How sure it is
//
// Every reference is also estimated from its neighbours, as if it had not come.
// How far off that is makes the intervals of means and deviations,
// [Result.MeanInterval] and [Result.DeviationInterval]: one independent error for
// each pair of references that a flow's packets came between, and what all have in
// common. They hold the truth in 98 to 100 % of flows where they say 95 %:
//
//	go run ./bench ours-rli-coverage
//
// # What it assumes
//
// First come, first served: references and packets of a receiver share one
// queue. The clocks of injector and receiver agree; an offset is added to every
// mean, exactly, and changes no deviation, but a histogram's buckets; a step of
// one of them spoils the interval that it is in, up to the next Reset. Where
// package estimate/clock knows by how much they disagree, its Reading.NearTime
// of the time that a reference was sent takes that out, drift and all. For
// BusyAware, packets that join the queue from elsewhere must be told by
// [Receiver.Pass]; for Linear and Left they need not.
//
// # What it cannot measure
//
// Packets that take another path than the references, or another class: references
// tell of their own queue only, and nothing shows that other packets did not go
// through it. Tell packets of other classes by [Receiver.Pass], never by Update, and
// measure each class by references and a receiver of its own.
// Within a busy period without reference, it knows the course of the waiting
// time on average only: errors of one packet are of the order of its waiting
// time, and means of flows are better by as much as they average over busy
// periods, down to a bias that they share: within 3 % of the mean wait where there
// are references in most busy periods of some length, and up to 6 % where they
// are few (TestBias). Loss, but for references.
//
// A reference directly behind a packet has waited for that packet too, while
// most packets of an idle link wait for none. So straight lines do not go
// through the reference, but through the packet that it was sent behind:
// [ReferencePacket.Behind] names its size, and if a packet of that size departed
// right before the reference, its delay is known exactly. Without the field a
// reference is taken to have come at any time; then Linear and Left overestimate
// at low load, by more than the true delay where packets are small, and BusyAware
// learns less.
//
// Where no reference follows, because the buffer is full or was flushed, the
// last known delay is held, by Linear, and by BusyAware as far as the link's
// state and what was learned of it allow.
//
// # Source
//
// M. Lee, N. Duffield, R. R. Kompella, Not All Microseconds are Equal:
// Fine-Grained Per-Flow Measurements with Reference Latency Interpolation,
// SIGCOMM 2010; section numbers are of its extended version. Names and
// symbols:
//
//	Adaptation              Algorithm 1   section III-B.1
//	Adaptation.Smoothing    α
//	Injector.Utilisation    u_est
//	Linear                  RLI estimator, eq. (1), section III-C
//	Left                    RLI-L estimator
//	Config.Rate             l_c
//	Config.ReferenceBytes   b
//	record                  c, m, v: eq. (2) to (6)
//
// Beyond the paper are BusyAware, the Behind field, sequence numbers, and
// histograms.
package rli
