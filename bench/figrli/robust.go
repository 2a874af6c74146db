package figrli

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// Robust tries traffic, links and clocks of all kinds.
var Robust = experiment.Experiment{
	Name: "ours-rli-robust", Title: "Answers that hold, or are refused",
	Claim: "Whatever the traffic, the link and the clocks do, flows' means are refused or in their intervals as often as these say; " +
		"on bursty traffic the median half-width at 95 % is at most 4 times the median error; and Auto is never worse than straight lines by " +
		"5 %.",
	Weight: 110, Quick: 1.2, Measure: measureRobust,
}

// A trial is what a receiver with the defaults, except for the rate, has to cope with.
type trial struct {
	name string
	setting
	change func(run *experiment.Run, p *passage) // of what was sent and departed
	config func(c *rli.Config)
	sharp  bool // whether intervals are to be sharp, too
	often  bool // whether it is run several times
}

// trials returns all of them.
func trials() (list []trial) {
	in100 := everyNth(100)
	for _, u := range []float64{0.2, 0.55, 0.88} {
		for _, k := range []kind{poisson, onOff, heavyTailed, paced} {
			list = append(list, trial{name: k.name, setting: setting{kind: k, utilisation: u, injector: in100}, often: true,
				sharp: k.slug != poisson.slug && k.slug != paced.slug})
		}
	}
	on := func(name string, k kind, u float64, change func(*experiment.Run, *passage), config func(*rli.Config)) {
		list = append(list, trial{name: name, setting: setting{kind: k, utilisation: u, injector: in100}, change: change, config: config})
	}
	for _, u := range []float64{0.2, 0.55, 0.7, 0.88} {
		list = append(list, trial{name: "adaptive injection", often: true,
			setting: setting{kind: heavyTailed, utilisation: u, injector: adaptive}})
	}
	on("every other flow is of a lower class, after half of the time", heavyTailed, 0.55, overtake, nil)
	for _, u := range []float64{0.2, 0.55, 0.7} {
		list = append(list, trial{name: "one reference in τ", setting: setting{kind: poisson, utilisation: u, injector: everyTau(27e3 / u)}})
	}
	on("the injector stops half-way", heavyTailed, 0.55, func(_ *experiment.Run, p *passage) {
		last := int32(len(p.stamps) / 2)
		p.lose(func(d *departure) bool { return d.stamp > last })
	}, nil)
	on("references are lost when it is slow", heavyTailed, 0.55, func(_ *experiment.Run, p *passage) {
		p.lose(func(d *departure) bool { return float64(d.delay) > 2*p.all.Mean() })
	}, nil)
	on("a clock is stepped by 1.66 mean waits", heavyTailed, 0.55, stepped(func(p *passage) int64 { return int64(1.66 * p.all.Mean()) }), nil)
	on("a clock is stepped back by as much", heavyTailed, 0.55, stepped(func(p *passage) int64 { return -int64(1.66 * p.all.Mean()) }), nil)
	on("a clock is stepped from 1970 to 2026", heavyTailed, 0.55, stepped(func(*passage) int64 { return 56 * 31_556_952e9 }), nil)
	slow := func(name string, bits int64, u float64, change func(*experiment.Run, *passage)) {
		list = append(list, trial{name: name, setting: setting{kind: poisson, utilisation: u * float64(bits) / rate, injector: in100,
			link: queue.LinkConfig{Rate: bits}}, change: change, config: func(c *rli.Config) { c.Rate = bits }})
	}
	slow("stamps of whole microseconds at 1 Gb/s", 1e9, 0.55, grained)
	slow("a drift of 50 ppm at 100 Mb/s", 1e8, 0.55, reclocked(func(p *passage, sent int64) int64 { return (sent - p.sent[0]) / 20_000 }))
	shaped := setting{kind: heavyTailed, utilisation: 0.55, injector: in100, link: queue.LinkConfig{Rate: rate, Burst: 20_000}}
	list = append(list, trial{name: "a shaper, told to be a link", setting: shaped})
	slow("in software, references 5 µs late, at 1 Gb/s", 1e9, 0.55, nil)
	list[len(list)-1].late = 5e3
	behind := setting{kind: heavyTailed, utilisation: 0.4, injector: in100, link: queue.LinkConfig{Rate: rate}}
	list = append(list, trial{name: "link, then jitter of 1 µs", setting: behind, change: jitter(false)},
		trial{name: "link, then jitter of 1 µs, overtaking", setting: behind, change: jitter(true)},
		trial{name: "two links, cross traffic at the second", setting: behind, change: secondLink})
	full := queue.LinkConfig{Rate: rate, Queue: queue.QueueConfig{Packets: 300}}
	list = append(list,
		trial{name: "drop-tail of 300, more than it takes", setting: setting{kind: heavyTailed, utilisation: 1.2, injector: in100, link: full}},
		trial{name: "senders four times as fast as the link", often: true, setting: setting{kind: eager, utilisation: 0.55, injector: in100}})
	on("rate not told", heavyTailed, 0.55, nil, func(c *rli.Config) { c.Rate = 0 })
	on("half the rate told", heavyTailed, 0.55, nil, func(c *rli.Config) { c.Rate /= 2 })
	on("straight lines", heavyTailed, 0.55, nil, func(c *rli.Config) { c.Method = rli.Linear })
	return list
}

// overtake lets every other flow's packets depart 20 µs later, in the second half.
func overtake(_ *experiment.Run, p *passage) {
	half := p.events[len(p.events)/2].out
	p.later(func(d *departure) int64 {
		if d.regular() && d.flow%2 == 1 && d.out > half {
			return 20_000
		}
		return 0
	})
}

// later lets everything depart later, and so perhaps in another order.
func (p *passage) later(by func(d *departure) int64) {
	for i := range p.events {
		d := &p.events[i]
		more := by(d)
		d.out, d.delay = d.out+more, d.delay+more
	}
	p.retell()
	slices.SortStableFunc(p.events, func(a, b departure) int { return cmp.Compare(a.out, b.out) })
}

// jitter holds each packet for 1 µs on average and, unless it may overtake, until those before it have left.
func jitter(overtakes bool) func(*experiment.Run, *passage) {
	return func(run *experiment.Run, p *passage) {
		random, last := run.Rand("jitter"), int64(0)
		p.later(func(d *departure) int64 {
			more := int64(1000 * random.ExpFloat64())
			if !overtakes {
				more = max(more, last-d.out)
				last = d.out + more
			}
			return more
		})
	}
}

// secondLink is another link behind the first, which cross traffic shares.
func secondLink(run *experiment.Run, p *passage) {
	link, source := experiment.Try(queue.NewLink(queue.LinkConfig{Rate: rate})), poisson.source(run, 0.3, 0)
	var cross queue.Packet
	source.Next(&cross)
	p.later(func(d *departure) int64 {
		for ; cross.Time < d.out; source.Next(&cross) {
			link.Send(cross.Time, int(cross.Bytes))
		}
		out, _ := link.Send(d.out, int(d.bytes))
		return out - d.out
	})
}

// retell adds up flows' delays anew.
func (p *passage) retell() {
	for i := range p.flows {
		p.flows[i].delays = estimate.Moments{}
	}
	for i := range p.events {
		if d := &p.events[i]; d.regular() {
			p.flows[d.flow].delays.Add(float64(d.delay))
		}
	}
}

// lose drops references behind the link: they departed, as cross traffic.
func (p *passage) lose(lost func(*departure) bool) {
	for i := range p.events {
		if d := &p.events[i]; !d.regular() && lost(d) {
			d.stamp = -1
		}
	}
}

// stepped lets the injector's clock go back half-way: delays grow. The truth is by the clock of each packet.
func stepped(step func(*passage) int64) func(*experiment.Run, *passage) {
	return reclocked(func(p *passage, sent int64) int64 {
		if sent < p.sent[len(p.sent)/2] {
			return 0
		}
		return step(p)
	})
}

// reclocked lets the injector's clock be behind.
func reclocked(behind func(p *passage, sent int64) int64) func(*experiment.Run, *passage) {
	return func(_ *experiment.Run, p *passage) {
		for i := range p.events {
			switch d := &p.events[i]; {
			case d.regular():
				d.delay += behind(p, d.out-d.delay)
			case d.stamp >= 0:
				p.stamps[d.stamp].Sent -= behind(p, p.stamps[d.stamp].Sent)
			}
		}
		p.retell()
	}
}

// grained rounds all time stamps down to microseconds.
func grained(_ *experiment.Run, p *passage) {
	for i := range p.events {
		d := &p.events[i]
		if d.out -= d.out % 1000; !d.regular() {
			p.stamps[d.stamp].Sent -= p.stamps[d.stamp].Sent % 1000
		}
	}
}

func measureRobust(run *experiment.Run) {
	packets, runs := run.Pick(60_000, 400_000), run.Pick(1, 8)
	run.Note("References are one in 100, and the rate is told, where nothing else is said. Refused are flows for which Estimate returns an "+
		"error, or whose interval is unbounded. Coverage is of the others. Half-widths are medians over flows of those at 95 %, relative to "+
		"the truth, as errors are. Where a trial has several runs, figures are means of theirs: flows of one run share part of their error.",
		"Calibrated: a bound. Flows are put in twenty groups by their half-width, relative to the truth, and in each group all intervals are "+
			"scaled so that 95 % hold the truth, which only who knows it can. No intervals that keep the receiver's order of flows, from sure "+
			"to unsure, and hold 95 % wherever they say so, have a smaller median half-width over the median error. It is more than 4 at 20 % "+
			"load, where most packets follow their own flow's only: the median error is next to nothing, but of flows that look alike "+
			"some are far off.")
	table := run.Table("Flows' means", "trial", "utilisation", "flows", "refused", "in intervals at 95 %", "at 99.9 %",
		"median error", "median half-width", "over the error", "calibrated", "straight lines' median error", "within busy periods", "all packets")
	for _, t := range trials() {
		times := runs
		if t.packets = packets; !t.often {
			times = 1
		}
		v := t.run(run, times)
		where, lines := t.name, v.lines
		if t.change == nil && t.link == (queue.LinkConfig{}) {
			where += ", " + percent(t.utilisation)
		}
		table.Row(t.name, percent(t.utilisation), v.flows, percent(v.refused), held(v.held[0]), held(v.held[1]), percent(v.off),
			percent(v.half), number(v.half/v.off), number(v.least), percent(lines), percent(v.busy), v.total)
		run.Claim(where+": means in their intervals at 95 and 99.9 %", "at least 95 % and 99.9 %, or refused",
			held(v.held[0])+" and "+held(v.held[1])+", "+percent(v.refused)+" refused", v.covers())
		if t.sharp {
			run.Meets(where+": median half-width at 95 %", "at most 4 times the median error, "+percent(v.off),
				percent(v.half)+", "+number(v.half/v.off)+" times; calibrated, "+number(v.least)+" times", v.half <= 4*v.off)
		}
		if (t.change == nil || t.link.Rate > 0) && t.config == nil && v.refused < 0.99 {
			run.Meets(where+": median error", "at most 1.05 times that of straight lines, "+percent(lines), percent(v.off), v.off <= 1.05*lines)
		}
	}
}

// run returns the means of the verdicts of several runs.
func (t *trial) run(run *experiment.Run, runs int) (all verdict) {
	for n := range runs {
		t.again = n
		p := simulate(run, t.setting)
		if t.change != nil {
			t.change(run, p)
		}
		c := p.config(byPeriod)
		if c.Method = rli.Auto; t.config != nil {
			t.config(&c)
		}
		r := p.receive(c)
		v, k := p.verdict(r), r.Counts()
		v.busy = float64(k.Idle+k.Busy) / float64(k.Packets)
		c.Method = rli.Linear
		v.lines = p.verdict(p.receive(c)).off
		part := 1 / float64(runs)
		for i, x := range v.list() {
			*all.list()[i] += part * *x
		}
		for i, share := range v.held {
			all.runs[i].Add(share)
		}
		all.flows, all.total = v.flows, v.total
	}
	return all
}

// A verdict sums up a receiver's answers about flows' means.
type verdict struct {
	flows                           int
	refused, off, half, lines, busy float64    // lines are straight ones' error, busy the share of packets within busy periods
	least                           float64    // half over off, at best
	held                            [2]float64 // of intervals at 95 and 99.9 %
	runs                            [2]estimate.Moments
	total                           string
}

// covers says whether intervals held as often as they say, or nearly so if chance between the runs explains it.
func (v *verdict) covers() experiment.Verdict {
	word := experiment.AsGood
	for i, want := range []float64{0.95, 0.999} {
		if v.refused > 0.99 || v.held[i] >= want {
			continue
		}
		runs, err := v.runs[i].Delay()
		if err != nil || runs.N < 2 || estimate.StudentInterval(runs, runs.N-1, 0.99).High < want {
			return experiment.Loss
		}
		word = experiment.Nearly
	}
	return word
}

func (v *verdict) list() []*float64 {
	return []*float64{&v.refused, &v.off, &v.half, &v.lines, &v.busy, &v.least, &v.held[0], &v.held[1]}
}

func (p *passage) verdict(r *rli.Receiver) (v verdict) {
	var held [2]perflow.Coverage
	var off, half []float64
	sum, want := 0.0, 0.0
	for i := range p.flows {
		truth := p.flows[i].mean()
		if p.flows[i].delays.N() == 0 {
			continue
		}
		v.flows++
		got, err := r.Estimate(p.flows[i].key)
		if err != nil || !got.MeanInterval(0.95).Bounded() {
			v.refused++
			continue
		}
		in, n := got.MeanInterval(0.95), float64(got.N)
		sum, want = sum+n*got.Mean, want+n*truth
		held[0].Count(in.Contains(truth))
		held[1].Count(got.MeanInterval(0.999).Contains(truth))
		if truth != 0 { // behind a shaper
			off, half = append(off, math.Abs(got.Mean/truth-1)), append(half, (in.High-in.Low)/2/math.Abs(truth))
		}
	}
	v.refused /= float64(v.flows)
	v.off, v.half, v.held = median(off), median(half), [2]float64{held[0].Share(), held[1].Share()}
	v.least = leastHalf(off, half) / v.off
	total, err := r.Total()
	if v.total = "refused"; err == nil {
		in := total.MeanInterval(0.95)
		v.total = fmt.Sprintf("%+.2g %%", 100*(sum/want-1)) + " ± " + percent((in.High-in.Low)/2/total.Mean)
	}
	return v
}

// leastHalf returns the median half-width if flows were put in groups by it, and in
// each group scaled so that 95 % of errors are less.
func leastHalf(off, half []float64) float64 {
	const groups = 20
	flows, list := make([]int, len(off)), []float64{}
	for i := range flows {
		flows[i] = i
	}
	slices.SortFunc(flows, func(a, b int) int { return cmp.Compare(half[a], half[b]) })
	for g := range groups {
		group := flows[g*len(flows)/groups : (g+1)*len(flows)/groups]
		var scales []float64
		for _, i := range group {
			scales = append(scales, off[i]/half[i])
		}
		scale := quantile(scales, 0.95)
		for _, i := range group {
			list = append(list, half[i]*scale)
		}
	}
	return median(list)
}

// held formats how often intervals hold, so that 99.7 and 100 % differ; NaN means that there are none.
func held(share float64) string {
	return strings.Replace(fmt.Sprintf("%.2f %%", 100*share), "NaN %", "–", 1)
}
