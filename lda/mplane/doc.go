// Package mplane tells which router, or which stretch between routers, makes a
// path of a network slow. It works out who measures what when only some
// routers can measure, collects what they report, and names the segments that
// explain a slow path. After MPLANE, sections II and VI of R. R. Kompella,
// K. Levchenko, A. C. Snoeren and G. Varghese, Router Support for
// Fine-Grained Latency Measurements (2012).
//
//	network, err := mplane.ReadWeights(file)                 // the map, with routing weights
//	upgrades, err := network.PlanUpgrades(ctx, mplane.UpgradeDemand{Count: 45})
//	plan, err := network.Plan(mplane.Deployment{Upgraded: …, Servers: …})
//	plan.MSet(router), plan.Internal(router)                 // what it measures
//
//	data, err := mplane.AppendReport(nil, report, key)       // at each monitor, once an interval
//
//	station, err := mplane.NewStation(mplane.StationConfig{Plan: plan, Key: key, Length: 1e9})
//	_, err = station.Receive(now, data)                      // at the station, whatever comes
//	verdict, err := station.Localise(path, 0, interval, mplane.Target{Mean: 10e6})
//
// # The machine
//
// An upgraded router (m-router) measures each way through it, from one
// neighbour to another, by an LDA. From its neighbours on, and at routers that
// are not upgraded but have a measurement server beside them (m-servers), the
// way to the next monitor is measured from outside: by packets that pass both
// monitors, or by probes. Every shortest path is cut at the m-routers on it,
// so that a path's delay is the sum of its segments', and no probe runs
// further than to the next monitor.
//
// The station keeps the latest intervals of every segment. A path's mean is
// the sum of its segments' means, and its variance of their variances if what
// delays a packet on one segment does not delay it on another. Localise holds
// each segment against its own history, its mean and what bursts do not
// explain of it, and names those whose excess is no chance. A queue that a
// burst makes slow is named only if no burst before came near to it.
//
// # Clocks
//
// Inside a router there is one clock. Between routers there are two, and they
// need not agree. Where packets pass both ways the two monitors read each
// other's clocks from their synopses, by a [clock.Tracker], and send that along
// ([Measurement.SetClock]). For segments without a reading the station solves
// for all clocks of the network together, so that a clock that drifts or is
// set, and with it all segments that begin or end there, is not taken for a
// slow segment. That is good to about what delays around it vary by, and a
// reading to a few nanoseconds.
//
// A path's absolute delay is certain within its round trip ([PathResult]'s
// Certain); its changes are much better known than that.
//
// # What it cannot tell
//
// A fault that was there before the history began is usual, and so becomes one
// that has lasted for half of the history. A change of both directions of all
// segments around a router, by opposite amounts, is its clock. Of a virtual
// link, which passes routers that do not measure, only the whole is known.
// Paths that routing does not take are not measured.
//
// # Symbols
//
//	paper                here
//	m-set                Plan.MSet
//	MSP                  Report
//	probe hop count      Coverage.Hops
//	Algorithm 1          ByPaths
//	MEC                  SegmentID.Class
//	Σ d²                 Plan.Internal
package mplane
