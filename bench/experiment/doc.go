// Package experiment is what the experiments of this directory have in common:
// what one is, what it is given, and what it returns. A group of experiments
// is a package with one function, Experiments, which experiments.go of the
// command names:
//
//	func Experiments() []experiment.Experiment {
//		return []experiment.Experiment{{
//			Name: "coin-1", Group: "Coins", Title: "Heads against tosses",
//			Claim:  "Half of all tosses are heads (section 2, Fig. 1).",
//			Weight: 20, // seconds that the full run takes, roughly
//			Run:    heads,
//		}}
//	}
//
//	func heads(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
//		random := run.Rand("tosses") // a generator of its own, from the seed
//		share := plot.Series{Name: "measured"}
//		for i := range run.Pick(10, 100) { // quick, full
//			if err := run.Progress(ctx, i, run.Pick(10, 100)); err != nil {
//				return experiment.Result{}, err // interrupted
//			}
//			share.Add(float64(i), toss(random, i))
//		}
//		return experiment.Result{
//			Figures: []plot.Figure{{
//				Name: "1", Title: "Share of heads",
//				X:    plot.Axis{Label: "tosses", Scale: plot.Log}, Y: plot.Axis{Label: "heads"},
//				Series: []plot.Series{share},
//			}},
//			Claims: []experiment.Claim{{What: "share", Paper: "0.5", Ours: experiment.Number(x), Verdict: experiment.AsGood}},
//			Config: config, // everything that was chosen; any value that encodes to JSON
//		}, nil
//	}
//
// The same seed must give the same result, bit for bit: draw from run.Rand, or
// give run.Seed to a Config; never read a clock, and never let the order of a
// map or of goroutines show. An experiment runs on one core; the command runs
// as many side by side as there are cores, so experiments share no state that
// changes. What several figures show is best one experiment with several
// figures. A figure's CSV, SVG and place in the report follow from the Result.
package experiment
