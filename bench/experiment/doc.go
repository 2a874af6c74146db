// Package experiment is the framework for the experiments in this directory.
// It defines what an experiment is, what it gets, and how it reports what it
// found. A group of experiments is a package with one function, Experiments,
// which experiments.go of the command names:
//
//	func Experiments() []experiment.Experiment {
//		return experiment.In("Coins", experiment.Experiment{
//			Name: "coin-1", Title: "Heads against tosses",
//			Claim:   "Half of all tosses are heads (section 2, Fig. 1).",
//			Weight:  20, // seconds that the full run takes, roughly
//			Measure: heads,
//		})
//	}
//
//	func heads(run *experiment.Run) {
//		coin := experiment.Try(mint.Strike(1)) // an error ends the run
//		random := run.Rand("tosses")           // a generator of its own, from the seed
//		f := run.Draw("1", "Share of heads", "By tosses.", plot.LogAxis("tosses"), plot.LinearAxis("heads"))
//		share := f.Line(plot.Series{Name: "measured"})
//		for i := range run.Times(run.Pick(10, 100)) { // quick, full; reports progress, ends when interrupted
//			share.Add(float64(i), coin.Toss(random))
//		}
//		run.Between("share of heads", "0.5", share.Y[0], 0.5, 0.5, 0.1)
//		run.Config("coin", coin) // everything that was chosen; any value that encodes to JSON
//	}
//
// A Run keeps what the experiment reports, in order: by Figure, Draw, Table,
// Note and Config, and claims by Beats, Within, Between, Holds, Keeps or
// Claim. Each and Times are loops; SweepOver measures several methods over an
// axis, and package perflow scores answers about many flows.
//
// The same seed must give the same result, bit for bit. Draw from run.Rand, or
// give run.Seed to a Config. Never read a clock, and never let the order of a
// map or of goroutines show. An experiment runs on one core. The command runs
// as many side by side as there are cores, so experiments must not share
// mutable state. If several figures show the same runs, make them one
// experiment with several figures. A figure's CSV, SVG and place in the report
// follow from the Result.
package experiment
