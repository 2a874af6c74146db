// Package hoplag measures how long packets or messages take between two points,
// how many are lost, and how far the points' clocks disagree. Packets carry no
// time stamp, nothing is stored per packet, and a packet costs nanoseconds:
// each point adds times up in a few thousand counters, and one point fetches
// the other's.
//
//	// process A                                          // process B
//	a, err := hoplag.NewPoint(hoplag.Config{Key: k})      b, err := hoplag.NewPoint(hoplag.Config{Key: k})
//	http.Handle("/hoplag", a)                             for r := range b.Follow(ctx, "http://a/hoplag") {
//	a.Passed(id) // in any goroutine, before it leaves        slog.Info("delay", "a→b", r)
//	                                                      }
//	                                                      b.Passed(id) // after it has come
//
// Each second there is a [Report] with the mean delay and the interval that holds
// it, quantiles and the loss. The id is whatever both points know a message by;
// [Direction] says what makes a good one. Package hashing identifies packets and
// frames.
//
// # Clocks
//
// If the points are on one host, or PTP keeps their clocks, say so
// ([Config.ClocksAgree]). Otherwise every delay is off by what the clocks differ,
// and the interval of a mean says by how much that may be. The exchanges of a
// follower bound it to a round trip. If something comes back, tell the points:
//
//	b.Back.Passed(id) // the response leaves B
//	a.Back.Passed(id) // and arrives at A
//
// Then the same counters give the clocks' offset and drift, even if the clocks are
// days apart, and delays are right to half of what the least delays of the two
// paths differ by ([Config.Asymmetry]). Nothing that the points can measure tells
// more than that, but for the round trip, which needs no clocks.
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
// # When not to use it
//
// If you own the message and trust both clocks, put a time stamp into it and
// keep a histogram at the receiver. That is simpler, just as fast, and knows
// every delay. Use hoplag for what you forward unchanged; for captures,
// switches and equipment of several vendors; for millions of flows; for loss,
// which a time stamp that never arrives does not show; and for clocks that
// disagree. A packet that changes on the way is a different packet, and nothing
// tells two messages apart that use one id at one time.
//
// # Beneath
//
// This package is for any number of goroutines and reads the clock. If you have
// one goroutine and your own clock, as a switch does, use the synopses
// themselves: [github.com/hoplag/hoplag/lda] for all packets together,
// [github.com/hoplag/hoplag/rli] for each flow from reference packets,
// [github.com/hoplag/hoplag/lds] for each flow without state per flow, and
// [github.com/hoplag/hoplag/colate] for each flow months later. Each has a Plan
// that says how large it must be for a Demand; see the example Sizes.
package hoplag
