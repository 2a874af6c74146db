package figrli

import (
	"context"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
)

var aggregate = experiment.Experiment{
	Name:   "rli-11",
	Group:  group,
	Title:  "Mean and deviation of all packets, beside LDA (Fig. 11)",
	Claim:  "At the same bandwidth, 288 references an interval, LDA's mean is better than RLI's, which is below 2.5 %. With 1,440 RLI is below 0.3 % where loss exceeds 0.4 %, and LDA between 0.1 and 1.3 %; with less loss LDA is better. RLI's deviation is about a thousand times better than LDA's, 0.005 % against 1 to 27 % (section V-C, Fig. 11).",
	Weight: 8, Quick: 0.6,
	Run: runAggregate,
}

// perInterval is how many packets the paper's interval of one second has.
const perInterval = 400_000

// offered loads, up to overload: what loss there is comes of them.
var offered = []float64{0.70, 0.88, 0.92, 0.95, 0.98, 1.02, 1.08}

func runAggregate(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	packets := run.Pick(perInterval/4, perInterval)
	kinds := []kind{onOff, heavyTailed}
	if run.Quick {
		kinds = kinds[:1]
	}
	numbers := []int{288, 1440}
	c := lda.DefaultConfig
	c.Identity = run.SeedOf("lda")
	result := experiment.Result{
		Config: map[string]any{"packets": packets, "references": numbers, "offered": offered, "lda": c},
		Notes: []string{
			"References are one in so many packets, to come to 288 or 1,440 an interval. LDA is of this library's default size, with its count-conditioned deviation; RLI sees no packet at the sender.",
			"RLI's truth and LDA's are the same: all packets that arrived.",
		},
	}
	table := experiment.Table{
		Title:   "Relative error of the mean / of the deviation of all packets",
		Columns: []string{"traffic", "offered", "loss", "mean delay", "LDA", "LDA, eq. (5)"},
	}
	for _, n := range numbers {
		for _, m := range []method{byLine, byPeriod} {
			table.Columns = append(table.Columns, fmt.Sprintf("%s, %d", m.name, n))
		}
	}
	steps, done := len(kinds)*len(offered)*len(numbers), 0
	for _, kind := range kinds {
		names := []string{"LDA"}
		for _, n := range numbers {
			names = append(names, fmt.Sprintf("RLI, %d references", n), fmt.Sprintf("busy-aware, %d", n))
		}
		figures := [2]plot.Figure{
			{Name: "mean-" + kind.slug, Title: "Mean of all packets, " + kind.name + " (Fig. 11)", Y: plot.Axis{Label: "relative error of the mean (%)", Scale: plot.Log, Min: 1e-3, Max: 100}},
			{Name: "deviation-" + kind.slug, Title: "Deviation of all packets, " + kind.name, Y: plot.Axis{Label: "relative error of the deviation (%)", Scale: plot.Log}},
		}
		for i := range figures {
			figures[i].Caption = fmt.Sprintf("One interval of %d packets at each load. LDA without loss is exact, and off the scale.", packets)
			figures[i].X = plot.Axis{Label: "offered load (% of the link)"}
			for k, name := range names {
				figures[i].Series = append(figures[i].Series, plot.Series{Name: name, Paper: k%2 == 1, Pair: 1 + (k+1)/2})
			}
		}
		var few, many, losing, deviations, others estimate.Moments
		better := 0
		for _, u := range offered {
			row := []string{kind.name, percent(u)}
			for k, n := range numbers {
				p, err := simulate(run, setting{kind: kind, utilisation: u, packets: packets, injector: everyNth(packets / n)}, func() error { return run.Progress(ctx, done, steps) })
				if err != nil {
					return experiment.Result{}, err
				}
				done++
				off := func(d estimate.Delay) (mean, deviation float64) {
					return estimate.RelativeError(d.Mean, p.all.Mean()), estimate.RelativeError(d.StdDev, p.deviation())
				}
				put := func(i int, mean, deviation float64) {
					figures[0].Series[i].Add(100*u, 100*mean)
					figures[1].Series[i].Add(100*u, 100*deviation)
				}
				l, collapsed, err := p.aggregated(c)
				if err != nil {
					return experiment.Result{}, err
				}
				ldaMean, ldaDeviation := off(l.Delay)
				if k == 0 {
					_, eq5 := off(estimate.Delay{StdDev: collapsed})
					row = append(row, percent(p.loss()), duration(p.all.Mean()), percent(ldaMean)+" / "+percent(ldaDeviation), percent(eq5))
					put(0, ldaMean, ldaDeviation)
				}
				for i, m := range []method{byLine, byPeriod} {
					r, err := p.receive(p.config(m), nil)
					if err != nil {
						return experiment.Result{}, err
					}
					total, err := r.Total()
					if err != nil {
						return experiment.Result{}, err
					}
					mean, deviation := off(total.Delay)
					row = append(row, percent(mean)+" / "+percent(deviation))
					put(1+2*k+i, mean, deviation)
					if m != byLine {
						continue
					}
					if k == 0 {
						few.Add(mean)
						if mean <= ldaMean {
							better++
						}
					} else {
						deviations.Add(deviation)
						others.Add(ldaDeviation)
						if p.loss() > 0.004 {
							many.Add(mean)
							losing.Add(ldaMean)
						}
					}
				}
			}
			table.Rows = append(table.Rows, row)
		}
		result.Figures = append(result.Figures, figures[0], figures[1])
		more := experiment.AsGood
		if 2*better > len(offered) {
			more = experiment.DoesNotHold
		}
		result.Claims = append(result.Claims,
			experiment.Claim{What: kind.name + ": RLI's error of the mean with 288 references, average over loads", Paper: "< 2.5 %", Ours: percent(few.Mean()), Verdict: atMost(few.Mean(), 0.025)},
			experiment.Claim{What: kind.name + ": loads at which LDA's mean is better than RLI's with 288", Paper: "all", Ours: fmt.Sprintf("%d of %d", len(offered)-better, len(offered)), Verdict: more},
			experiment.Claim{What: kind.name + ": RLI's deviation with 1,440, average over loads, against LDA's", Paper: "0.005 % against 1–27 %", Ours: percent(deviations.Mean()) + " against " + percent(others.Mean()), Verdict: atMost(deviations.Mean(), others.Mean()/100)},
		)
		if many.N() > 0 {
			result.Claims = append(result.Claims, experiment.Claim{What: kind.name + ": RLI's mean with 1,440, above 0.4 % loss, against LDA's", Paper: "< 0.3 % against 0.1–1.3 %", Ours: percent(many.Mean()) + " against " + percent(losing.Mean()), Verdict: atMost(many.Mean(), 0.003)})
		}
	}
	result.Tables = []experiment.Table{table}
	return result, run.Progress(ctx, 1, 1)
}

// aggregated is what a pair of LDAs at both ends says, and the deviation by
// eq. (5) of LDA's paper.
func (p *passage) aggregated(c lda.Config) (r lda.Result, collapsed float64, err error) {
	up, err := lda.New(c)
	if err != nil {
		return r, 0, err
	}
	down, err := lda.New(c)
	if err != nil {
		return r, 0, err
	}
	for i, at := range p.sent {
		up.Update(identity(int32(i)), at)
	}
	for i := range p.events {
		if d := &p.events[i]; d.regular() {
			down.Update(identity(d.number), d.out)
		}
	}
	if r, err = lda.Estimate(up, down); err != nil {
		return r, 0, err
	}
	variance, err := lda.CollapsedVariance(up, down)
	return r, math.Sqrt(max(variance, 0)), err
}
