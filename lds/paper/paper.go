// Package paper has the formulas by which the paper on LDS sizes a sketch: how
// many rows are best, and how many flows collide with few others. They are there
// to check the paper by; lds.Plan adds up what they approximate, and comes to
// fewer and larger rows.
//
//	share := paper.SmallCollisions(0.0875, 4, 1) // 0.985, section 3.1
//	rows := paper.OptimalRows(0.0875)            // 4.20
//
// After J. Sanjuàs-Cuxart, P. Barlet-Ros, N. Duffield and R. Kompella, Sketching
// the Delay: Tracking Temporally Uncorrelated Flow-Level Latencies, IMC 2011,
// section 3.
package paper

import "math"

// SmallCollisions returns the probability that a flow has a cell in which the
// flows it collides with bring few packets: Q = 1 − (z·R·k)^(R·k) for R rows
// and a Spread of k, where z, the load, is the number of large flows per cell
// of the sketch, nP/C (sections 3.1 and 3.2). It blames every large collision
// on a single large flow; where it has no meaning, from zRk = 1 on, it is 0.
//
// Many smaller flows together are to blame as well, the more there are to a
// cell: of the paper's example, with four rows, it promises 0.985 where
// lds.SmallSums says 0.93 and simulation 0.95, and two or three rows are better.
func SmallCollisions(load float64, rows, spread int) float64 {
	places := float64(rows) * float64(spread)
	return 1 - min(1, math.Pow(load*places, places))
}

// OptimalRows returns the number of rows, not rounded, that makes
// [SmallCollisions] greatest at a given load and a Spread of 1: 1/(e·z), or 1
// if that is less. With a Spread of k it is a k-th of that.
func OptimalRows(load float64) float64 {
	return max(1, 1/(math.E*load))
}

// TargetRows returns the number of rows, not rounded, with which the
// probability of large collisions is held at failure with the fewest cells:
// −ln ε for a Spread of 1, and a k-th of that for k, at least 1 (section 3.2).
func TargetRows(failure float64, spread int) float64 {
	return max(1, -math.Log(failure)/float64(spread))
}

// Survivable returns how many large flows, of those whose share among all the
// flows is large, are expected to have only small collisions in a single row
// of cells cells: nP(1 − nP/C), at most C/4, at n = C/(2P) flows.
func Survivable(flows, large, cells float64) float64 {
	return max(0, flows*large*(1-flows*large/cells))
}
