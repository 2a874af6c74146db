package figrli

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/rli"
)

var coverage = experiment.Experiment{
	Name: "ours-rli-coverage", Title: "How often intervals hold the truth",
	Claim: "The intervals of flows' means and deviations, and of the mean of all packets, hold the truth at least as often as they say, " +
		"by every method.",
	Weight: 12, Quick: 1, Measure: measureCoverage,
}

func measureCoverage(run *experiment.Run) {
	const confidence = 0.95
	packets := run.Pick(60_000, 500_000)
	loads := []float64{0.2, 0.55, 0.88}
	run.Config("packets", packets, "injector", everyNth(100), "utilisations", loads, "confidence", confidence)
	table := run.Table("",
		"Share of flows whose interval at 95 % holds the truth: means / deviations; and whether that of all packets' mean does",
		"traffic", "utilisation")
	for _, m := range methods {
		table.Columns = append(table.Columns, m.name)
	}
	for _, kind := range experiment.Each(run, everyKind(run)) {
		for _, u := range experiment.Each(run, loads) {
			p := simulate(run, setting{kind: kind, utilisation: u, packets: kind.enough(packets), injector: everyNth(100)})
			row := []string{kind.name, percent(u)}
			for _, m := range methods {
				r := p.receive(p.config(m), nil)
				means, deviations := p.covered(r, confidence)
				total := experiment.Try(r.Total())
				held := total.MeanInterval(confidence).Contains(p.all.Mean())
				all := map[bool]string{true: "all packets'", false: "not all packets'"}[held]
				cell := percent(means.Share()) + " / " + percent(deviations.Share()) + ", " + all
				row = append(row, cell)
				run.Keeps(kind.name+", "+percent(u)+", "+m.name+": coverage", "at least 95 %", cell,
					min(means.Share(), deviations.Share()) >= confidence && held)
			}
			table.Row(row)
		}
	}
}

var robust = experiment.Experiment{
	Name: "ours-rli-robust", Title: "A link that is not quite as it was told",
	Claim: "Bytes that sizes do not count, noise of time stamps, drift, and a rate that is not told, or wrong, do not switch the busy-aware " +
		"method off, nor take from it what it gains on straight lines that are told the right rate.",
	Weight: 8, Quick: 1, Measure: measureRobust,
}

// A fault is wrong information for the receiver.
type fault struct {
	name      string
	uncounted int     // bytes of each packet and reference
	noise     float64 // ns of time stamps
	drift     float64 // of the injector's clock
	rate      int64   // configured: 0 for the link's, -1 for none
}

var faults = []fault{
	{name: "none"},
	{name: "4 bytes of checksum not counted", uncounted: 4},
	{name: "24 bytes of preamble, checksum and gap not counted", uncounted: 24},
	{name: "noise of 2 ns", noise: 2},
	{name: "noise of 20 ns", noise: 20},
	{name: "drift of 1 ppm", drift: 1e-6},
	{name: "drift of 10 ppm", drift: 1e-5},
	{name: "drift of 100 ppm", drift: 1e-4},
	{name: "rate not told", rate: -1},
	{name: "a rate 1 % too high", rate: rate * 1.01},
	{name: "half the rate, 24 bytes not counted, drift of 10 ppm", rate: rate / 2, uncounted: 24, drift: 1e-5},
}

func measureRobust(run *experiment.Run) {
	packets := run.Pick(60_000, 500_000)
	loads := []float64{0.2, 0.55, 0.88}
	run.Config("packets", packets, "injector", adaptive, "utilisations", loads)
	table := run.Table("", "Packets that the busy-aware method estimated as such, and the median error of flows' means: RLI / busy-aware",
		"traffic", "fault", "utilisation", "packets", "RLI", "busy-aware")
	for _, kind := range experiment.Each(run, []kind{poisson, heavyTailed}) {
		for _, f := range experiment.Each(run, faults) {
			for _, u := range experiment.Each(run, loads) {
				p := simulate(run, setting{kind: kind, utilisation: u, packets: packets, injector: adaptive})
				share, theirs, ours := p.under(run, f)
				table.Row(kind.name, f.name, percent(u), percent(share), percent(theirs), percent(ours))
				where := kind.name + ", " + f.name + ", " + percent(u)
				run.Keeps(where+": packets estimated as such", "at least 90 %", percent(share), share >= 0.9)
				run.Beats(where+": median error", ours, theirs, 0.05)
			}
		}
	}
}

// under returns which fraction of the packets the busy-aware method estimates
// as such under a fault, and the median errors of straight lines and of the
// method.
func (p *passage) under(run *experiment.Run, f fault) (share, line, busy float64) {
	p.suffer(run, f)
	c := p.config(byPeriod)
	c.ReferenceBytes -= f.uncounted
	if f.rate != 0 {
		c.Rate, c.Method = max(f.rate, 0), rli.Auto
	}
	r := p.receive(c, nil)
	c.Method, c.Rate = byLine.kind, rate
	k := r.Counts()
	return float64(k.Idle+k.Busy) / float64(k.Packets), median(p.judge(p.receive(c, nil), p.flows).mean), median(p.judge(r, p.flows).mean)
}

// suffer applies a fault to the receiver's information.
func (p *passage) suffer(run *experiment.Run, f fault) {
	random := run.Rand("noise")
	last := int64(math.MinInt64)
	var truth = make([]estimate.Moments, len(p.flows))
	for i := range p.events {
		d := &p.events[i]
		d.bytes -= int32(f.uncounted)
		last = max(last, d.out+int64(math.Round(f.noise*random.NormFloat64())))
		d.out = last
		if d.regular() {
			truth[d.flow].Add(float64(d.delay) + f.drift*float64(d.out-d.delay-p.sent[0]))
			continue
		}
		s := &p.stamps[d.stamp]
		s.Behind -= uint16(f.uncounted)
		s.Sent -= int64(math.Round(f.drift * float64(s.Sent-p.sent[0])))
	}
	if f.drift != 0 { // a delay by these clocks
		for i := range truth {
			p.flows[i].delays = truth[i]
		}
	}
}

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
		figure.Add(plot.Series{Name: fmt.Sprintf("%s, %d bytes", size.name, size.bytes), Paper: k == 0, Pair: k + 1})
	}
	for _, kind := range experiment.Each(run, []kind{poisson, heavyTailed}) {
		for _, u := range experiment.Each(run, utilisations) {
			var taken, off []float64
			for k, size := range experiment.Each(run, sizes) {
				injector := adaptive
				p := simulate(run, setting{kind: kind, utilisation: u, packets: packets, injector: injector, reference: size.bytes})
				line, _ := p.measure(byLine)
				busy, _ := p.measure(byPeriod)
				taken, off = append(taken, p.cost.capacity()), append(off, median(busy.mean))
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
