// Package figreal tests LDA on real packets, the pair of captures that ships
// with the two-point example.
//
// The truth is exact: every packet that left is matched with one that had
// come, identical ones in order. The two-point example compares a whole capture
// with it. Only IP packets count.
package figreal

import "github.com/hoplag/hoplag/bench/experiment"

// How numbers are written in claims and tables.
var percent = experiment.Percent

// Experiments returns the experiments on real packets.
func Experiments() []experiment.Experiment {
	return experiment.In("Real packets", realLDA)
}
