// Package mplane finds the router, or the stretch between routers, that makes a path of a network slow. Where
// only some routers can measure, it plans which monitor measures what, collects the monitors' reports, and
// names the segments that explain a slow path.
//
//	network, err := mplane.ReadWeights(file)                 // the map, with routing weights
//	upgrades, err := network.PlanUpgrades(ctx, mplane.UpgradeDemand{Count: 45})
//	plan, err := network.Plan(upgraded, servers)
//	plan.MSet(router), plan.Internal(router)                 // what it measures
//
//	datagrams, err := plan.Datagrams(report, key)            // at each monitor, once an interval
//
//	station, err := mplane.NewStation(mplane.StationConfig{Plan: plan, Key: key, Length: 1e9})
//	err = station.Receive(now, datagram)                     // at the station, each of them
//	verdict, err := station.Localise(path, interval)
//
// # The machine
//
// An upgraded router (m-router) measures each way through itself, from one neighbour to another, with an LDA.
// Others may have a measurement server beside them (m-servers). The way from each monitor, m-router or
// m-server, to the next is measured from outside: by packets that pass both, or by probes. Every shortest path
// is cut at its m-routers, so its delay is the sum of its segments' delays, and no probe goes farther than to
// the next monitor.
//
// The station keeps the latest intervals of every segment. Localise compares each segment with its own history,
// both its mean and the part of it that bursts do not explain, and names those whose excess is not chance. One
// interval is not enough, because the next burst may be greater than all earlier ones; three or more among the
// greatest are. A delay that grows slowly does not hide in its own past.
//
// # Clocks
//
// Inside a router there is one clock. Between routers there are two, which need not agree. If packets pass both
// ways, the two monitors read each other's clocks from their synopses with a [clock.Tracker], and send the
// reading along ([Measurement.SetClock]): it is good to a few nanoseconds. Without a reading, as when a clock
// has just been set, a segment and its way back are compared together, which no clock changes.
//
// # What it cannot tell
//
// A fault counts as usual if it is older than the history, or has lasted for half of it. A virtual link passes
// routers that do not measure, so only the whole of it is known. Paths that routing does not use are not
// measured.
//
// # Source
//
// R. R. Kompella, K. Levchenko, A. C. Snoeren and G. Varghese, Router Support for Fine-Grained Latency
// Measurements (2012), sections II and VI. Its MSP is [Report], the probe hop count Coverage.Hops, Algorithm 1
// UpgradeDemand.ByPaths, MEC a Station for each class of packets, and Σ d² the segments of [Plan.Internal].
package mplane
