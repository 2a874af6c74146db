package main

import (
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/figclock"
	"github.com/hoplag/hoplag/bench/figcolate"
	"github.com/hoplag/hoplag/bench/figdoor"
	"github.com/hoplag/hoplag/bench/figlda"
	"github.com/hoplag/hoplag/bench/figlds"
	"github.com/hoplag/hoplag/bench/figmplane"
	"github.com/hoplag/hoplag/bench/figreal"
	"github.com/hoplag/hoplag/bench/figrli"
)

// experiments returns all experiments, in the order of the list and the
// report. A new group is one more line.
func experiments() []experiment.Experiment {
	return slices.Concat(
		figlda.Experiments(),
		figrli.Experiments(),
		figlds.Experiments(),
		figcolate.Experiments(),
		figclock.Experiments(),
		figdoor.Experiments(),
		figreal.Experiments(),
		figmplane.Experiments(),
	)
}
