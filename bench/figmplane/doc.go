// Package figmplane measures MPLANE: how much probing upgraded routers save and how much shorter they make
// segments (section VI, Fig. 9), and how often a slow router or link is named.
package figmplane

import "github.com/hoplag/hoplag/bench/experiment"

// Experiments returns all experiments of this package.
func Experiments() []experiment.Experiment {
	return experiment.In("MPLANE", made, faults)
}
