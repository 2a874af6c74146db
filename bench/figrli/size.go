package figrli

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/rli"
)

var ownSize = experiment.Experiment{
	Name: "ours-rli-size", Title: "References of this library's own size",
	Claim: "The paper's reference packet has 48 bytes, this library's 59 in UDP over IPv4, and 67 with a tag: what that costs, and whether " +
		"it changes the errors.",
	Weight: 6, Quick: 0.5, Measure: measureOwnSize,
}

// udp is the headers of UDP over IPv4.
const udp = 28

var sizes = []struct {
	name  string
	bytes int
}{{"the paper's", referenceBytes}, {"ours", udp + rli.ReferenceSize}, {"ours, tagged", udp + rli.TaggedReferenceSize}}

func measureOwnSize(run *experiment.Run) {
	packets := run.Pick(60_000, 800_000)
	run.Config("packets", packets, "sizes", sizes, "injector", adaptive, "utilisations", utilisations)
	table := run.Table("", "Capacity of the link, delay, and median error of flows' means", "traffic", "utilisation", "references", "bytes",
		"capacity", "mean delay", "RLI", "busy-aware")
	figure := run.Draw("a", "Capacity that references take, "+heavyTailed.name, "The adaptive injector.", loadAxis,
		plot.LogAxis("share of the link's capacity (%)"))
	for k, size := range sizes {
		figure.Series = append(figure.Series, plot.Series{Name: fmt.Sprintf("%s, %d bytes", size.name, size.bytes), Paper: k == 0, Pair: k + 1})
	}
	for _, kind := range experiment.Each(run, []kind{poisson, heavyTailed}) {
		for _, u := range experiment.Each(run, utilisations) {
			var taken, off []float64
			for k, size := range experiment.Each(run, sizes) {
				injector := adaptive
				injector.ReferenceBytes = size.bytes
				p := simulate(run, setting{kind: kind, utilisation: u, packets: packets, injector: injector, reference: size.bytes})
				line, _ := p.measure(byLine)
				busy, _ := p.measure(byPeriod)
				taken, off = append(taken, p.cost.Capacity(rate)), append(off, median(busy.mean))
				table.Row(kind.name, percent(u), size.name, size.bytes, percent(taken[k]), duration(p.all.Mean()), percent(median(line.mean)),
					percent(off[k]))
				if kind.slug == heavyTailed.slug {
					figure.Series[k].Add(100*u, 100*taken[k])
				}
			}
			where := kind.name + ", " + percent(u)
			run.Beats(where+": capacity, the paper's references and ours, tagged", last(taken), taken[0], 0.1)
			run.Beats(where+": busy-aware's median error with them", last(off), off[0], 0.1)
		}
	}
}
