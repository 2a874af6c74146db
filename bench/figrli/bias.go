package figrli

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// Bias measures the bias of the mean of all packets.
var Bias = experiment.Experiment{
	Name: "ours-rli-bias", Title: "Bias of the mean of all packets, over many runs",
	Claim: "Over runs the busy-aware method's mean of all packets is off by at most 1 % of the mean wait; and its flows' errors, " +
		"in the median and at the 99th percentile, are at most 1.05 of those of straight lines.",
	Weight: 60, Quick: 1.5, Measure: measureBias,
}

// Queues of other places than the paper's.
var (
	dropTail = queue.LinkConfig{Rate: rate, Queue: queue.QueueConfig{Packets: 1000}}
	early    = queue.LinkConfig{Rate: rate, Queue: queue.QueueConfig{Packets: 1000,
		RED: queue.REDConfig{Min: 30, Max: 300, Weight: 0.002, Probability: 1.0 / 50, Typical: 500}}}
)

var biased = []setting{
	{kind: poisson, utilisation: 0.20, injector: adaptive},
	{kind: poisson, utilisation: 0.55, injector: adaptive},
	{kind: poisson, utilisation: 0.70, injector: adaptive},
	{kind: poisson, utilisation: 0.85, injector: adaptive},
	{kind: poisson, utilisation: 0.85, injector: everyNth(100)},
	{kind: poisson, utilisation: 0.88, injector: adaptive},
	{kind: poisson, utilisation: 0.97, injector: adaptive},
	{kind: poisson, utilisation: 1.00, injector: adaptive, link: early},
	{kind: onOff, utilisation: 0.50, injector: everyNth(10), link: dropTail},
	{kind: onOff, utilisation: 0.20, injector: adaptive},
	{kind: onOff, utilisation: 0.55, injector: adaptive},
	{kind: onOff, utilisation: 0.70, injector: adaptive},
	{kind: onOff, utilisation: 0.88, injector: adaptive},
	{kind: heavyTailed, utilisation: 0.20, injector: adaptive},
	{kind: heavyTailed, utilisation: 0.20, injector: everyNth(15)},
	{kind: heavyTailed, utilisation: 0.20, injector: everyNth(100)},
	{kind: heavyTailed, utilisation: 0.55, injector: adaptive},
	{kind: heavyTailed, utilisation: 0.55, injector: everyNth(75)},
	{kind: heavyTailed, utilisation: 0.70, injector: adaptive},
	{kind: heavyTailed, utilisation: 0.70, injector: everyNth(150)},
	{kind: heavyTailed, utilisation: 0.88, injector: adaptive},
	{kind: heavyTailed, utilisation: 0.88, injector: everyNth(100)},
	{kind: poisson, utilisation: 0.20, injector: everyTau(135e3)},
	{kind: poisson, utilisation: 0.55, injector: everyTau(49e3)},
	{kind: poisson, utilisation: 0.70, injector: everyTau(39e3)},
	{kind: heavyTailed, utilisation: 0.55, injector: everyTau(49e3)},
}

func measureBias(run *experiment.Run) {
	packets, runs := run.Pick(20_000, 200_000), run.Pick(4, 24)
	run.Note("Bias is the sum of all errors of all runs over the sum of all waits, with its standard error, of which two count as chance.",
		"References alone: the mean wait of the packets that they name, each for all since the reference before. Where that is off by more "+
			"than chance, references do not come when packets wait: an adaptive injector has seen that a burst is there when it puts references "+
			"far apart, and so most of the burst is never looked at, by whatever phase. Nobody can tell from references what is there. At a fixed "+
			"rate, no more references, there is no such bias.",
	)
	table := run.Table("Bias of the mean of all packets, in per cent of the mean wait; relative errors "+
		"of flows' means: median / 99th percentile",
		"traffic", "utilisation", "references per packet", "loss", "mean wait", "bias: RLI", "busy-aware",
		"references alone", "flows: RLI", "busy-aware")
	for _, s := range biased {
		b := repeat(run, s, packets, runs)
		row := []string{s.kind.name, percent(s.utilisation), way(s.injector, b.references), percent(b.loss), duration(b.wait),
			b.line.bias(), b.busy.bias(), b.alone.bias(),
			percent(b.medians[0]) + " / " + percent(b.tails[0]), percent(b.medians[1]) + " / " + percent(b.tails[1])}
		table.Row(row)
		where := s.kind.name + ", " + percent(s.utilisation) + ", " + row[2]
		mean, standard := b.busy.of()
		word := experiment.Fits(math.Abs(mean), 0, 0.01, 2*standard/0.01)
		if word == experiment.DoesNotHold {
			word = experiment.Loss
		}
		run.Claim(where+": bias of the mean of all packets", "at most 1 %", b.busy.bias(), word)
		run.Within(where+": median error of flows", "1.05 of "+percent(b.medians[0]), b.medians[1], 1.05*b.medians[0], 0)
		run.Within(where+": 99th percentile", "1.05 of "+percent(b.tails[0]), b.tails[1], 1.05*b.tails[0], 0)
	}
}

// way says when references go out.
func way(c rli.InjectorConfig, references float64) string {
	name := map[bool]string{true: "adaptive", false: "fixed"}[c.Rate > 0]
	if c.Interval > 0 {
		name = "in " + duration(float64(c.Interval))
	}
	return fmt.Sprintf("%s, 1 in %.0f", name, 1/references)
}

// A repetition is the result of several runs of a setting.
type repetition struct {
	line, busy, alone      balance
	medians, tails         [2]float64 // of flows' errors, by line and busy-aware
	references, loss, wait float64
}

// A balance is the sums of errors and of waits over the packets of each run.
type balance struct{ errors, waits []float64 }

// of returns the bias as a fraction of the mean wait, and its standard error.
func (b *balance) of() (mean, standard float64) {
	err, wait, squares := 0.0, 0.0, 0.0
	for i := range b.errors {
		err += b.errors[i]
		wait += b.waits[i]
	}
	mean = err / wait
	for i := range b.errors {
		squares += math.Pow(b.errors[i]-mean*b.waits[i], 2)
	}
	n := float64(len(b.errors))
	return mean, math.Sqrt(n/(n-1)*squares) / wait
}

func (b *balance) bias() string {
	mean, standard := b.of()
	return fmt.Sprintf("%+.2f ± %.2f %%", 100*mean, 100*standard)
}

func (b *balance) add(err, wait float64) {
	b.errors, b.waits = append(b.errors, err), append(b.waits, wait)
}

// repeat runs a setting several times.
func repeat(run *experiment.Run, s setting, packets, runs int) *repetition {
	b, part := new(repetition), 1/float64(runs)
	for n := range runs {
		s.again, s.packets = n, packets
		p := simulate(run, s)
		waited, alone := p.totals()
		all := float64(p.all.N())
		for k, m := range []method{byLine, byPeriod} {
			a, r := p.measure(m)
			total := experiment.Try(r.Total())
			[]*balance{&b.line, &b.busy}[k].add((total.Mean-p.all.Mean())*float64(total.N), waited)
			b.medians[k] += part * median(a.mean)
			b.tails[k] += part * quantile(a.mean, 0.99)
		}
		b.alone.add(alone*all-waited, waited)
		b.references += part * p.references()
		b.loss += part * p.loss()
		b.wait += part * waited / all
	}
	return b
}

// wait returns how long it waited, without the time that the link takes to send it.
func (d *departure) wait() float64 { return float64(d.delay) - float64(d.bytes)*8e9/rate }

// totals returns the sum of all packets' waits, and the mean of those that
// references name, each for all packets since the reference before.
func (p *passage) totals() (sum, alone float64) {
	latest, since, n := 0.0, 0.0, 0.0
	for i := range p.events {
		d := &p.events[i]
		if !d.regular() {
			alone, n, since = alone+since*latest, n+since, 0
			continue
		}
		latest = d.wait()
		sum += latest
		since++
	}
	return sum, alone / n
}
