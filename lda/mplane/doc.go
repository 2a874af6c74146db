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
//	plan.MSet(router)                                        // what it probes
package mplane
