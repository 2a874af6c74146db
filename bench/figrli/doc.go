// Package figrli measures what the evaluation of RLI measured: M. Lee, N.
// Duffield, R. R. Kompella, Not All Microseconds are Equal: Fine-Grained
// Per-Flow Measurements with Reference Latency Interpolation, SIGCOMM 2010,
// extended version, sections II and V.
//
// The paper sends packets of backbone traces, which are not here, through a
// simulated queue. Here four kinds of traffic go through that queue, RED with
// the paper's settings before a link of 10 Gb/s: three that are drawn, and one
// of recorded packets, whose times are scaled to the utilisation, where the
// recording is at hand. References follow directly behind a packet, in the same
// queue. The truth is the simulated delay of the packets that arrived.
package figrli

import (
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
)

// Experiments are those of the RLI paper, and ours of its queue.
func Experiments() []experiment.Experiment {
	return slices.Concat(
		experiment.In("RLI (delay per flow from reference packets)", traces, locality, injectionRate, injectionWay, accuracy, comparison,
			aggregate, overhead, underLoss),
		experiment.In("Ours: RLI", quantiles, busyAware, coverage, robust, ownSize, beyondLink, bias))
}
