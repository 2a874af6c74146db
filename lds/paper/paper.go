// Package paper has the formulas with which the paper on LDS sizes a sketch:
// how many rows are best, and how many flows collide with few others. Use it
// to check the paper. To size a sketch, use lds.Plan: it computes the sums
// that these formulas approximate, and arrives at fewer and larger rows.
//
//	share := paper.SmallCollisions(0.0875, 4, 1) // 0.985, section 3.1
//	rows := paper.OptimalRows(0.0875)            // 4.20
//
// Source: J. Sanjuàs-Cuxart, P. Barlet-Ros, N. Duffield and R. Kompella,
// Sketching the Delay: Tracking Temporally Uncorrelated Flow-Level Latencies,
// IMC 2011, section 3.
package paper

import "math"

// SmallCollisions returns the probability that in one of a flow's cells the
// other flows bring few packets: Q = 1 − (z·R·k)^(R·k) for R rows and a Spread
// of k. The load z is the number of large flows per cell of the sketch, nP/C
// (sections 3.1 and 3.2). The formula blames every large collision on a single
// large flow. For zRk ≥ 1 it has no meaning, and SmallCollisions returns 0.
//
// Many smaller flows together cause large collisions as well, the more of them
// there are to a cell. For the paper's example, with four rows, the formula
// promises 0.985; adding up says 0.93 and simulation 0.95, and two or
// three rows are better.
func SmallCollisions(load float64, rows, spread int) float64 {
	places := float64(rows) * float64(spread)
	return 1 - min(1, math.Pow(load*places, places))
}

// OptimalRows returns the number of rows, not rounded, that maximises
// [SmallCollisions] at a given load and a Spread of 1: 1/(e·z), or 1 if that
// is less. With a Spread of k it is a k-th of that.
func OptimalRows(load float64) float64 {
	return max(1, 1/(math.E*load))
}

// TargetRows returns the number of rows, not rounded, that holds the
// probability of large collisions at failure with the fewest cells: −ln ε for
// a Spread of 1, and a k-th of that for k, at least 1 (section 3.2).
func TargetRows(failure float64, spread int) float64 {
	return max(1, -math.Log(failure)/float64(spread))
}

// Survivable returns the expected number of large flows with only small
// collisions in a single row with the given number of cells, if the fraction
// large of all flows is large: nP(1 − nP/C). It is at most C/4, at n = C/(2P)
// flows.
func Survivable(flows, large, cells float64) float64 {
	return max(0, flows*large*(1-flows*large/cells))
}
