package figrli

import (
	"context"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
)

var accuracy = experiment.Experiment{
	Name:   "rli-7",
	Group:  group,
	Title:  "Accuracy of flows' means and deviations (Figs. 7, 8 and 9)",
	Claim:  "With adaptive injection RLI's median error is 10 to 12 % at high and moderate utilisation, and the 75th percentile below 20 %; about 30 % at low utilisation (section V-B, Fig. 7). It is less for flows with long delays, 12 % on average above 100 µs, and for flows of many packets: less than 11 % above 10, and 3 % above 100 (Fig. 8). The deviation's median error is below 12 % at high utilisation (Fig. 9).",
	Weight: 30, Quick: 1.5,
	Run: runAccuracy,
}

// levels are the utilisations of Fig. 7, and what the paper says of the median
// there.
var levels = []struct {
	name                string
	utilisation, median float64
	paper               string
}{
	{"high", 0.88, 0.12, "10–12 %"},
	{"moderate", 0.55, 0.12, "10–12 %"},
	{"low", 0.20, 0.30, "about 30 %"},
}

func runAccuracy(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	packets := run.Pick(100_000, 1_500_000)
	kinds, notes, err := everyKind()
	if err != nil {
		return experiment.Result{}, err
	}
	result := experiment.Result{
		Config: map[string]any{"packets": packets, "injector": adaptive},
		Notes: append(notes,
			"The paper does not say whether a reference goes behind a packet or ahead of it. It makes a difference at low load, where a reference behind a packet waits while most packets do not. Figures are of references behind; the table has both, and the paper's claims are judged by the better.",
			"The paper's packets came over a link of 10 Gb/s before they met a slower one, so two of them never arrive at once. Drawn flows send whole windows at that rate side by side: delays change within a few packets, and lines between references miss it.",
			"Of Fig. 8, errors are averages over flows, as in the paper. Of Fig. 9, flows whose packets all met the same delay do not count.",
		),
	}
	table := experiment.Table{
		Name: "errors", Title: "Relative error over flows: median / 75th percentile",
		Columns: []string{"traffic", "utilisation", "mean delay", "loss", "references per packet", "mean: RLI-L", "RLI", "busy-aware", "RLI, references ahead", "deviation: RLI-L", "RLI", "busy-aware", "RLI, references ahead"},
	}
	steps, done := 2*len(kinds)*len(levels), 0
	step := func() error { return run.Progress(ctx, done, steps) }
	for _, kind := range kinds {
		cdfs := [2]plot.Figure{
			{Name: "7-" + kind.slug, Title: "Error of flows' means, " + kind.name + " (Fig. 7)"},
			{Name: "9a-" + kind.slug, Title: "Error of flows' deviations, " + kind.name + " (Fig. 9a)"},
		}
		for i := range cdfs {
			cdfs[i].Caption = "Both methods from the same packets and references."
			cdfs[i].X = plot.Axis{Label: "relative error", Scale: plot.Log, Min: 1e-4, Max: 10}
			cdfs[i].Y = plot.Axis{Label: "share of flows", Min: 0, Max: 1}
		}
		for _, level := range levels {
			where := setting{kind: kind, utilisation: level.utilisation, packets: kind.enough(packets), injector: adaptive}
			p, err := simulate(run, where, step)
			if err != nil {
				return experiment.Result{}, err
			}
			done++
			where.ahead = true
			q, err := simulate(run, where, step)
			if err != nil {
				return experiment.Result{}, err
			}
			done++
			ahead, _, err := q.measure(byLine)
			if err != nil {
				return experiment.Result{}, err
			}
			row := []string{kind.name, percent(level.utilisation), duration(p.all.Mean()), percent(p.loss()), percent(p.cost.Rate())}
			of := map[string]answers{}
			for _, m := range methods {
				a, _, err := p.measure(m)
				if err != nil {
					return experiment.Result{}, err
				}
				of[m.name] = a
			}
			for _, deviation := range []bool{false, true} {
				beside := ahead.mean
				if deviation {
					beside = ahead.deviation
				}
				for _, m := range methods {
					list := of[m.name].mean
					if deviation {
						list = of[m.name].deviation
					}
					row = append(row, percent(median(list))+" / "+percent(quantile(list, 0.75)))
					if m == byLeft {
						continue
					}
					s := plot.CDF(m.name+", "+level.name, some(list), 150)
					s.Paper = m.paper
					i := 0
					if deviation {
						i = 1
					}
					cdfs[i].Series = append(cdfs[i].Series, s)
				}
				row = append(row, percent(median(beside))+" / "+percent(quantile(beside, 0.75)))
			}
			table.Rows = append(table.Rows, row)
			line, ours := of[byLine.name], of[byPeriod.name]
			at := fmt.Sprintf("%s, %s", kind.name, percent(level.utilisation))
			// What the paper says is of RLI, wherever it has its references.
			says := func(what, paper string, limit float64, of func(answers) float64) {
				behind, ahead := of(line), of(ahead)
				result.Claims = append(result.Claims, experiment.Claim{What: at + ": RLI's " + what + ", references behind / ahead", Paper: paper, Ours: percent(behind) + " / " + percent(ahead), Verdict: atMost(min(behind, ahead), limit)})
			}
			against := func(what string, of func(answers) float64) {
				result.Claims = append(result.Claims, experiment.Claim{What: at + ": busy-aware's " + what, Paper: percent(of(line)) + " (RLI, same references)", Ours: percent(of(ours)), Verdict: experiment.Judge(of(ours), of(line), 0.1)})
			}
			mean := func(a answers) float64 { return median(a.mean) }
			deviation := func(a answers) float64 { return median(a.deviation) }
			says("median error of the mean", level.paper, level.median, mean)
			against("median error of the mean", mean)
			if level.name == "high" {
				says("75th percentile", "< 20 %", 0.20, func(a answers) float64 { return quantile(a.mean, 0.75) })
				says("median error of the deviation", "< 12 %", 0.12, deviation)
				against("median error of the deviation", deviation)
				if kind.slug == poisson.slug {
					continue // its flows are all alike
				}
				figures, claims := p.grouped(kind, line, ours)
				result.Figures = append(result.Figures, figures...)
				result.Claims = append(result.Claims, claims...)
			}
		}
		result.Figures = append(result.Figures, cdfs[0], cdfs[1])
	}
	result.Tables = []experiment.Table{table}
	return result, run.Progress(ctx, 1, 1)
}

// grouped are Figs. 8a, 8b and 9b: average errors of flows by their true delay,
// their number of packets, and their true deviation.
func (p *passage) grouped(kind kind, line, ours answers) ([]plot.Figure, []experiment.Claim) {
	of := func(by func(*flow) float64, errors func(answers) []float64, label, name, title string, scale float64) plot.Figure {
		f := plot.Figure{
			Name: name + "-" + kind.slug, Title: fmt.Sprintf(title, kind.name),
			Caption: fmt.Sprintf("Average relative error of the flows in each group, of at least ten; %s at %s.", kind.name, percent(levels[0].utilisation)),
			X:       plot.Axis{Label: label, Scale: plot.Log}, Y: plot.Axis{Label: "average relative error (%)", Scale: plot.Log},
		}
		for k, a := range []answers{line, ours} {
			groups := map[int]*estimate.Moments{}
			least, most := math.MaxInt, math.MinInt
			for i, e := range errors(a) {
				x := by(&p.flows[i])
				if math.IsNaN(e) || !(x > 0) {
					continue
				}
				g := int(math.Floor(2 * math.Log2(x)))
				if groups[g] == nil {
					groups[g] = new(estimate.Moments)
				}
				groups[g].Add(e)
				least, most = min(least, g), max(most, g)
			}
			m := []method{byLine, byPeriod}[k]
			s := plot.Series{Name: m.name, Paper: m.paper, Pair: k + 1}
			for g := least; g <= most; g++ {
				if groups[g] != nil && groups[g].N() >= 10 {
					s.Add(math.Exp2((float64(g)+0.5)/2)*scale, 100*groups[g].Mean())
				}
			}
			f.Series = append(f.Series, s)
		}
		return f
	}
	mean := func(a answers) []float64 { return a.mean }
	deviation := func(a answers) []float64 { return a.deviation }
	size := func(f *flow) float64 { return float64(f.delays.N()) }
	figures := []plot.Figure{
		of((*flow).mean, mean, "true mean delay of the flow (µs)", "8a", "Error by true delay, %s (Fig. 8a)", 1e-3),
		of(size, mean, "packets of the flow", "8b", "Error by size, %s (Fig. 8b)", 1),
		of((*flow).deviation, deviation, "true deviation of the flow's delays (µs)", "9b", "Error of the deviation by true deviation, %s (Fig. 9b)", 1e-3),
	}
	var claims []experiment.Claim
	claim := func(what, paper string, limit float64, errors func(answers) []float64, in func(*flow) bool) {
		average := func(a answers) (float64, int) {
			var m estimate.Moments
			for i, e := range errors(a) {
				if !math.IsNaN(e) && in(&p.flows[i]) {
					m.Add(e)
				}
			}
			return m.Mean(), int(m.N())
		}
		was, n := average(line)
		is, _ := average(ours)
		if n < 10 {
			return
		}
		claims = append(claims, experiment.Claim{What: fmt.Sprintf("%s, %s: RLI's average error of %s (%d flows)", kind.name, percent(levels[0].utilisation), what, n),
			Paper: paper, Ours: percent(was) + "; busy-aware " + percent(is), Verdict: atMost(was, limit)})
	}
	claim("flows delayed by more than 100 µs", "about 12 %", 0.12, mean, func(f *flow) bool { return f.mean() > 100e3 })
	claim("flows of more than 10 packets", "< 11 %", 0.11, mean, func(f *flow) bool { return f.delays.N() > 10 })
	claim("flows of more than 100 packets", "about 3 %", 0.03, mean, func(f *flow) bool { return f.delays.N() > 100 })
	claim("deviations above 100 µs", "< 20 %", 0.20, deviation, func(f *flow) bool { return f.deviation() > 100e3 })
	return figures, claims
}
