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
//	fmt.Println(result.Mean, result.N, result.MeanInterval(0.95))
//
// # How it works
//
// An [Injector] at the sender is told of every packet and says when a reference
// goes out: after so many packets, after so long, or at a rate that falls as the
// link fills. The reference follows directly behind a packet and carries a
// [ReferencePacket].
//
// A [Receiver] at the far end of the queue is told of every departure. It holds
// packets in a buffer until the next reference, gives each one a delay, and adds
// it to the record of its flow. [Config.Method] says how:
//
//   - [Left]: the delay of the reference before. There is no buffer.
//   - [Linear]: on the straight line between the references on both sides, or the
//     packets that they name, over the time of departure; eq. (1).
//   - [BusyAware]: within busy periods of the link; see below. [Auto] means it
//     where the link's rate is known.
//
// All three correct for the time that the link takes to send the packet, where its
// rate is known.
//
// A record has the number of packets, the mean and deviation of their delays, and
// if wanted the flow's 5-tuple ([Receiver.UpdateTuple]) and quantiles: from a
// histogram of its own, or from histograms that flows share, which take 2 MiB for
// 65,536 flows ([Config.Histograms]). [NewRotation] measures interval after
// interval; [Receiver.Merge] adds up receivers.
//
// # Busy periods
//
// Where the receiver sees all departures of a link that sends at a known rate
// whatever is there to be sent, the departures tell more than the references do. A
// packet that departs later after the one before than its own transmission takes
// found the link idle: it did not wait. It begins a busy period, in which packets
// depart back to back, and none can have waited for longer than the link had been
// busy. A reference tells when it arrived, and when the packet directly before it
// did ([ReferencePacket.Behind]).
//
// Between two packets of a busy period whose waiting times are known, or from the
// last one to the period's end, where nothing waits, the waiting time goes up and
// down at random and is never below nothing: BusyAware gives every packet the mean
// of a Brownian bridge that stays positive, corrected by what references show.
//
// What is neither waiting nor transmission, the base delay, is learned too. A
// reference that waited w and departed when the link had been busy for e has
// 0 ≤ w ≤ e, which confines the base delay to an interval. The intervals of the
// latest references must have a point in common, which may drift. If they have
// not, or if packets depart faster than the link's rate, then the rate is wrong, or
// the link does not send all the time (a shaper, or a class of higher priority), or
// not all departures were told of, or packets left out of order, or the clock was
// stepped. The receiver counts it ([Counts]), is Linear from there on, and believes
// the link again after a run of references that agree: 16 at first, and twice as
// many after every disappointment. [Receiver.Trusted] tells which it is. A queue
// that is never empty tells no base delay, and BusyAware is then Linear throughout.
//
// How much longer than its bytes a packet takes, because of a preamble, a gap or a
// checksum that sizes do not count, is [Config.Overhead] until references show it,
// by how soon they depart after the packets that they name; and so is by how much
// time stamps are off.
//
// Linear goes on correcting for the time to send a packet at the rate that it was
// told. That is right on a link that another class shares, and wrong behind a
// shaper, which lets a packet pass at once or makes it wait, and takes no time to
// send it: there, use Linear and tell it no rate.
//
// # How sure it is
//
// Every reference is also estimated from its neighbours, as if it had not come. How
// far off that is makes [Result.MeanInterval] and [Result.DeviationInterval]: one
// independent error for each pair of references that a flow's packets came between,
// and what all have in common. They hold the truth in 98 to 100 % of flows where
// they say 95 %:
//
//	go run ./bench ours-rli-coverage
//
// The mean of all packets is off by about 1 % of the mean wait, and by chance, where
// one packet in ten has a reference:
//
//	go test -run TestBias -v ./rli
//
// It is off by more where references are few in busy periods: by 2 to 4 % where one
// packet in a hundred has a reference on a link that is 20 % busy, and by up to 12 %
// where references become fewer just when bursts come, as with [PaperAdaptation] and
// heavy-tailed flows. There, inject at a fixed rate.
//
// Where queues are overloaded for a while, the errors of straight lines within and
// between busy periods can cancel in means of flows, which are then nearer by Linear.
//
// # What it assumes
//
// First come, first served, and one way: references tell of their own queue only.
// They carry the number of packets that the injector was told of, so that the
// receiver notices packets that depart after a reference that was sent after them:
// of another class, or by another way, or not told to the injector. They are counted
// in [Counts.Overtaken], and where they are more than one in 50,000 no interval is
// bounded. Measure each class by references and a receiver of its own, which is told
// of the other classes by [Receiver.Pass]. What the injector sent and never departed is
// [Counts.Missing]; what loss says of delays is not known.
//
// The clocks of injector and receiver agree. An offset is added to every mean,
// exactly, and changes no deviation, but a histogram's buckets; a step of one of
// them spoils the interval that it is in, up to the next Reset. Where package
// estimate/clock knows by how much they disagree, its Reading.NearTime of the time
// that a reference was sent takes that out, drift and all.
//
// For BusyAware, packets that join the queue from elsewhere must be told by
// [Receiver.Pass]; for Linear and Left they need not.
//
// A reference directly behind a packet has waited for that packet too, while most
// packets of an idle link wait for none. So lines go through the packet that it was
// sent behind: if a packet of that size departed right before the reference, its
// delay is known exactly. Where no packet is named, Linear and Left overestimate at
// low load, by more than the true delay where packets are small, and BusyAware
// learns less.
//
// Where no reference follows, because the buffer is full or was flushed, the last
// known delay is held, by Linear, and by BusyAware as far as the link's state and
// what was learned of it allow.
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
// Beyond the paper are BusyAware, the Behind field, sequence numbers, intervals, and
// quantiles.
package rli
