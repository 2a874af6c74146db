package main

import (
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/figclock"
	"github.com/hoplag/hoplag/bench/figcolate"
	"github.com/hoplag/hoplag/bench/figlda"
	"github.com/hoplag/hoplag/bench/figlds"
	"github.com/hoplag/hoplag/bench/figreal"
	"github.com/hoplag/hoplag/bench/figrli"
)

// experiments are all there are, in the order of the list and the report. A new
// group is one more line.
func experiments() []experiment.Experiment {
	return slices.Concat(
		figlda.Experiments(),
		figrli.Experiments(),
		figlds.Experiments(),
		figcolate.Experiments(),
		figclock.Experiments(),
		figreal.Experiments(),
		unmeasured,
	)
}

// unmeasured have their place and cannot be run yet.
var unmeasured = []experiment.Experiment{{
	Name: "mplane-9", Group: "MPLANE",
	Title: "Probes and localisation against upgraded routers",
	Claim: "On the Sprint map (315 routers), upgrading about 15 % of the routers in a good order cuts the probes' hop count a hundredfold, and about a sixth brings the average segment from 4 hops to 1.5 (section VI, Fig. 9).",
}}
