package figcolate

import (
	"context"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

var split = experiment.Experiment{
	Name:   "colate-2",
	Group:  group,
	Title:  "How a flow's time stamps divide among its counters",
	Claim:  "What a flow adds to one of its m counters is about the m-th part of the sum of its time stamps: the ratio has mean and median 1 and rises steeply there, and the sum is taken as binomial, as if single units of time fell in counters (section 3.2, Lemma 1, Fig. 2).",
	Weight: 1, Quick: 0.2,
	Run: runSplit,
}

func runSplit(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	t, err := newTraffic(ctx, run, enterprise)
	if err != nil {
		return experiment.Result{}, err
	}
	if err := run.Progress(ctx, 1, 2); err != nil {
		return experiment.Result{}, err
	}
	parts := make([][countersEach]float64, len(t.flows))
	for _, p := range t.packets {
		j := hashing.Row(uint64(p.id), countersEach) // as the recorder chooses
		parts[p.flow][j] += float64(p.in)
	}
	f := plot.Figure{
		Title:   "A counter's share of its flow's time stamps, as a multiple of the expected one",
		Caption: fmt.Sprintf("Distribution over the %d counters of every flow. The paper's model of a binomial of time units is a step at 1.", countersEach),
		X:       plot.Axis{Label: "C_f / E[C_f]", Min: 0, Max: 4}, Y: plot.Axis{Label: "share of counters", Min: 0, Max: 1},
	}
	result := experiment.Result{Config: setting(run, map[string]any{"traffic": enterprise.trace})}
	table := experiment.Table{Title: "C_f / E[C_f]", Columns: []string{"packets of the flow", "flows", "mean", "median", "counters without a packet", "deviation", "deviation of the paper's model"}}
	for _, c := range []class{{"all", 1, unlimited}, {"≥ 100", 100, unlimited}, large} {
		var ratios []float64
		var moments estimate.Moments
		empty, flows, model := 0, 0, 0.0
		for i := range t.flows {
			if !c.has(&t.flows[i]) || t.flows[i].in == 0 {
				continue
			}
			flows++
			expected := t.flows[i].in / countersEach
			model += (1 - 1.0/countersEach) / expected
			for _, sum := range parts[i] {
				ratios = append(ratios, sum/expected)
				moments.Add(sum / expected)
				if sum == 0 {
					empty++
				}
			}
		}
		median := quantile(ratios, 0.5)
		name := "flows of " + c.name + " packets"
		if c.most == unlimited && c.least == 1 {
			name = "all flows"
		}
		f.Series = append(f.Series, plot.CDF(name, ratios, 400))
		predicted := math.Sqrt(model / float64(flows))
		table.Add(c.name, fmt.Sprint(flows), experiment.Number(moments.Mean()), experiment.Number(median), experiment.Percent(float64(empty)/float64(len(ratios))),
			experiment.Number(moments.StdDev()), experiment.Number(predicted))
		result.Claims = append(result.Claims,
			experiment.Claim{What: name + ": median of C_f / E[C_f]", Paper: "1", Ours: experiment.Number(median), Verdict: experiment.Holds(math.Abs(median-1) < 0.1)},
			experiment.Claim{What: name + ": deviation of C_f / E[C_f]", Paper: experiment.Number(predicted), Ours: experiment.Number(moments.StdDev()), Verdict: experiment.Holds(moments.StdDev() < 2*predicted)})
	}
	f.Series = append(f.Series, plot.Series{Name: "the paper's model", Kind: plot.Line, Paper: true, X: []float64{0, 1, 1, 4}, Y: []float64{0, 0, 1, 1}})
	result.Figures = []plot.Figure{f}
	result.Tables = []experiment.Table{table}
	result.Notes = []string{"The mean is 1 as a matter of arithmetic. A flow of fewer packets than counters leaves most of them empty, so that the median over all flows is 0. The deviation is that of the number of packets in a counter, √(m/p) at least; the paper's variance, eq. (2), counts time units as if each fell in a counter by itself, and on it rest its parameters (section 5)."}
	return result, nil
}
