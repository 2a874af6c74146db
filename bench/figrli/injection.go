package figrli

import (
	"context"
	"fmt"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/rli"
)

var injectionRate = experiment.Experiment{
	Name:   "rli-5",
	Group:  group,
	Title:  "Error against injection rate (Fig. 5)",
	Claim:  "With one reference in n packets, at 20 % utilisation the median error stays at 28 to 36 % whatever n is; at 70 % it falls from 43 % to 5 % at 10 % injection (section V-A, Fig. 5).",
	Weight: 25, Quick: 1.5,
	Run: runInjectionRate,
}

// nths are the n of 1-in-n.
var nths = []int{1000, 300, 100, 30, 10, 5, 2, 1}

func runInjectionRate(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	packets := run.Pick(50_000, 500_000)
	kinds := []kind{poisson, heavyTailed}
	loads := []float64{0.2, 0.7}
	type variant struct {
		method
		ahead bool
		name  string
	}
	variants := []variant{{byLine, false, "RLI"}, {byLine, true, "RLI, references ahead of packets"}, {byPeriod, false, "busy-aware"}}
	result := experiment.Result{
		Config: map[string]any{"packets": packets, "n": nths, "utilisations": loads},
		Notes: []string{
			"A reference directly behind a packet waits until that one is sent. At low load most packets wait for none, so RLI's line runs through delays that packets do not meet, and no rate of injection mends that. Ahead of its packet a reference meets what packets meet; but the packet waits for it, and the busy-aware method, which is better than both, wants it behind.",
			"References add to the load: where every packet has one of 48 bytes, by a seventh.",
		},
	}
	table := experiment.Table{Title: "Median relative error over flows, RLI / RLI with references ahead / busy-aware", Columns: []string{"traffic", "utilisation"}}
	for _, n := range nths {
		table.Columns = append(table.Columns, fmt.Sprintf("1 in %d", n))
	}
	steps, done := len(kinds)*len(loads)*len(nths)*2, 0
	for _, kind := range kinds {
		for _, u := range loads {
			figure := plot.Figure{
				Name: fmt.Sprintf("%s-%.0f", kind.slug, 100*u), Title: fmt.Sprintf("Error against injection rate, %s, %s utilisation (Fig. 5)", kind.name, percent(u)),
				Caption: "Median over flows; bars from the 25th to the 75th percentile. An error of nothing, where every packet has its reference, is off the scale.",
				X:       plot.Axis{Label: "references per packet (%)", Scale: plot.Log}, Y: plot.Axis{Label: "relative error of the mean delay (%)", Scale: plot.Log, Min: 0.5, Max: 1000},
			}
			series := make([]plot.Series, len(variants))
			for v := range variants {
				series[v] = plot.Series{Name: variants[v].name, Paper: variants[v].paper && !variants[v].ahead, Pair: v + 1}
			}
			row := []string{kind.name, percent(u)}
			for _, n := range nths {
				cell := ""
				for _, ahead := range []bool{false, true} {
					p, err := simulate(run, setting{kind: kind, utilisation: u, packets: packets, injector: everyNth(n), ahead: ahead}, func() error { return run.Progress(ctx, done, steps) })
					if err != nil {
						return experiment.Result{}, err
					}
					done++
					for v := range variants {
						if variants[v].ahead != ahead {
							continue
						}
						a, _, err := p.measure(variants[v].method)
						if err != nil {
							return experiment.Result{}, err
						}
						series[v].AddRange(100/float64(n), 100*median(a.mean), 100*quantile(a.mean, 0.25), 100*quantile(a.mean, 0.75))
					}
				}
				for v := range series {
					if v > 0 {
						cell += " / "
					}
					cell += percent(last(series[v].Y) / 100)
				}
				row = append(row, cell)
			}
			figure.Series = series
			result.Figures = append(result.Figures, figure)
			table.Rows = append(table.Rows, row)
			where := fmt.Sprintf("%s, %s utilisation", kind.name, percent(u))
			at := func(v, n int) float64 { return series[v].Y[slices.Index(nths, n)] / 100 }
			both := func(v int) string { return percent(at(v, 1000)) + " to " + percent(at(v, 10)) }
			claim := experiment.Claim{What: where + ": RLI's median error, 0.1 to 10 % injection, references behind; ahead", Ours: both(0) + "; " + both(1)}
			if u < 0.5 {
				most := func(v int) float64 { return max(at(v, 1000), at(v, 10)) }
				claim.Paper, claim.Verdict = "28–36 %", atMost(min(most(0), most(1)), 0.36)
			} else {
				claim.Paper, claim.Verdict = "43 % to 5 %", atMost(min(at(0, 10), at(1, 10)), 0.05)
			}
			result.Claims = append(result.Claims, claim)
			result.Claims = append(result.Claims, experiment.Claim{What: where + ": busy-aware, 10 % injection", Paper: percent(at(0, 10)) + " (RLI here)", Ours: percent(at(2, 10)), Verdict: experiment.Judge(at(2, 10), at(0, 10), 0.1)})
		}
	}
	result.Tables = []experiment.Table{table}
	return result, run.Progress(ctx, 1, 1)
}

func last(list []float64) float64 { return list[len(list)-1] }

// atMost judges a paper's method as it is here by what the paper says of it: as
// good up to a quarter more.
func atMost(ours, paper float64) experiment.Verdict {
	if ours <= 1.25*paper {
		return experiment.AsGood
	}
	return experiment.DoesNotHold
}

var injectionWay = experiment.Experiment{
	Name:   "rli-6",
	Group:  group,
	Title:  "When to inject (Fig. 6)",
	Claim:  "Adaptive injection has the least error of four ways at every utilisation, and at 55 % half of the others', which are at 40 % and more (section V-A, Fig. 6). It injects 10 % at 20 % utilisation, 9 % at 55, 4.8 % at 70 and 0.6 % at 88.",
	Weight: 30, Quick: 1.5,
	Run: runInjectionWay,
}

// ways to inject, with the paper's parameters: those of the static ones give
// as many references as the adaptive one at 90 % utilisation.
func ways(packetTime float64) []rli.InjectorConfig {
	tau := int64(300 * packetTime)
	return []rli.InjectorConfig{
		adaptive,
		everyNth(300),
		{Interval: tau, ReferenceBytes: referenceBytes},
		{Every: 300, Interval: tau, ReferenceBytes: referenceBytes},
	}
}

var wayNames = []string{"adaptive", "1 in n", "1 in τ", "both"}

// imixTime is how long the link takes for a packet on average, at 90 %
// utilisation: what distance between packets is there.
const imixTime = 340.3 * 8e9 / rate / 0.9

func runInjectionWay(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	packets := run.Pick(40_000, 600_000)
	kinds := drawn
	result := experiment.Result{
		Config: map[string]any{"packets": packets, "ways": ways(imixTime), "utilisations": utilisations},
		Notes: []string{
			"n is 300 as in the paper. Its τ of 780 µs is that of its traces; here it is the time that 300 packets take at 90 % utilisation, as there.",
			"The error is that of RLI's own estimator. Where references go makes as much of a difference as when: behind packets, more of them help little, as all wait for their packet; so the ways that inject by time, whose references go behind packets that come after silence, do better there than they should.",
		},
	}
	table := experiment.Table{Title: "References per packet, and median / 75th percentile of the relative error", Columns: append([]string{"traffic", "utilisation"}, wayNames...)}
	places := []struct {
		ahead      bool
		slug, name string
	}{{false, "", "references behind packets"}, {true, "-ahead", "references ahead of packets"}}
	steps, done := len(kinds)*len(places)*len(utilisations)*len(wayNames), 0
	for pair := range len(kinds) * len(places) {
		kind, place := kinds[pair/len(places)], places[pair%len(places)]
		title := kind.name + ", " + place.name
		figure := plot.Figure{
			Name: kind.slug + place.slug, Title: "Ways to inject, " + title + " (Fig. 6)",
			Caption: "Median over flows, and up to the 75th percentile.",
			X:       plot.Axis{Categories: wayNames}, Y: plot.Axis{Label: "relative error of the mean delay (%)", Scale: plot.Log},
		}
		best, medians := true, make([][]float64, len(utilisations))
		var rates []float64
		for k, u := range utilisations {
			s := plot.Series{Name: percent(u), Kind: plot.Bars}
			row := []string{title, percent(u)}
			for w, way := range ways(imixTime) {
				p, err := simulate(run, setting{kind: kind, utilisation: u, packets: packets, injector: way, ahead: place.ahead}, func() error { return run.Progress(ctx, done, steps) })
				if err != nil {
					return experiment.Result{}, err
				}
				done++
				a, _, err := p.measure(byLine)
				if err != nil {
					return experiment.Result{}, err
				}
				m, q := median(a.mean), quantile(a.mean, 0.75)
				s.AddRange(float64(w), 100*m, 100*m, 100*q)
				row = append(row, fmt.Sprintf("%s: %s / %s", percent(p.cost.Rate()), percent(m), percent(q)))
				medians[k] = append(medians[k], m)
				best = best && medians[k][0] <= 1.05*m
				if w == 0 {
					rates = append(rates, p.cost.Rate())
				}
			}
			figure.Series = append(figure.Series, s)
			table.Rows = append(table.Rows, row)
		}
		result.Figures = append(result.Figures, figure)
		verdict := experiment.AsGood
		if !best {
			verdict = experiment.DoesNotHold
		}
		text, paper, close := "", "", 0
		for k, x := range rates {
			if k > 0 {
				text, paper = text+", ", paper+", "
			}
			text, paper = text+percent(x), paper+percent(injected[k])
			if x > injected[k]/2 && x < injected[k]*2 {
				close++
			}
		}
		near := experiment.AsGood
		if close < len(rates) {
			near = experiment.DoesNotHold
		}
		others := min(medians[1][1], medians[1][2], medians[1][3])
		half := experiment.AsGood
		if medians[1][0] > 0.6*others {
			half = experiment.DoesNotHold
		}
		if !place.ahead {
			result.Claims = append(result.Claims, experiment.Claim{What: kind.name + ": the adaptive injector's rates at 20, 55, 70 and 88 % (near: within a factor of 2)", Paper: paper, Ours: text, Verdict: near})
		}
		result.Claims = append(result.Claims,
			experiment.Claim{What: title + ": adaptive is best or within 5 % of it at every utilisation", Paper: "yes", Ours: yes(best), Verdict: verdict},
			experiment.Claim{What: title + ": at 55 %, adaptive's median error against the best of the others'", Paper: "half", Ours: percent(medians[1][0]) + " against " + percent(others), Verdict: half},
		)
	}
	result.Tables = []experiment.Table{table}
	return result, run.Progress(ctx, 1, 1)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
