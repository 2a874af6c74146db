// Package figlds measures what the evaluation of the LDS paper measured: J.
// Sanjuàs-Cuxart, P. Barlet-Ros, N. Duffield and R. Kompella, Sketching the
// Delay: Tracking Temporally Uncorrelated Flow-Level Latencies, IMC 2011,
// section 5; and what the sketch can do beyond it.
//
// The paper's trace, of a university's access link, was not published. Package
// flowsim makes one of the same size: 146,000 flows and 7.76 million packets,
// Pareto sizes, delays of two modes. The mean delays of its flows are far
// apart, some 200 to 800 µs, and nothing ties the delays of neighbours in time
// to one another, so that errors are larger here than the paper's, for all
// methods; only what is measured in one run can be compared. A quick run has a
// tenth of the flows and of the columns, so that the load of the sketch is the
// same.
//
// Errors are relative errors of a flow's mean delay. Those of several intervals,
// which differ in all that is random, are put together; the ends of a bar are
// the lowest and the highest of the intervals. A flow for which a method has no
// answer counts as an error of 100 %.
package figlds

import (
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
)

// Experiments are those of the LDS paper, and then ours.
func Experiments() []experiment.Experiment {
	return slices.Concat(
		experiment.In("LDS (delay per flow)", comparison, bySize, underLoss, weighted, mined, byRows),
		experiment.In("Ours: LDS", jointDecoding, byLoss, layouts, accumulated, overPaths))
}
