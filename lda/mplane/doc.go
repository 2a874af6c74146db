// Package mplane finds the router, or the stretch between routers, that makes
// a path of a network slow. It plans which monitor measures what when only
// some routers can measure, collects the monitors' reports, and names the
// segments that explain a slow path.
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
//	err = station.Take(now, report)                          // or what is measured in its process
//	verdict, err := station.Localise(path, 0, interval, mplane.Target{Mean: 10e6})
//
// # The machine
//
// An upgraded router (m-router) measures each way through itself, from one
// neighbour to another, with an LDA. Some routers are not upgraded but have a
// measurement server beside them (m-servers). From each monitor, m-router or
// m-server, the way to the next monitor is measured from outside: by packets
// that pass both monitors, or by probes. Every shortest path is cut at the
// m-routers on it. So a path's delay is the sum of its segments' delays, and
// no probe runs further than to the next monitor.
//
// The station keeps the latest intervals of every segment. A path's mean is
// the sum of its segments' means. Its variance is the sum of their variances
// if what delays a packet on one segment does not delay it on another.
// Localise compares each segment with the segment's own history, both its mean
// and the part of it that bursts do not explain, and names the segments whose
// excess is no chance. It names a queue that a burst makes slow only if no
// earlier burst came near to it, and the heavier earlier bursts were the less
// readily. What grows slowly does not hide in its own past.
//
// # Clocks
//
// Inside a router there is one clock. Between routers there are two, and they
// need not agree. If packets pass both ways, the two monitors read each
// other's clocks from their synopses with a [clock.Tracker], and send the
// reading along ([Measurement.SetClock]). For segments without a reading, the
// station solves for all clocks of the network together. So it does not
// mistake a clock that drifts or is set, and shifts all segments that begin or
// end there, for a slow segment. The solution is about as good as the delays
// around the clock are constant; a reading is good to a few nanoseconds.
//
// A path's absolute delay is certain only within its round trip
// ([PathResult]'s Certain). Its changes are known much better than that.
//
// # What it cannot tell
//
// A fault from before the history began counts as usual, and so does a fault
// after it has lasted for half of the history. If both directions of all
// segments around a router change by opposite amounts, that is taken for its
// clock. A virtual link passes routers that do not measure, so only the whole
// of it is known. Paths that routing does not take are not measured.
//
// # Source
//
// R. R. Kompella, K. Levchenko, A. C. Snoeren and G. Varghese, Router Support
// for Fine-Grained Latency Measurements (2012), sections II and VI.
//
//	paper                here
//	m-set                Plan.MSet
//	MSP                  Report
//	probe hop count      Coverage.Hops
//	Algorithm 1          ByPaths
//	MEC                  SegmentID.Class
//	Σ d²                 Plan.Internal
package mplane
