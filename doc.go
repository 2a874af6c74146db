// Package hoplag measures how long packets or messages take between two points,
// how many are lost, and how far the points' clocks disagree. Packets carry no
// time stamp, nothing is stored per packet, and a packet costs nanoseconds:
// each point adds times up in a few thousand counters, and one point fetches
// the other's.
//
//	// process A                                    // process B
//	a, err := hoplag.NewPoint(hoplag.Config{Key: k})    b, err := hoplag.NewPoint(hoplag.Config{Key: k})
//	http.Handle("/hoplag", a)                           for r := range b.Follow(ctx, "http://a/hoplag") {
//	                                                    slog.Info("delay", "a→b", r)
//	a.Passed(id) // in any goroutine                }
//	                                                b.Passed(id)
//
// Each second there is a [Report] with the mean delay and its interval, the
// deviation, quantiles and the loss. The id is whatever both points know a
// message by; [Direction] says what makes a good one. Package hashing
// identifies packets and frames.
//
// # Clocks
//
// If messages go one way only, every delay is wrong by the difference of the
// clocks, and the report says that the clocks are not known. If something comes
// back, tell the points:
//
//	b.Back.Passed(id) // the response leaves B
//	a.Back.Passed(id) // and arrives at A
//
// Then the same counters give the clocks' offset and drift, and delays are
// right to microseconds, or to the difference between the least delays of the
// two paths, even if the clocks are days apart.
//
// # Flows, stores, fleets
//
// With [Config.Flows] and [Direction.PassedIn] each report has the delay of
// every flow, slowest first. [Direction.Keep] keeps what passes in a store that
// you can ask months later. A [Pair] compares two points by the records that a
// message bus carries ([Point.Records]). [Metrics] shows reports to Prometheus
// and expvar. [Point.FollowOver] follows over connections, datagrams ([Dial])
// or any [Exchange] of bytes.
//
// # How it works
//
// A point adds the times and the hashes of what passes to the counters of
// package lda, and every tenth of a second keeps a cut: what they grew by. A
// follower fetches these cuts, pairs them with its own of the same moments, and
// compares counter by counter. If the packets that came out are those that went
// in, by number and digest, the times differ by the delays, whatever is on its
// way at a cut (see [estimate.Levels]). A lost packet spoils one counter until
// the next cut.
//
// # When not to use it
//
// If you own the message and trust both clocks, put a time stamp into it and
// keep a histogram at the receiver. That is simpler, just as fast, and knows
// every delay. Use hoplag for what you forward unchanged; for captures,
// switches and equipment of several vendors; for millions of flows; for loss,
// which a time stamp that never arrives does not show; and for clocks that
// disagree.
//
// # What it cannot do
//
// A packet that changes on the way is a different packet. Nothing tells two
// messages apart that use the same id at the same time. If too many packets are
// lost, or on their way at once, hardly any counter holds the same packets at
// both points, and the delay has an error instead of a mean; use larger
// [Config.Cells] or a shorter [Config.Cut].
//
// # Beneath
//
// This package is for any number of goroutines and reads the clock. If you have
// one goroutine and your own clock, as a switch does, use the synopses
// themselves:
//
//   - [github.com/hoplag/hoplag/lda], the mean, deviation and loss of all
//     packets together;
//   - [github.com/hoplag/hoplag/rli], each flow's delay, from reference
//     packets that the sender injects;
//   - [github.com/hoplag/hoplag/lds], each flow's delay, without a delay model
//     and without state per flow;
//   - [github.com/hoplag/hoplag/colate], each flow's delay, asked months
//     later of shared counters that were kept;
//
// and [github.com/hoplag/hoplag/hashing] to tell which packet is which. Each
// package has a Plan that says how large a synopsis must be for a Demand; see
// the example Sizes. Package estimate/clock is about clocks.
// [github.com/hoplag/hoplag/queue] and its traces are for simulation and tests.
package hoplag
