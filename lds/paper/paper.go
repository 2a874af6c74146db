// Package paper has the formula with which the paper on LDS sizes a sketch, and its
// simple sketch, to check the paper. To size a sketch, use lds.Plan: it computes the
// sums that the formula approximates, and arrives at fewer and larger rows.
//
//	share := paper.SmallCollisions(0.0875, 4, 1) // 0.985, section 3.1
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
// large flow. For zRk ≥ 1 it has no meaning, and SmallCollisions returns 0. R = 1/(e·z)
// rows are best by it, and −ln ε rows hold 1 − Q at ε with the fewest cells.
//
// Many smaller flows together cause large collisions as well, the more of them
// there are to a cell. For the paper's example, with four rows, the formula
// promises 0.985; adding up says 0.93 and simulation 0.95, and two or
// three rows are better.
func SmallCollisions(load float64, rows, spread int) float64 {
	places := float64(rows) * float64(spread)
	return 1 - min(1, math.Pow(load*places, places))
}
