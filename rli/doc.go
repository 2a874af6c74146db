// Package rli is Reference Latency Interpolation. It estimates the one-way
// delay of every packet through a queue, and so of every flow. The sender
// injects reference packets into the traffic that carry the time they were
// sent. Only the receiver keeps state: no other packet carries anything, and
// nothing is collected from the sender.
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
// An [Injector] at the sender sees every packet and decides when a reference
// goes out: after a number of packets, after a time, or at a rate that falls
// as the link fills. The reference follows directly behind a packet and
// carries a [ReferencePacket].
//
// A [Receiver] at the far end of the queue sees every departure. It holds
// packets in a buffer until the next reference, gives each one a delay, and
// adds the delay to the record of the packet's flow. [Config.Method] says how:
//
//   - [Left] takes the delay of the reference before. There is no buffer.
//   - [Linear] interpolates over the time of departure, on the straight line
//     between the references on both sides or the packets that they name; eq.
//     (1). Packets that are stamped together go by their order.
//   - [BusyAware] interpolates within busy periods of the link; see below.
//     [Auto] chooses it once the link's rate is known.
//
// All three correct for the time that the link takes to send the packet, if
// its rate is known.
//
// A record has the number of packets and the mean and deviation of their
// delays. On request it has the flow's 5-tuple ([Receiver.UpdateTuple]), and
// quantiles: from its own histogram, or from histograms that flows share,
// which take 2 MiB for 65,536 flows ([Config.Histograms]). If BusyAware
// estimates a packet, histograms take a random draw from what the packet may
// have waited instead of the mean, because means are closer together than
// delays. [NewRotation] measures interval after interval, and [Receiver.Merge]
// adds up receivers.
//
// # Busy periods
//
// Suppose that the receiver sees all departures of a link that sends at a
// known rate whenever it has something to send. Then departures reveal more
// than references do. If the gap before a packet's departure is longer than
// its own transmission takes, the packet found the link idle and did not wait.
// It begins a busy period, in which packets depart back to back. No packet can
// have waited longer than the link had been busy. A reference says when it
// arrived, and when the packet directly before it did
// ([ReferencePacket.Behind]).
//
// Consider two packets of a busy period whose waiting times are known, or the
// last such packet and the end of the period, where nothing waits. In between,
// the waiting time goes up and down at random and is never below zero.
// BusyAware gives every packet the mean of a Brownian bridge that stays
// positive, corrected by what references show.
//
// The receiver also learns the base delay: what is neither waiting nor
// transmission. A reference that waited w and departed when the link had been
// busy for e has 0 ≤ w ≤ e, which confines the base delay to an interval. The
// intervals of the latest references must have a point in common. If one clock
// is faster than the other, by up to one part in a thousand, the point drifts:
// references that found the link idle show by how much.
//
// If they have none, or if packets depart faster than the link's rate, some
// assumption is false. The rate is wrong, or the link does not send all the
// time (a shaper, or a class of higher priority), or the receiver missed
// departures, or packets left out of order, or the clock was stepped. The
// receiver counts this ([Counts]) and is Linear from there on. It trusts the
// link again after a run of references that agree: 16 at first, and twice as
// many after every disappointment. [Receiver.Trusted] reports the present
// state, and [Result.Believed] what an answer rests on. A queue that is never
// empty reveals no base delay; BusyAware is then Linear throughout.
//
// You need not set the rate. From when a reference joined the queue to when it
// departed, all packets departed back to back: 64 such spans reveal the rate,
// and what a packet takes beside its bytes. The receiver uses this if
// [Config.Rate] is 0, or if it does not trust the link at that rate
// ([Receiver.Rate], [Counts].Rates).
//
// A packet may take longer than its bytes, because of a preamble, a gap or a
// checksum that sizes leave out. The receiver assumes [Config.Overhead] until
// references show the difference, by how soon they depart after the packets
// that they name. It learns in the same way how far time stamps are off.
//
// Straight lines correct for the time to send a packet if [Config.Rate] is set.
// That is right on a link that another class shares. It is wrong behind a
// shaper, which lets a packet pass at once or makes it wait, and takes no time
// to send it: there, use Linear without a rate.
//
// # How sure it is
//
// The receiver also estimates every reference from its neighbours, as if it
// had not come. The errors of these estimates determine [Result.MeanInterval]
// and [Result.DeviationInterval]: one independent error for each pair of
// references that a flow's packets came between, and one that all packets have
// in common. The intervals contain the truth for 98 to 100 % of flows where
// they say 95 %:
//
//	go run ./bench ours-rli-coverage
//
// Over 24 runs each of Poisson, modulated Poisson, on–off and heavy-tailed
// traffic of 20 to 100 % load, the mean of all packets is off by less than 1 %
// of the mean wait in most, and by up to 1.5 % if heavy-tailed flows have one
// reference in 75 packets or fewer:
//
//	go run ./bench -seed 1 ours-rli-bias
//
// If references become rare just when bursts come, as with [PaperAdaptation],
// BusyAware misses 2 % of the wait of Poisson traffic at 85 % load, and 3 to 10 %
// of that of heavy-tailed flows. The references alone would miss 2 to 22 %: most
// of a burst is never looked at. In that case, inject at a fixed rate, with no
// more references. In one run at 85 % load and more, Linear's mean of all packets
// may be closer, and its flows' means are not.
//
// If queues are overloaded for a while, the errors of straight lines within
// and between busy periods can cancel in the means of flows. Linear is then
// closer.
//
// # What it costs
//
// With 65,536 flows, a packet and its share of a reference cost about as much as
// one update of a Go map of three counters by BusyAware, and three quarters of
// that by Linear. [Receiver.UpdateBatch] saves about a twentieth of it.
//
//	go test -run '^$' -bench 'RLIUpdate/.*-65536.*/counters|RLIBound' ./bench
//
// To fetch a record of 64 bytes from memory beyond the nearest caches and add to
// it takes a quarter of such an update, whatever else is done. If every record is
// at hand, Linear takes half of one, and BusyAware four fifths. With a million
// flows a map costs more: then Linear takes half of one, and BusyAware 0.6.
//
// # What it assumes
//
// The queue is first come, first served, and there is one way: references
// describe their own queue only. They carry the number of packets that the
// injector has seen, so the receiver notices packets that depart after a
// reference that was sent after them: of another class, by another way, or not
// reported to the injector. [Counts.Overtaken] counts these, and if they are
// more than one in 50,000 no interval is bounded. Measure each class with its
// own references and its own receiver, and report the other classes to that
// receiver with [Receiver.Pass]. [Counts.Missing] counts what the injector
// sent and never departed; what loss says about delays is not known.
//
// The clocks of injector and receiver agree. An offset is added to every mean,
// exactly, and changes no deviation, but moves delays to other buckets of a
// histogram. A clock step spoils its interval, up to the next Reset. If
// package estimate/clock knows how far the clocks disagree, its
// Reading.NearTime of the time that a reference was sent removes the offset,
// drift and all.
//
// BusyAware must be told, with [Receiver.Pass], of packets that join the queue
// from elsewhere. Linear and Left need not be.
//
// A reference directly behind a packet has waited for that packet, while most
// packets of an idle link wait for none. So lines go through the packet that
// the reference was sent behind: if a packet of that size departed right
// before the reference, its delay is known exactly. If the reference names no
// packet, Linear and Left overestimate at low load, by more than the true
// delay if packets are small, and BusyAware learns less.
//
// If no reference follows, because the buffer is full or was flushed, Linear
// holds the last known delay. So does BusyAware, as far as the link's state
// and what it has learned allow.
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
// This package goes beyond the paper with BusyAware, the Behind field,
// sequence numbers, intervals and quantiles.
package rli
