package figrli

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/rli"
)

var injectionRate = experiment.Experiment{
	Name: "rli-5", Title: "Error against injection rate (Fig. 5)",
	Claim: "With one reference in n packets, at 20 % utilisation the median error stays at 28 to 36 % whatever n is; " +
		"at 70 % it falls from 43 % to 5 % at 10 % injection (section V-A, Fig. 5).",
	Weight: 25, Quick: 1.5, Measure: measureInjectionRate,
}

// nths are the n of 1-in-n.
var nths = []int{1000, 300, 100, 30, 10, 5, 2, 1}

// A variant is a method with references behind packets or ahead.
type variant struct {
	method
	ahead   bool
	unnamed bool // references do not say which packet they were sent behind
}

func measureInjectionRate(run *experiment.Run) {
	packets, loads := run.Pick(50_000, 500_000), []float64{0.2, 0.7}
	variants := []variant{{method: byLine, unnamed: true}, {method: byLine, ahead: true}, {method: byLine}, {method: byPeriod}}
	run.Note("A reference directly behind a packet waits until that one is sent. Where it names the packet, RLI's line goes through that "+
		"instead. A reference ahead of its packet meets what packets meet; but the packet waits for it. The paper does not say where its "+
		"references go, and names no packets: its claims are judged by the first two.",
		"References add to the load: where every packet has one of 48 bytes, by a seventh.")
	table := run.Table("Median relative error over flows: RLI, packets not named / references ahead / packets named / busy-aware",
		"traffic", "utilisation")
	for _, n := range nths {
		table.Columns = append(table.Columns, fmt.Sprintf("1 in %d", n))
	}
	for _, kind := range []kind{poisson, heavyTailed} {
		for _, u := range loads {
			medians := make([][]float64, len(variants))
			row := []string{kind.name, percent(u)}
			for _, n := range nths {
				s := setting{kind: kind, utilisation: u, packets: packets, injector: everyNth(n)}
				behind := simulate(run, s)
				s.ahead = true
				ahead := simulate(run, s)
				var cells []string
				for k, v := range variants {
					p := behind
					if v.ahead {
						p = ahead
					} else if v.unnamed {
						p = p.unnamed()
					}
					a, _ := p.measure(v.method)
					medians[k] = append(medians[k], median(a.mean))
					cells = append(cells, percent(median(a.mean)))
				}
				row = append(row, strings.Join(cells, " / "))
			}
			table.Row(row)
			judgeInjectionRate(run, fmt.Sprintf("%s, %s utilisation", kind.name, percent(u)), u < 0.5, medians)
		}
	}
}

func judgeInjectionRate(run *experiment.Run, where string, low bool, of [][]float64) {
	at := func(k, n int) float64 { return of[k][slices.Index(nths, n)] }
	both := func(k int) string { return percent(at(k, 1000)) + " to " + percent(at(k, 10)) }
	paper, few, many := "43 % to 5 %", [2]float64{0.43, 0.43}, [2]float64{0.05, 0.05}
	if low {
		paper, few, many = "28–36 %", [2]float64{0.28, 0.36}, [2]float64{0.28, 0.36}
	}
	holds := false
	for k := range 2 {
		holds = holds || near(at(k, 1000), few[0], few[1]) && near(at(k, 10), many[0], many[1])
	}
	run.Holds(where+": RLI's median error, 0.1 to 10 % injection, references behind; ahead", paper, both(0)+"; "+both(1), holds)
	run.Within(where+": busy-aware, 10 % injection", percent(at(2, 10))+" (RLI here, packets named)", at(3, 10), at(2, 10), 0.1)
}

// near reports whether a paper's own method does here as the paper says:
// within its range, give or take a quarter.
func near(here, low, high float64) bool { return experiment.IsBetween(here, low, high, 0.25) }

var injectionWay = experiment.Experiment{
	Name: "rli-6", Title: "When to inject (Fig. 6)",
	Claim: "Adaptive injection has the least error of four ways at every utilisation, and at 55 % half of the others', which are at 40 % " +
		"and more (section V-A, Fig. 6). It injects 10 % at 20 % utilisation, 9 % at 55, 4.8 % at 70 and 0.6 % at 88.",
	Weight: 30, Quick: 1.5, Measure: measureInjectionWay,
}

// between is the time that 300 packets take at 90 % utilisation, in ns.
var between = int64(math.Floor(300 * 340.3 * 8e9 / rate / 0.9))

// ways lists the ways to inject, with the paper's parameters: the static ones
// send as many references as the adaptive one at 90 % utilisation.
var ways = []rli.InjectorConfig{adaptive, everyNth(300), {Interval: between},
	{Every: 300, Interval: between}}

var wayNames = []string{"adaptive", "1 in n", "1 in τ", "both"}

func measureInjectionWay(run *experiment.Run) {
	packets := run.Pick(40_000, 600_000)
	run.Note("n is 300 as in the paper. Its τ of 780 µs is that of its traces; here it is the time that 300 packets take at 90 % "+
		"utilisation, as there.",
		"The error is that of RLI's own estimator, with references ahead of packets: behind them, all wait for their packet, and more help "+
			"little.")
	table := run.Table("References per packet, and median / 75th percentile of the relative error",
		append([]string{"traffic", "utilisation"}, wayNames...)...)
	for _, kind := range drawn {
		medians, rates := make([][]float64, len(utilisations)), make([]float64, len(utilisations))
		for k, u := range utilisations {
			row := []string{kind.name, percent(u)}
			for w, way := range ways {
				p := simulate(run, setting{kind: kind, utilisation: u, packets: packets, injector: way, ahead: true})
				a, _ := p.measure(byLine)
				row = append(row, percent(p.references())+": "+spread(a.mean))
				medians[k] = append(medians[k], median(a.mean))
				if w == 0 {
					rates[k] = p.references()
				}
			}
			table.Row(row)
		}
		judgeRates(run, kind.name, rates)
		judgeWays(run, kind.name, medians)
	}
}

// judgeRates judges how often the adaptive injector injects.
func judgeRates(run *experiment.Run, name string, rates []float64) {
	var ours, paper []string
	near := true
	for k, x := range rates {
		ours, paper = append(ours, percent(x)), append(paper, percent(injected[k]))
		near = near && x > injected[k]/2 && x < injected[k]*2
	}
	run.Holds(name+": the adaptive injector's rates at 20, 55, 70 and 88 % (near: within a factor of 2)",
		strings.Join(paper, ", "), strings.Join(ours, ", "), near)
}

// judgeWays judges the adaptive way, the first, by the others' medians.
func judgeWays(run *experiment.Run, title string, medians [][]float64) {
	best := true
	for _, m := range medians {
		best = best && m[0] <= 1.05*slices.Min(m)
	}
	text := map[bool]string{true: "yes", false: "no"}[best]
	run.Holds(title+": adaptive is best or within 5 % of it at every utilisation", "yes", text, best)
	at55, others := medians[1][0], slices.Min(medians[1][1:])
	run.Holds(title+": at 55 %, adaptive's median error against the best of the others'", "half of 40 % and more",
		percent(at55)+" against "+percent(others), near(at55/others, 0.5, 0.5) && near(others, 0.4, 1))
}
