package figrli

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
)

var busyAware = experiment.Experiment{
	Name: "ours-rli-busy", Title: "Busy periods against straight lines",
	Claim: "With the same references and records, where straight lines already go through the packets that references name, what a " +
		"departure tells of busy periods leaves at most 0.7 of RLI's median error at 20 and 55 % utilisation, and never more than 1.05 of " +
		"it; and the mean of all packets is within 1 %.",
	Weight: 28, Quick: 1.5, Measure: measureBusyAware,
}

// A variant is a method with references behind packets or ahead.
type variant struct {
	method
	ahead   bool
	unnamed bool // references do not tell which packet they were sent behind
	name    string
}

func measureBusyAware(run *experiment.Run) {
	packets := run.Pick(80_000, 1_000_000)
	kinds := everyKind(run)
	variants := []variant{
		{byLeft, false, false, "RLI-L"}, {byLine, false, false, "RLI"}, {byPeriod, false, false, "busy-aware"},
		{byLine, false, true, "RLI, packets not named"}, {byLine, true, false, "RLI, references ahead"},
		{byPeriod, true, false, "busy-aware, references ahead"},
	}
	run.Config("packets", packets, "injector", adaptive, "utilisations", utilisations)
	run.Note(
		"References go directly behind their packet and name it, so that they tell its delay: straight lines go through it. Where it is not "+
			"named, they go through the reference, which waited for it. Ahead of its packet a reference meets what packets meet, and makes "+
			"packets wait; the paper does not say where its references go.",
		"Where flows have many packets, what is left of an error is a bias that all of them share, and with it the mean of all packets, in "+
			"brackets. There straight lines, which are unbiased as long as delays change slowly from one reference to the next, can "+
			"be the better ones.",
	)
	table := run.Table("", "Relative error of flows' means: median / 75th percentile; in brackets, that of the mean of all packets",
		"traffic", "utilisation", "packets that found the link idle")
	for _, v := range variants {
		table.Columns = append(table.Columns, v.name)
	}
	for _, kind := range experiment.Each(run, kinds) {
		figure := run.Draw(kind.slug, "Median error of flows' means, "+kind.name,
			"Adaptive injection; bars up to the 75th percentile. Hollow: the paper's estimators.", loadAxis, plot.LogAxis("relative error (%)"))
		for k, v := range variants {
			figure.Series = append(figure.Series, plot.Series{Name: v.name, Paper: v.paper, Pair: k + 1})
		}
		for _, u := range experiment.Each(run, utilisations) {
			row := []string{kind.name, percent(u), ""}
			var medians, biases []float64
			var p *passage
			for k, v := range experiment.Each(run, variants) {
				if k == 0 || v.ahead != variants[k-1].ahead {
					p = simulate(run, setting{kind: kind, utilisation: u, packets: kind.enough(packets), injector: adaptive, ahead: v.ahead})
				}
				a, r := p.as(v).measure(v.method)
				bias := estimate.RelativeError(experiment.Try(r.Total()).Mean, p.all.Mean())
				if k == 2 {
					row[2] = percent(float64(r.Counts().Idle) / float64(r.Counts().Packets))
				}
				biases = append(biases, bias)
				medians = append(medians, median(a.mean))
				row = append(row, fmt.Sprintf("%s (%s)", spread(a.mean), percent(bias)))
				// A median of 0, where half of the flows always found the link
				// idle, has no place on the axis.
				middle := max(100*medians[k], shown)
				figure.Series[k].AddRange(100*u, middle, middle, max(100*quantile(a.mean, 0.75), shown))
			}
			table.Row(row)
			judgeBusyAware(run, kind, u, medians[1], medians[2], medians[4])
			run.Within(fmt.Sprintf("%s, %s: the mean of all packets", kind.name, percent(u)), "within 1 %", biases[2], 0.01, 0)
		}
	}
}

// as is the passage as a variant's references tell of it.
func (p *passage) as(v variant) *passage {
	if v.unnamed {
		return p.unnamed()
	}
	return p
}

func judgeBusyAware(run *experiment.Run, kind kind, u, line, ours, ahead float64) {
	bar, text := 1.05, "at most 1.05 of RLI's"
	if u <= 0.55 {
		bar, text = 0.7, "at most 0.7 of RLI's"
	}
	ratio := ours / line
	verdict := experiment.Win
	switch {
	case ratio > bar:
		verdict = experiment.Loss
	case ratio > 0.9:
		verdict = experiment.AsGood
	}
	where := fmt.Sprintf("%s, %s", kind.name, percent(u))
	run.Claim(where+": median error", text+" "+percent(line), fmt.Sprintf("%s (%.2f of it)", percent(ours), ratio),
		verdict).Headline = kind.slug == heavyTailed.slug
	run.Beats(where+": against RLI with references ahead", ours, ahead, 0.1)
}

// shown is the least error that is drawn, in per cent.
const shown = 0.01
