// Package figreal tests LDA on real packets: what the program of
// examples/twopoint says of the captures that ship with it, with the exact answer
// beside. It runs in the project's root.
package figreal

import "github.com/hoplag/hoplag/bench/experiment"

// Experiments returns the experiments on real packets.
func Experiments() []experiment.Experiment {
	return experiment.In("Real packets", realLDA)
}
