// Package hoplag measures how long packets, or messages, take between two
// points, how many are lost, and by how much the points' clocks disagree. No
// packet carries a time stamp, nothing is stored per packet, and a packet
// costs nanoseconds: each point adds times up in a few thousand counters, and
// one fetches those of the other.
//
//	// process A                                    // process B
//	a, err := hoplag.NewPoint(hoplag.Config{Key: k})    b, err := hoplag.NewPoint(hoplag.Config{Key: k})
//	http.Handle("/hoplag", a)                           for r := range b.Follow(ctx, "http://a/hoplag") {
//	                                                    slog.Info("delay", "a→b", r)
//	a.Passed(id) // in any goroutine                }
//	                                                b.Passed(id)
//
// A [Report] says, for each second, the mean delay with its interval, the
// deviation, quantiles and the loss. The id is whatever both points know a
// message by; see [Direction] for what makes a good one. Packets and frames are
// identified by package hashing.
//
// # Clocks
//
// If messages go one way only, every delay is off by as much as the clocks are
// apart, and the report says so: clocks are not known. If something comes
// back, tell the points:
//
//	b.Back.Passed(id) // the response leaves B
//	a.Back.Passed(id) // and arrives at A
//
// Then the clocks' offset and drift are found from the same counters, and
// delays are right to microseconds, or to whatever the two paths' least delays
// differ by, even where clocks are days apart.
//
// # Flows, stores, fleets
//
// With [Config.Flows] and [Direction.PassedIn] each report has the delay of
// every flow, the slowest first. [Direction.Keep] puts what passes into a store
// that is asked months later. A [Pair] compares two points by the records that
// a message bus brings ([Point.Records]); [Metrics] shows reports to
// Prometheus and expvar. [Point.FollowOver] follows over connections, datagrams
// ([Dial]) or any [Exchange] of bytes.
//
// # How it works
//
// A point adds the times and the hashes of what passes to the counters of
// package lda, and every tenth of a second keeps what they grew by. A follower
// fetches these cuts, finds which of its own were made at the same moments, and
// compares counter by counter: where as much came out as went in, by number and
// digest, the times differ by the delays, whatever is on its way at a cut (see
// [estimate.Levels]). A lost packet spoils one counter until the next cut.
//
// # When not to use it
//
// If you own the message and trust both clocks, put a time stamp into it and
// keep a histogram at the receiver. That is simpler, as fast, and knows every
// delay. hoplag is for what you forward unchanged, for captures, switches and
// several vendors, for flows by the million, for loss, which a time stamp that
// did not arrive does not show, and for clocks that disagree.
//
// # What it cannot do
//
// A packet that is changed on the way is another packet. Ids of two messages
// that are in use at once and equal are told apart by nothing. Where so many
// packets are lost, or on their way at a time, that next to no counter holds
// the same packets at both points, the delay has an error in place of a mean;
// larger [Config.Cells] or a shorter [Config.Cut] help.
//
// # Beneath
//
// The front door needs any number of goroutines and a clock. Who has one
// goroutine and a clock of his own, as a switch has, takes the synopses
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
// and [github.com/hoplag/hoplag/hashing] to tell which packet is which. How
// large they should be follows from a Demand, by the Plan of each package: see
// the example Sizes. What is to be known of clocks is in package estimate/clock.
// [github.com/hoplag/hoplag/queue] and its traces are for simulation and
// tests.
package hoplag
