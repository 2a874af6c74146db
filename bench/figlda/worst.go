package figlda

import (
	"context"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
)

var worstCase = experiment.Experiment{
	Name:   "lda-max",
	Group:  Group,
	Title:  "Largest error of ten runs at 0.16 % loss",
	Claim:  "At 0.16 % loss, for which the two-bank LDA was tuned, no run is off by more than 0.17 %; of the probes, runs are off by up to 87 % at 7 a second, 13 % at 144 and 0.15 % at 10,000 (section IV-C).",
	Weight: 3, Quick: 0.5,
	Run: runWorstCase,
}

// doubtful is the probability below which, or above one less which, the paper's
// largest error does not fit its sample.
const doubtful = 0.01

func runWorstCase(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	t, err := NewTrace(run, Laws[0])
	if err != nil {
		return experiment.Result{}, err
	}
	p, err := t.Lose(run, someLoss, episode)
	if err != nil {
		return experiment.Result{}, err
	}
	methods := []struct {
		name    string
		claimed float64
		sample  float64
		worst   float64
	}{{name: "LDA, two banks", claimed: 0.0017}, {name: "7 probes a second", claimed: 0.87}, {name: "144 probes a second", claimed: 0.13}, {name: "10,000 probes a second", claimed: 0.0015}}
	pt, err := p.measure(run, twoBanks, runs, counter(ctx, run, runs))
	if err != nil {
		return experiment.Result{}, err
	}
	methods[0].sample, methods[0].worst = pt.sample.Mean(), pt.worst
	for i, hertz := range frequencies[1:] {
		pr, err := p.probes(run, hertz, runs)
		if err != nil {
			return experiment.Result{}, err
		}
		methods[i+1].sample, methods[i+1].worst = pr.sample.Mean(), pr.worst
	}

	variation := p.Truth.StdDev / p.Truth.Mean
	table := experiment.Table{
		Name: "max", Title: fmt.Sprintf("Largest relative error of %d runs at %s loss, %s", runs, experiment.Percent(someLoss), t.Law.Name),
		Columns: []string{"method", "sample", "paper", "measured", "to expect of such a sample", "probability of the paper's or less"},
	}
	result := experiment.Result{
		Config: map[string]any{"packets": len(t.Delays), "runs": runs, "loss": someLoss, "loss that came about": p.LossRate, "episode": episode, "law": t.Law, "lda": pt.config},
		Notes: []string{
			fmt.Sprintf("The mean of S independent delays whose deviation is c times their mean is off by c/√S in the root mean square, whichever way they are picked; %s delays have c = %.2f. The largest of ten such errors is %.2f times that on average. The last column is the chance that ten errors are all as small as the paper's largest: where it is next to nothing, the paper's numbers are not those of averages of so many independent delays. A claim is judged by it, and does not hold where it is below 1 %% or above 99 %%.", t.Law.Name, variation, maximum(runs)),
		},
	}
	for _, m := range methods {
		one := variation / math.Sqrt(m.sample)
		expected := one * maximum(runs)
		chance := math.Pow(math.Erf(m.claimed/one/math.Sqrt2), runs)
		v := experiment.AsGood
		if chance < doubtful || chance > 1-doubtful {
			v = experiment.DoesNotHold
		}
		table.Add(m.name, experiment.Number(m.sample), experiment.Percent(m.claimed), experiment.Percent(m.worst), experiment.Percent(expected), fmt.Sprintf("%.2g", chance))
		result.Claims = append(result.Claims, experiment.Claim{
			What: "largest of ten errors, " + m.name, Paper: experiment.Percent(m.claimed), Ours: experiment.Percent(m.worst), Verdict: v,
		})
	}
	result.Tables = append(result.Tables, table)
	return result, nil
}
