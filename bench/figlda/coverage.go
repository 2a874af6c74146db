package figlda

import (
	"context"
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
)

var ldaCoverage = experiment.Experiment{
	Name:   "ours-lda-coverage",
	Group:  ours,
	Title:  "Do 98 % intervals hold the truth 98 times in a hundred?",
	Claim:  "The paper bounds the error of the mean by eq. (1), with the true deviation in it (section III-D). An interval that is printed has an estimated deviation, and should hold nevertheless; so should those of the loss and, where tails are light, of the deviation.",
	Weight: 65, Quick: 2.5,
	Run: runCoverage,
}

const (
	confidence   = 0.98
	coverageRuns = 1000
)

// covers counts which intervals of so many held the truth.
type covers struct {
	interval, paper, central, deviation int
}

func runCoverage(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	laws := allLaws()
	packets := run.Pick(5_000, 500_000)
	byLaw, err := coverage(ctx, run, laws, packets)
	if err != nil {
		return experiment.Result{}, err
	}
	figures, tables := coverageFigures(laws, byLaw)
	ofLoss, leastLoss, err := lossCoverage(run)
	if err != nil {
		return experiment.Result{}, err
	}
	ofFew, err := fewCoverage(run)
	if err != nil {
		return experiment.Result{}, err
	}
	return experiment.Result{
		Figures: append(figures, ofLoss, ofFew),
		Tables:  tables,
		Claims:  append(coverageClaims(byLaw), coverageClaim("loss", leastLoss, lossRuns)),
		Config:  map[string]any{"laws": laws, "losses": ourLosses, "runs": coverageRuns, "packets": packets, "packets for loss": lossPackets, "runs for loss": lossRuns, "rows": rows, "confidence": confidence},
		Notes: []string{
			fmt.Sprintf("One bank of 1,024 cells that samples the power of two at or below m/L of %d packets; %d runs with different hashes. The truth is the mean and the deviation of the packets that arrived. For the loss, every run of %d loses other packets of %d, and the truth is the probability.", packets, coverageRuns, lossRuns, lossPackets),
			"By chance alone, an interval that holds the truth with a probability of 98 % does so in 971 to 989 of 1,000 runs, 95 times in a hundred.",
			"Where nearly all packets are in usable cells, at the lowest losses, every interval of the mean is wider than it need be: what is estimated has nearly all been seen.",
			"The deviation's interval is as wide as the squares of the usable cells say. Of delays with heavy tails most samples lack the longest, and their squares do not show it; so the interval is too narrow as soon as the sample is small, as it is at high loss, and worst for Pareto 3, whose squares have no variance.",
		},
	}, nil
}

// coverage counts by law and loss rate.
func coverage(ctx context.Context, run *experiment.Run, laws []Law, packets int) ([][]covers, error) {
	step := run.Steps(ctx, len(laws)*len(ourLosses)*coverageRuns)
	byLaw := make([][]covers, len(laws))
	for i, law := range laws {
		byLaw[i] = make([]covers, len(ourLosses))
		t, err := NewTrace(run, law)
		if err != nil {
			return nil, err
		}
		t.Delays = t.Delays[:packets]
		for k, loss := range ourLosses {
			p, err := t.Lose(run, loss, 0)
			if err != nil {
				return nil, err
			}
			for r := range coverageRuns {
				if err := byLaw[i][k].measure(p, run.SeedOf(fmt.Sprint("hash ", r))); err != nil {
					return nil, err
				}
				if err := step(); err != nil {
					return nil, err
				}
			}
		}
	}
	return byLaw, nil
}

// coverageFigures are a figure and a table for each interval.
func coverageFigures(laws []Law, byLaw [][]covers) (figures []plot.Figure, tables []experiment.Table) {
	for _, f := range []struct {
		name, title string
		count       func(*covers) int
	}{
		{"mean", "Interval of the mean, as printed", func(c *covers) int { return c.interval }},
		{"eq1", "Interval of the mean by eq. (1), with the estimated deviation", func(c *covers) int { return c.paper }},
		{"central", "Interval of the mean by the central limit theorem", func(c *covers) int { return c.central }},
		{"deviation", "Interval of the deviation", func(c *covers) int { return c.deviation }},
	} {
		figure := plot.Figure{
			Name: f.name, Title: f.title, Caption: fmt.Sprintf("Of %d runs at each point.", coverageRuns),
			X: LossAxis, Y: plot.Axis{Label: "intervals that hold the truth (%)"},
		}
		table := experiment.Table{Name: f.name, Title: fmt.Sprintf("%s: how many of %d hold the truth", f.title, coverageRuns), Columns: []string{"delays"}}
		for _, loss := range ourLosses {
			table.Columns = append(table.Columns, experiment.Percent(loss))
		}
		for i, law := range laws {
			s := plot.Series{Name: law.Name}
			row := []string{law.Name}
			for k, loss := range ourLosses {
				n := f.count(&byLaw[i][k])
				s.Add(100*loss, 100*float64(n)/coverageRuns)
				row = append(row, fmt.Sprint(n))
			}
			figure.Series = append(figure.Series, s)
			table.Add(row...)
		}
		figure.Series = append(figure.Series, nominal())
		figures = append(figures, figure)
		tables = append(tables, table)
	}
	return figures, tables
}

// nominal is the line at 98 %.
func nominal() plot.Series {
	return plot.Level("98 %", 100*confidence, 100*ourLosses[0], 100*ourLosses[len(ourLosses)-1])
}

// measure adds a run's intervals of mean and deviation.
func (c *covers) measure(p *Passage, seed uint64) error {
	up, down, err := onBank(p, shareOf(lda.ShiftFor(rows, float64(p.Losses))), seed)
	if err != nil {
		return err
	}
	r, err := lda.Estimate(up, down)
	if err != nil {
		return err
	}
	count := func(n *int, i estimate.Interval, truth float64) {
		if i.Contains(truth) {
			*n++
		}
	}
	count(&c.interval, r.MeanInterval(confidence), p.Truth.Mean)
	count(&c.paper, estimate.HoeffdingInterval(r.Delay, confidence), p.Truth.Mean)
	count(&c.central, r.CentralLimitInterval(confidence), p.Truth.Mean)
	count(&c.deviation, r.DeviationInterval(confidence), p.Truth.StdDev)
	return nil
}

// coverageClaims judge the lowest coverage of all points.
func coverageClaims(byLaw [][]covers) []experiment.Claim {
	var claims []experiment.Claim
	for _, c := range []struct {
		what  string
		laws  []int
		count func(*covers) int
	}{
		{"mean, as printed", []int{0, 1, 2, 3, 4}, func(c *covers) int { return c.interval }},
		{"mean by eq. (1) with the estimated deviation", []int{0, 1, 2, 3, 4}, func(c *covers) int { return c.paper }},
		{"mean by the central limit theorem", []int{0, 1, 2, 3, 4}, func(c *covers) int { return c.central }},
		{"deviation, light tails: 200 ± 10 ns", []int{4}, func(c *covers) int { return c.deviation }},
		{"deviation, Weibull 0.8", []int{1}, func(c *covers) int { return c.deviation }},
		{"deviation, heavier tails: Weibull 0.6 and Pareto 5", []int{0, 3}, func(c *covers) int { return c.deviation }},
		{"deviation, no fourth moment: Pareto 3", []int{pareto3}, func(c *covers) int { return c.deviation }},
	} {
		least := coverageRuns
		for _, i := range c.laws {
			for k := range byLaw[i] {
				least = min(least, c.count(&byLaw[i][k]))
			}
		}
		claims = append(claims, coverageClaim(c.what, least, coverageRuns))
	}
	return claims
}

// coverageClaim judges the lowest coverage. The least of so many is some
// standard errors low by chance: it is no loss unless it is so low once in ten
// thousand times.
func coverageClaim(what string, least, runs int) experiment.Claim {
	v := experiment.AsGood
	if estimate.ProportionInterval(uint64(least), uint64(runs), 0.9998).High < confidence {
		v = experiment.Loss
	}
	return experiment.Claim{
		What: "98 % intervals of the " + what + ": lowest coverage at any loss rate", Paper: "98 %",
		Ours: fmt.Sprintf("%.1f %%", 100*float64(least)/float64(runs)), Verdict: v,
	}
}
