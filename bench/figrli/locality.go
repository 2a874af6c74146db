package figrli

import (
	"fmt"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
)

var traces = experiment.Experiment{
	Name: "rli-table1", Title: "What the traffic is like (Table I)",
	Claim: "A flow has 15.9 to 20.8 packets on average; flows' mean delays range over 3 to 4 orders of magnitude on links of 10 Gb/s, " +
		"1 to 2 on slower ones; and of two traces of a link, the one with more load has the greater mean delay and range (section II, Table I).",
	Weight: 2, Quick: 0.2, Measure: measureTraces,
}

// published is Table I: mean delays in ns, and the ratio of the 99th to the 1st
// percentile of flows' means.
var published = []struct {
	name                          string
	packets, flows, perFlow, mean float64
	span                          float64
}{
	{"CHIC, 10 Gb/s", 131e6, 8.25e6, 15.9, 0.286e6, 9.96e3},
	{"SANJ, 10 Gb/s", 214e6, 10.3e6, 20.8, 0.386e6, 4.54e4},
	{"WEB468, 155 Mb/s", 2.61e6, 140e3, 18.6, 0.552e6, 39},
	{"WEB700, 155 Mb/s", 3.98e6, 208e3, 19.1, 3.70e6, 271},
}

func measureTraces(run *experiment.Run) {
	packets := run.Pick(60_000, 1_500_000)
	loads := []float64{0.55, 0.88}
	run.Config("packets", packets, "utilisations", loads)
	run.Note("The paper's traces are of backbone links for ten minutes, and of a laboratory's for five. Delays are of queueing alone; flows " +
		"of which no packet waited are left out of the range, which would be infinite with them.")
	table := run.Table("", "Packets, flows and delays", "traffic", "utilisation", "packets", "flows", "packets a flow", "mean delay",
		"flows' means, 99th over 1st percentile")
	for _, t := range published {
		table.Row("paper: "+t.name, "", number(t.packets), number(t.flows), number(t.perFlow), duration(t.mean), number(t.span))
	}
	for _, kind := range experiment.Each(run, everyKind(run)) {
		var means, spans []float64
		for k, u := range experiment.Each(run, loads) {
			p := simulate(run, setting{kind: kind, utilisation: u, packets: kind.enough(packets)})
			waited, mean := p.waited()
			span := quantile(waited, 0.99) / quantile(waited, 0.01)
			means, spans = append(means, mean), append(spans, span)
			perFlow := float64(p.all.N()) / float64(len(p.flows))
			table.Row(kind.name, percent(u), number(float64(p.all.N())), number(float64(len(p.flows))), number(perFlow), duration(mean),
				number(span))
			if k == 1 && kind.slug != poisson.slug { // its flows are all alike
				run.Holds(kind.name+": packets a flow", "15.9–20.8", number(perFlow), near(perFlow, 15.9, 20.8))
				run.Holds(kind.name+": flows' mean delays range over", "3 to 4 orders of magnitude: 9,960–45,400", number(span),
					near(span, 9960, 45400))
			}
		}
		if kind.slug == poisson.slug {
			continue
		}
		run.Holds(kind.name+": mean delay and range at both loads", "both greater at the higher",
			fmt.Sprintf("%s and %s; %s and %s", duration(means[0]), duration(means[1]), number(spans[0]), number(spans[1])),
			means[1] > means[0] && spans[1] > spans[0])
	}
}

// waited returns the mean queueing delays of the flows that waited at all, and
// that of all packets.
func (p *passage) waited() (flows []float64, mean float64) {
	list := p.waits()
	sums, n := make([]float64, len(p.flows)), make([]float64, len(p.flows))
	all := 0.0
	for i := range list {
		sums[list[i].flow] += list[i].delay
		n[list[i].flow]++
		all += list[i].delay
	}
	for i := range sums {
		if sums[i] > 0 {
			flows = append(flows, sums[i]/n[i])
		}
	}
	return flows, all / float64(len(list))
}

var locality = experiment.Experiment{
	Name: "rli-1", Title: "How alike delays of neighbours are (Fig. 1)",
	Claim: "Mean delays of flows range over 3 to 4 orders of magnitude; the mean delay of all packets in the same short window predicts " +
		"a flow's far better than the mean over everything, and the better the shorter the window (section II, Fig. 1).",
	Weight: 6, Quick: 0.5, Measure: measureLocality,
}

// windows are those of the localised means, in ns. The paper's 0.1 ms, 10 ms
// and 1 s are of 600 s of traffic.
var windows = []int64{1e4, 1e5, 1e6, 1e7}

const localUtilisation = 0.88

// A wait is the queueing delay of a packet, without the time to send the
// packet itself.
type wait struct {
	at    int64
	flow  int32
	delay float64
}

func (p *passage) waits() []wait {
	var list []wait
	for i := range p.events {
		if d := &p.events[i]; d.regular() {
			list = append(list, wait{d.out - d.delay, d.flow, max(float64(d.delay)-float64(d.bytes)*8e9/rate, 0)})
		}
	}
	return list
}

// localise returns each flow's mean wait, and the same with each packet's wait
// replaced by the mean of all in its window. It also returns how many packets
// the median window has.
func localise(list []wait, flows int, window int64) (actual, local []float64, packets float64) {
	means := map[int64]*estimate.Moments{}
	for i := range list {
		w := list[i].at / window
		if means[w] == nil {
			means[w] = new(estimate.Moments)
		}
		means[w].Add(list[i].delay)
	}
	own, theirs := make([]estimate.Moments, flows), make([]estimate.Moments, flows)
	for i := range list {
		own[list[i].flow].Add(list[i].delay)
		theirs[list[i].flow].Add(means[list[i].at/window].Mean())
	}
	for i := range own {
		actual, local = append(actual, own[i].Mean()), append(local, theirs[i].Mean())
	}
	var sizes []float64
	for _, m := range means {
		sizes = append(sizes, float64(m.N()))
	}
	return actual, local, median(sizes)
}

// relative returns the errors if the truth is not 0.
func relative(answers []float64, truth []float64) []float64 {
	var list []float64
	for i := range truth {
		if truth[i] > 0 {
			list = append(list, estimate.RelativeError(answers[i], truth[i]))
		}
	}
	return list
}

func measureLocality(run *experiment.Run) {
	packets := run.Pick(150_000, 2_000_000)
	run.Config("packets", packets, "utilisation", localUtilisation, "windows ns", windows)
	run.Note("Delays are of queueing alone, as in the paper's section II. Flows of which no packet waited have no relative error and "+
		"do not count.",
		"The drawn traffic lasts less than a second, where the paper's lasts ten minutes, and its bursts are shorter, so the windows are.")
	table := run.Table("", "Localised means: median relative error over flows (packets in the median window)", "traffic",
		"flows' means, 99th over 1st percentile")
	for _, w := range windows {
		table.Columns = append(table.Columns, duration(float64(w)))
	}
	table.Columns = append(table.Columns, "mean over everything")
	for _, kind := range experiment.Each(run, []kind{heavyTailed, onOff}) {
		p := simulate(run, setting{kind: kind, utilisation: localUtilisation, packets: packets})
		list := p.waits()
		var all estimate.Moments
		for i := range list {
			all.Add(list[i].delay)
		}
		cells, medians, everything := localised(list, len(p.flows), all.Mean())
		row := append(append([]string{kind.name}, cells...), percent(everything))
		table.Row(row)
		shorter := true
		for i := 1; i < len(medians); i++ {
			shorter = shorter && medians[i] >= medians[i-1]*0.95
		}
		first, final := duration(float64(windows[0])), duration(float64(windows[len(windows)-1]))
		run.Holds(kind.name+": the shorter the window, the better (median error, "+first+" to "+final+")", "so",
			percent(medians[0])+" to "+percent(last(medians)), shorter)
		run.Holds(kind.name+": median error of 0.1 ms windows, against the mean over everything", "far less",
			percent(medians[1])+" against "+percent(everything), medians[1] <= everything/2)
	}
}

// localised returns the span of the flows' means and each
// window's median error as cells of the table, those errors, and that of the
// mean over everything.
func localised(list []wait, flows int, mean float64) (cells []string, medians []float64,
	everything float64) {
	for i, w := range windows {
		actual, local, size := localise(list, flows, w)
		if i == 0 {
			positive := slices.DeleteFunc(slices.Clone(actual), func(x float64) bool { return !(x > 0) })
			cells = append(cells, number(quantile(positive, 0.99)/quantile(positive, 0.01)))
			everything = median(relative(slices.Repeat([]float64{mean}, flows), actual))
		}
		e := median(relative(local, actual))
		medians = append(medians, e)
		cells = append(cells, fmt.Sprintf("%s (%s)", percent(e), number(size)))
	}
	return cells, medians, everything
}
