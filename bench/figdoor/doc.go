// Package figdoor runs the front door in virtual time, in combinations of clocks,
// paths, rates, losses and faults, and holds each report to the truth.
//
// Virtual time is that of testing/synctest, so the experiment runs the package's own
// test, with settings that it draws, and reads the outcomes:
//
//	go test -v -run TestDoor ./bench/figdoor -args -outcomes -settings FILE
package figdoor

import "github.com/hoplag/hoplag/bench/experiment"

// Experiments returns the experiments on the front door.
func Experiments() []experiment.Experiment {
	return experiment.In("The front door", door)
}
