package figrli

import (
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
)

var robust = experiment.Experiment{
	Name: "ours-rli-robust", Title: "A link that is not quite as it was told",
	Claim: "Bytes that sizes do not count, noise of time stamps and drift do not switch the busy-aware method off, nor take from it what " +
		"it gains on straight lines.",
	Weight: 8, Quick: 1, Measure: measureRobust,
}

// A fault is what the receiver is told wrong.
type fault struct {
	name      string
	uncounted int     // bytes of each packet and reference
	noise     float64 // ns of time stamps
	drift     float64 // of the injector's clock
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

// under is which share of the packets the busy-aware method estimates as such
// under a fault, and the median errors of straight lines and of it.
func (p *passage) under(run *experiment.Run, f fault) (share, line, busy float64) {
	p.suffer(run, f)
	c := p.config(byPeriod)
	c.ReferenceBytes -= f.uncounted
	r := p.receive(c, nil)
	c.Method = byLine.kind
	k := r.Counts()
	return float64(k.Idle+k.Busy) / float64(k.Packets), median(p.judge(p.receive(c, nil), p.flows).mean), median(p.judge(r, p.flows).mean)
}

// suffer lets the receiver be told wrong.
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
