package figclock

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
)

// Clocks finds the offset and drift of clocks from synopses.
var Clocks = experiment.Experiment{
	Name: "ours-clock", Title: "Offset and drift of clocks from the synopses",
	Claim: "One-way delays need clocks that agree, as every one of the papers assumes. Cells of one packet of both directions say what the " +
		"clocks differ by: at loads where means are off by milliseconds, to a fraction of a microsecond, without a probe.",
	Weight: 80, Quick: 1, Measure: measureClocks,
}

// An axis is the quantity that one table varies.
type axis struct {
	name, title string
	values      []float64
	set         func(s *setting, value float64)
}

var axes = []axis{
	{"load", "load (%), both ways alike",
		[]float64{10, 30, 50, 70, 80, 90, 95}, func(s *setting, v float64) { s.load = [2]float64{v / 100, v / 100} }},
	{"uneven", "load there (%), with 20 % back, bursts",
		[]float64{10, 30, 50, 70, 80, 90, 95}, func(s *setting, v float64) { s.load, s.bursts = [2]float64{v / 100, 0.2}, true }},
	{"packets", "packets a second, each way",
		[]float64{100, 1e3, 1e4, 1e5, 1e6}, func(s *setting, v float64) { s.packets = v }},
	{"loss", "loss rate (%)", []float64{0, 1, 5, 10, 20, 30}, func(s *setting, v float64) { s.loss = v / 100 }},
	{"window", "window (s)", []float64{1, 2, 5, 10, 20, 50}, func(s *setting, v float64) { s.seconds = int(v) }},
}

func measureClocks(run *experiment.Run) {
	runs := run.Pick(2, 24)
	found := map[string][][]outcome{}
	var certain, likely perflow.Coverage
	for _, a := range axes {
		values := a.values[:run.Pick(1, len(a.values))]
		for _, v := range values {
			set := usual
			a.set(&set, v)
			rng := run.Rand(fmt.Sprint(a.name, " ", v))
			var all []outcome
			for range runs {
				o := measure(rng, set)
				all = append(all, o)
				certain.Count(!o.excluded)
				likely.Count(!o.missed)
			}
			found[a.name] = append(found[a.name], all)
		}
		tabulate(run, a, values, found[a.name])
	}
	if !run.Quick {
		judge(run, found, certain, likely)
	}
	run.Note(fmt.Sprintf("Each figure is the median of %d runs of %d seconds; %g packets a second and a load of 80 %% each way, %g %% lost, "+
		"where the table does not say otherwise. Least delays are %g µs each way. NTP's filter is held to what the clock was when its "+
		"exchange was sent: the drift since then is not counted against it.",
		runs, usual.seconds, usual.packets, 100*usual.loss, usual.floor[0]/1e3))
	run.Note("Probes of equal bytes, put through the same line, do better than cells, since every one is a sample, where a cell is one only " +
		"if it holds one packet; what cells save is to send, answer and tell apart some 300 probes a second each way. Means do well, and best " +
		"of all at a million packets a second, where both directions are loaded alike for long enough; where they are not, nothing tells, and " +
		"they are off by milliseconds. An asymmetry of the path, a difference of the least delays, goes into every method's offset by a half. " +
		"The error of the drift stays near 0.05 ppm however long the window is, since the rate is granted to wander by 0.1 ppm.")
}

// tabulate shows the methods' errors along one axis, and how wide our intervals are.
func tabulate(run *experiment.Run, a axis, values []float64, found [][]outcome) {
	table := run.Table("Error of the offset", append(append([]string{a.title}, names[:]...),
		"half the certain interval", "half the likely one")...)
	for i, v := range values {
		micro := func(of func(*outcome) float64) string { return experiment.Duration(typical(found[i], of)) }
		row := []string{experiment.Number(v)}
		for m := range methods {
			row = append(row, micro(func(o *outcome) float64 { return o.offset[m] }))
		}
		table.Row(row, micro(func(o *outcome) float64 { return o.certain / 2 }), micro(func(o *outcome) float64 { return o.likely / 2 }))
	}
}

func judge(run *experiment.Run, found map[string][][]outcome, certain, likely perflow.Coverage) {
	eighty := found["uneven"][4]
	ns := func(m int) float64 { return typical(eighty, func(o *outcome) float64 { return o.offset[m] }) }
	micro := func(ns float64) string { return experiment.Number(ns/1e3) + " µs" }
	beats := func(what string, m int) *experiment.Claim {
		return run.Claim("error of the offset, bursts, loads of 80 and 20 %, beside "+what, micro(ns(m)), micro(ns(ours)),
			experiment.Judge(ns(ours), ns(m), micro))
	}
	beats("means", means)
	beats("NTP's filter", filter)
	beats("probes of equal bytes, through the same line", probed)
	drift := 1e6 * typical(found["window"][3], func(o *outcome) float64 { return o.drift })
	run.Meets("error of the drift in 10 s at 80 % load", "≤ 0.1 ppm", experiment.Number(drift)+" ppm", drift <= 0.1)
	run.Meets("certain intervals that hold the offset", "all", fmt.Sprintf("%d of %d", certain.Held, certain.All), certain.Held == certain.All)
	run.Meets("likely intervals that hold it", "95 %", fmt.Sprintf("%d of %d", likely.Held, likely.All),
		float64(likely.Held) >= 0.95*float64(likely.All))
}
