package figrli

import (
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

var overhead = experiment.Experiment{
	Name: "rli-12", Title: "What references cost (Fig. 12)",
	Claim: "References take about 0.1 % of the link at low utilisation and 0.007 % at 90 % (section V-D, Fig. 12a). " +
		"Delays of flows change little, and about a tenth of them fall, as other packets are dropped than before (Fig. 12b). " +
		"Loss differs by at most 0.001 % of the packets at almost 80 % utilisation (Fig. 12c).",
	Weight: 25, Quick: 1.5, Measure: measureOverhead,
}

// grades are steps of utilisation.
var grades = []float64{0.2, 0.3, 0.4, 0.55, 0.6, 0.7, 0.8, 0.88, 0.9, 0.95}

func measureOverhead(run *experiment.Run) {
	packets := run.Pick(60_000, 1_000_000)
	kinds := everyKind(run)
	run.Config("packets", packets, "injector", adaptive, "utilisations", grades)
	run.Note("The same packets are sent with references and without. A packet's identity does not show in what the queue does, so whether "+
		"it is dropped depends on its place only.",
		"The share of capacity depends on the size of packets: one reference of 48 bytes to 10 packets is 1.4 % of the bytes where packets "+
			"have 340 bytes on average, so 0.3 % of a link at 20 %. The paper's 0.1 % would want packets of about 1,000 bytes at that rate.",
		"Where nothing is lost with references or without, no claim about loss is judged: rli-loss is about a load at which packets are lost.")
	table := run.Table("", "With references and without", "traffic", "utilisation", "references per packet", "capacity",
		"mean delay without", "with", "a flow's change: 10th percentile", "median", "90th", "loss without", "with")
	for _, kind := range experiment.Each(run, kinds) {
		taken := 0.0
		for _, u := range experiment.Each(run, grades) {
			s := setting{kind: kind, utilisation: u, packets: kind.enough(packets)}
			without := simulate(run, s)
			s.injector = adaptive
			with := simulate(run, s)
			share := with.cost.capacity()
			taken = max(taken, share)
			changes := with.changes(without)
			table.Row(kind.name, percent(u), percent(with.cost.rate()), percent(share), duration(without.all.Mean()), duration(with.all.Mean()),
				signed(quantile(changes, 0.1)), signed(median(changes)), signed(quantile(changes, 0.9)), percent(without.loss()), percent(with.loss()))
			switch u {
			case 0.8:
				if more := with.loss() - without.loss(); with.lost+without.lost > 0 {
					run.Holds(kind.name+": additional loss at 80 %", "at most 0.001 %", signedPercent(more), near(more, math.Inf(-1), 0.00001))
				}
			case 0.88:
				down := len(slices.DeleteFunc(slices.Clone(changes), func(d float64) bool { return d >= 0 }))
				run.Between(kind.name+": flows whose mean delay falls, at 88 %", "about 10 %",
					float64(down)/float64(len(changes)), 0.10, 0.10, 0.5)
			case 0.9:
				run.Between(kind.name+": capacity at 90 %", "0.007 %", share, 0.00007, 0.00007, 0.5)
			}
		}
		run.Between(kind.name+": most of the capacity that references take", "about 0.1 %", taken, 0.001, 0.001, 0.5)
	}
}

// changes returns how the flows' mean delays differ from those of another
// passage.
func (p *passage) changes(since *passage) []float64 {
	was := map[hashing.Flow]float64{}
	for i := range since.flows {
		was[since.flows[i].key] = since.flows[i].mean()
	}
	var changes []float64
	for i := range p.flows {
		if before, ok := was[p.flows[i].key]; ok {
			changes = append(changes, p.flows[i].mean()-before)
		}
	}
	return changes
}

// signed is a time in ns with its sign.
func signed(ns float64) string {
	if ns < 0 {
		return "−" + duration(-ns)
	}
	return "+" + duration(ns)
}

func signedPercent(x float64) string {
	return fmt.Sprintf("%s%s", map[bool]string{true: "−", false: "+"}[x < 0], percent(math.Abs(x)))
}

var underLoss = experiment.Experiment{
	Name: "rli-loss", Title: "Where packets are lost: references, and RED against drop-tail (sections IV-A, V-A and V-D)",
	Claim: "At 90 % utilisation, where 0.67 % of the packets are lost without references, 0.82 % are with one in 10 packets, 22 % more; " +
		"with adaptive injection loss differs by at most 0.001 % of the packets. RED and drop-tail make little difference to RLI's errors.",
	Weight: 8, Quick: 0.6, Measure: measureUnderLoss,
}

// paperLoss is how many packets the paper loses without references, and how
// many more, as a fraction of those, with one in 10.
const (
	paperLoss = 0.0067
	paperRise = 0.22
)

// disciplines says who may join the queue.
var disciplines = []struct {
	name string
	link queue.LinkConfig
}{
	{"RED", queue.RLIConfig},
	{"drop-tail", queue.LinkConfig{Rate: rate, Queue: queue.QueueConfig{Packets: queue.RLIConfig.Queue.Packets}}},
}

// injections says how references go out, the first being not at all.
var injections = []struct {
	name     string
	injector rli.InjectorConfig
}{{"none", rli.InjectorConfig{}}, {"adaptive", adaptive}, {"1 in 10", everyNth(10)}}

func measureUnderLoss(run *experiment.Run) {
	packets := run.Pick(60_000, 1_000_000)
	run.Config("packets", packets, "disciplines", disciplines, "paper's loss", paperLoss)
	run.Notef("Each kind of traffic is offered at the load at which RED loses %s of it without references, found by halving: the paper's "+
		"traces do so at 90 %%, ours later, as they are less bursty or shorter. The same packets are sent with references and without.",
		percent(paperLoss))
	table := run.Table("", "Loss, and median error of flows' means", "traffic", "offered", "queue", "references", "references per packet",
		"loss", "more than without", "mean delay", "RLI", "busy-aware")
	for _, kind := range experiment.Each(run, drawn) {
		at, _ := losingLoad(run, kind, packets)
		medians := map[string]float64{}
		for _, d := range experiment.Each(run, disciplines) {
			var without *passage
			for _, i := range experiment.Each(run, injections) {
				p := simulate(run, setting{kind: kind, utilisation: at, packets: packets, link: d.link, injector: i.injector})
				row := []string{kind.name, percent(at), d.name, i.name, percent(p.cost.rate()), percent(p.loss())}
				if without == nil {
					without = p
					table.Row(row, "", duration(p.all.Mean()), "", "")
					continue
				}
				row = append(row, signedPercent(p.loss()/without.loss()-1), duration(p.all.Mean()))
				for _, m := range []method{byLine, byPeriod} {
					a, _ := p.measure(m)
					medians[d.name+i.name+m.name] = median(a.mean)
					row = append(row, percent(median(a.mean)))
				}
				table.Row(row)
				judgeLoss(run, kind.name+", "+d.name, i.name, without.loss(), p.loss())
			}
		}
		judgeDisciplines(run, kind.name, medians)
	}
}

// A lossAt is the loss at an offered load without references.
type lossAt struct{ load, loss float64 }

// losingLoad returns the load at which the paper's fraction of the packets is
// lost, and the losses at the loads that were tried.
func losingLoad(run *experiment.Run, kind kind, packets int) (float64, []lossAt) {
	low, high := 0.7, 1.5
	var tried []lossAt
	for range run.Times(8) {
		middle := (low + high) / 2
		loss := simulate(run, setting{kind: kind, utilisation: middle, packets: packets}).loss()
		tried = append(tried, lossAt{middle, loss})
		if loss < paperLoss {
			low = middle
		} else {
			high = middle
		}
	}
	return high, tried
}

func judgeLoss(run *experiment.Run, where, injection string, without, with float64) {
	text := fmt.Sprintf("%s to %s, %s", percent(without), percent(with), signedPercent(with/without-1))
	if injection == "adaptive" {
		run.Holds(where+": additional loss with adaptive injection", "at most 0.001 % of the packets", text,
			near(with-without, math.Inf(-1), 0.00001))
		return
	}
	run.Holds(where+": loss with one reference in 10 packets", "0.67 % to 0.82 %, +22 %", text, near(with/without-1, paperRise, paperRise))
}

func judgeDisciplines(run *experiment.Run, where string, medians map[string]float64) {
	for _, i := range injections[1:] {
		red, tail := medians["RED"+i.name+byLine.name], medians["drop-tail"+i.name+byLine.name]
		run.Holds(where+", references "+i.name+": RLI's median error with RED and with drop-tail", "little difference: a factor of 1.5",
			percent(red)+" and "+percent(tail), experiment.IsBetween(red/tail, 1/1.5, 1.5, 0))
	}
}
