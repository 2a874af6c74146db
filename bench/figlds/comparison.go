package figlds

import (
	"context"
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lds"
)

const (
	probes    = 1000 // references a second of RLI
	reference = 1    // of the columns below, the one with half as many cells as flows
)

// columnsOf are the columns of the paper's three sketches of four rows.
var columnsOf = []int{1750, 17500, 175000}

var comparison = experiment.Experiment{
	Name:   "lds-9",
	Group:  Group,
	Title:  "Error of flows' means, beside other methods (Fig. 9)",
	Claim:  "With half as many cells as flows (17,500 × 4), the sketch is far more accurate than NetFlow's multi-point estimator at 1 and 10 % sampling, RLI with 1,000 probes a second and the mean of all packets, for flows of 1,000 packets and more, of 100 and more, and for all; with a tenth of that memory it still is; RLI is better than the multi-point estimator (section 5.1, Fig. 9).",
	Weight: 12, Quick: 1,
	Run: runComparison,
}

func runComparison(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	intervals := run.Pick(3, 5)
	mean := &method{name: "mean of all packets"}
	rli := &method{name: "RLI, 1 kHz"}
	mpe := []*method{{name: "multi-point, 1 %"}, {name: "multi-point, 10 %"}}
	two := &method{name: "two own samples, 10 %"}
	var sketches []*method
	for _, columns := range columnsOf {
		sketches = append(sketches, &method{name: fmt.Sprintf("LDS %s × 4", experiment.Number(float64(columns)))})
	}
	var recorded, largeShare estimate.Moments
	step := run.Steps(ctx, 4*intervals)
	var configs []lds.Config
	for n := range intervals {
		iv, err := newInterval(run, n)
		if err != nil {
			return experiment.Result{}, err
		}
		large := 0.0
		for i := range iv.Flows {
			if iv.Flows[i].Size >= 100 {
				large += iv.packets[i]
			}
		}
		largeShare.Add(large / float64(iv.Packets))
		mean.add(iv, same(iv.Mean), nil)
		rli.add(iv, iv.interpolated(probes), nil)
		if err := step(); err != nil {
			return experiment.Result{}, err
		}
		for i, rate := range []float64{0.01, 0.1} {
			records, found := iv.records(rate)
			mpe[i].add(iv, iv.multiPoint(records), nil)
			if i == 1 {
				two.add(iv, iv.twoSamples(records), nil)
				recorded.Add(float64(found) / float64(len(iv.Flows)))
			}
		}
		if err := step(); err != nil {
			return experiment.Result{}, err
		}
		configs = nil
		for _, columns := range columnsOf {
			configs = append(configs, shape(run, columns, 1, everything(4)...))
		}
		observed, err := iv.observe(0, nil, configs...)
		if err != nil {
			return experiment.Result{}, err
		}
		if err := step(); err != nil {
			return experiment.Result{}, err
		}
		for i, s := range observed {
			sketches[i].add(iv, iv.estimated(s, lds.Estimate), nil)
		}
		if err := step(); err != nil {
			return experiment.Result{}, err
		}
	}

	others := []*method{mean, rli, mpe[0], mpe[1]}
	shown := append(append([]*method{}, sketches...), append(others, two)...)
	percent := experiment.Percent
	result := experiment.Result{
		Config: map[string]any{"intervals": intervals, "sketches": configs, "RLI probes a second": probes, "NetFlow sampling": []float64{0.01, 0.1}},
		Notes: []string{
			"The delays here have nothing to do with when a packet is sent, which is what the sketch is for: interpolation in time then gives the mean of all, whoever does it. On the paper's trace, some of a flow's delay shows in its neighbours'. NetFlow's two samples of a flow itself, which the paper does not show, are the better use of its records here. Of a flow of one packet that was sampled they are the truth: hence NetFlow's share of errors near 0 among all flows.",
			"A reference of RLI is given the delay of a packet drawn at random. The multi-point estimator is the mean of all flows' first and last samples while the flow lasts.",
			fmt.Sprintf("Flows of less than 100 packets have %s of the packets here, 20 %% in the paper's trace; at 10 %% sampling NetFlow has a record of %s of the flows, in the paper of about 70,000 of 146,000.", percent(1-largeShare.Mean()), percent(recorded.Mean())),
		},
	}
	for i, figure := range []struct {
		class int
		least float64
	}{{fromThousand, 0.01}, {fromHundred, 0.1}, {all, 1}} {
		f := plot.Figure{
			Name: string(rune('a' + i)), Title: "Relative error of the mean delay, " + classes[figure.class].name + " (Fig. 9)",
			Caption: fmt.Sprintf("Distribution over the flows of %d intervals. Errors of 0 are off the left end.", intervals),
			X:       errorAxis(figure.least), Y: shareAxis,
		}
		for _, m := range shown {
			f.Series = append(f.Series, m.cdf(figure.class))
		}
		result.Figures = append(result.Figures, f)
	}
	table := experiment.Table{Name: "methods", Title: "Relative error of flows' means: median / 95th percentile", Columns: []string{"method", classes[fromThousand].name, classes[fromHundred].name, classes[all].name}}
	for _, m := range shown {
		table.Add(m.name, m.cell(fromThousand), m.cell(fromHundred), m.cell(all))
	}
	result.Tables = []experiment.Table{table}

	best := func(c int) *method {
		b := others[0]
		for _, m := range others {
			if m.median(c) < b.median(c) {
				b = m
			}
		}
		return b
	}
	for i, paper := range []string{"better, for large flows most", "far better"} {
		for _, c := range []int{fromThousand, fromHundred, all} {
			b, s := best(c), sketches[i]
			result.Claims = append(result.Claims, experiment.Claim{
				What: fmt.Sprintf("median error of %s, against the best of the others: %s", s.name, classes[c].name), Paper: paper,
				Ours:    fmt.Sprintf("%s against %s (%s)", percent(s.median(c)), percent(b.median(c)), b.name),
				Verdict: experiment.Holds(s.median(c) < b.median(c)),
			})
		}
	}
	near := func(m *method) float64 { return estimate.NewEmpirical(m.found[all].all).CDF(0.1) }
	result.Claims = append(result.Claims,
		experiment.Claim{
			What: "share of all flows that are off by less than 10 %: LDS 17,500 × 4 against the multi-point estimator at 10 %", Paper: "consistently better",
			Ours: percent(near(sketches[reference])) + " against " + percent(near(mpe[1])), Verdict: experiment.Holds(near(sketches[reference]) > near(mpe[1])),
		},
		experiment.Claim{
			What: "median error of LDS 17,500 × 4 against NetFlow's two samples of the flow itself, 10 %: " + classes[fromHundred].name, Paper: "not shown",
			Ours:    percent(sketches[reference].median(fromHundred)) + " against " + percent(two.median(fromHundred)),
			Verdict: experiment.Judge(sketches[reference].median(fromHundred), two.median(fromHundred), 0.1),
		},
		experiment.Claim{
			What: "RLI is better than the multi-point estimator at 10 %: median, " + classes[fromHundred].name, Paper: "yes",
			Ours:    percent(rli.median(fromHundred)) + " against " + percent(mpe[1].median(fromHundred)),
			Verdict: experiment.Holds(rli.median(fromHundred) < 0.95*mpe[1].median(fromHundred)),
		},
	)
	return result, nil
}
