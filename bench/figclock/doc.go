// Package figclock measures how well package estimate/clock finds the offset
// and the drift of two clocks, beside what else does: half the difference of
// the mean delays, the filter of NTP, and two-way probes of as many bytes.
//
// Two points send each other packets through a queue each way: packets arrive
// one by one or in bursts of Pareto sizes, service times are exponential, two
// hops more add a few microseconds, and an LDA of the default Config measures
// each direction, second by second. The truth is known, since it was put in: the
// far clock is 5 ms ahead and gains 30 millionths. Probes see the same queues at
// the time they are sent, and add nothing to them.
package figclock

import "github.com/hoplag/hoplag/bench/experiment"

// Experiments are those on clocks.
func Experiments() []experiment.Experiment {
	return experiment.In("Clocks that disagree", clocks)
}
