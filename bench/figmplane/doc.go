// Package figmplane measures MPLANE: how much less probing, and how much
// shorter segments, some upgraded routers bring (section VI, Fig. 9), and how
// often a router or link that became slow is named.
package figmplane

import "github.com/hoplag/hoplag/bench/experiment"

// Experiments are all experiments of this package.
func Experiments() []experiment.Experiment {
	return experiment.In("MPLANE", sprint, made, faults)
}
