package figrli

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
)

var aggregate = experiment.Experiment{
	Name: "rli-11", Title: "Mean and deviation of all packets, beside LDA (Fig. 11)",
	Claim: "At the same bandwidth, 288 references an interval, LDA's mean is better than RLI's, which is below 2.5 %. " +
		"With 1,440 RLI is below 0.3 % where loss exceeds 0.4 %, and LDA between 0.1 and 1.3 %; with less loss LDA is better. " +
		"RLI's deviation is about a thousand times better than LDA's, 0.005 % against 1 to 27 % (section V-C, Fig. 11).",
	Weight: 8, Quick: 0.6, Measure: measureAggregate,
}

// perInterval is how many packets the paper's interval of one second has.
const perInterval = 400_000

// offered loads, up to overload, which causes the losses.
var offered = []float64{0.70, 0.88, 0.92, 0.95, 0.98, 1.02, 1.08}

func measureAggregate(run *experiment.Run) {
	packets := run.Pick(perInterval/4, perInterval)
	kinds := []kind{onOff, heavyTailed}[:run.Pick(1, 2)]
	numbers := []int{288, 1440}
	c := lda.DefaultConfig
	c.Identity = run.SeedOf("lda")
	run.Config("packets", packets, "references", numbers, "offered", offered, "lda", c)
	run.Note("References are one in so many packets, to come to 288 or 1,440 an interval. LDA is of this library's default size, with its "+
		"count-conditioned deviation; RLI sees no packet at the sender.",
		"RLI's truth and LDA's are the same: all packets that arrived. Where LDA is exact, as nothing is lost, no method can be better.")
	table := run.Table("", "Relative error of the mean / of the deviation of all packets", "traffic", "offered", "loss", "mean delay", "LDA",
		"LDA, eq. (5)")
	for _, n := range numbers {
		table.Columns = append(table.Columns, fmt.Sprintf("%s, %d", byLine.name, n), fmt.Sprintf("%s, %d", byPeriod.name, n))
	}
	for _, kind := range experiment.Each(run, kinds) {
		var of tally
		for _, u := range experiment.Each(run, offered) {
			o := overall{row: []string{kind.name, percent(u)}}
			for k, n := range experiment.Each(run, numbers) {
				p := simulate(run, setting{kind: kind, utilisation: u, packets: packets, injector: everyNth(packets / n)})
				of.add(k, p.loss(), o.measure(p, c, k))
			}
			table.Row(o.row)
		}
		of.judge(run, kind.name)
	}
}

// An offset is how far mean and deviation are off, as fractions.
type offset struct{ mean, deviation float64 }

func (p *passage) off(d estimate.Delay) offset {
	return offset{estimate.RelativeError(d.Mean, p.all.Mean()), estimate.RelativeError(d.StdDev, p.deviation())}
}

// overall is what LDA and RLI say about all packets at one load.
type overall struct{ row []string }

// measure adds the results with one number of references, and returns the
// offsets of the paper's methods: LDA's, with its deviation by eq. (5), and
// RLI's.
func (o *overall) measure(p *passage, c lda.Config, k int) [2]offset {
	l, collapsed := p.aggregated(c)
	ofLDA, eq5 := p.off(l.Delay), p.off(estimate.Delay{StdDev: collapsed})
	if k == 0 {
		o.row = append(o.row, percent(p.loss()), duration(p.all.Mean()), ofLDA.String(), percent(eq5.deviation))
	}
	line := p.off(experiment.Try(p.receive(p.config(byLine), nil).Total()).Delay)
	busy := p.off(experiment.Try(p.receive(p.config(byPeriod), nil).Total()).Delay)
	o.row = append(o.row, line.String(), busy.String())
	return [2]offset{{ofLDA.mean, eq5.deviation}, line}
}

// String returns a cell of the table.
func (o offset) String() string {
	return percent(o.mean) + " / " + percent(o.deviation)
}

// A tally adds up over loads what claims are about.
type tally struct {
	few, many, losing, deviations, others estimate.Moments
	loads, better                         int
}

// add takes LDA's offset and RLI's, with few references or, if k is 1, many.
func (t *tally) add(k int, loss float64, of [2]offset) {
	byLDA, byRLI := of[0], of[1]
	if k == 0 {
		t.loads++
		t.few.Add(byRLI.mean)
		if byRLI.mean < byLDA.mean {
			t.better++
		}
		return
	}
	t.deviations.Add(byRLI.deviation)
	t.others.Add(byLDA.deviation)
	if loss > 0.004 {
		t.many.Add(byRLI.mean)
		t.losing.Add(byLDA.mean)
	}
}

func (t *tally) judge(run *experiment.Run, name string) {
	run.Holds(name+": RLI's error of the mean with 288 references, average over loads", "< 2.5 %", percent(t.few.Mean()),
		near(t.few.Mean(), 0, 0.025))
	run.Holds(name+": loads at which LDA's mean is better than RLI's with 288", "all", fmt.Sprintf("%d of %d", t.loads-t.better, t.loads),
		t.better == 0)
	run.Holds(name+": RLI's deviation with 1,440, average over loads, against LDA's by eq. (5)", "0.005 % against 1–27 %",
		percent(t.deviations.Mean())+" against "+percent(t.others.Mean()),
		near(t.deviations.Mean(), 0.00005, 0.00005) && near(t.others.Mean(), 0.01, 0.27))
	if t.many.N() > 0 {
		run.Holds(name+": RLI's mean with 1,440, above 0.4 % loss, against LDA's", "< 0.3 % against 0.1–1.3 %",
			percent(t.many.Mean())+" against "+percent(t.losing.Mean()), near(t.many.Mean(), 0, 0.003) && near(t.losing.Mean(), 0.001, 0.013))
	}
}

// aggregated returns what a pair of LDAs at both ends says, and the deviation
// by eq. (5) of LDA's paper.
func (p *passage) aggregated(c lda.Config) (r lda.Result, collapsed float64) {
	up := experiment.Try(lda.New(c))
	down := experiment.Try(lda.New(c))
	for i, at := range p.sent {
		up.Update(identity(int32(i)), at)
	}
	for i := range p.events {
		if d := &p.events[i]; d.regular() {
			down.Update(identity(d.number), d.out)
		}
	}
	r = experiment.Try(lda.Estimate(up, down))
	return r, math.Sqrt(max(experiment.Try(lda.Paper.CollapsedVariance(up, down)), 0))
}
