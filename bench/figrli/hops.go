package figrli

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/queue/trace"
	"github.com/hoplag/hoplag/rli"
)

var beyondLink = experiment.Experiment{
	Name: "ours-rli-hops", Title: "What is not a link: shapers, jitter, two queues, classes, and senders that heed loss",
	Claim: "Where a receiver that is told the rate of a link does not sit behind one, it notices, and its errors are at most 1.05 of " +
		"those of straight lines; and its intervals hold flows' means as often as they say, or not at all where it cannot tell.",
	Weight: 5, Quick: 0.5, Measure: measureBeyondLink,
}

// A place is what packets pass between injector and receiver.
type place struct {
	name string
	kind kind
	load float64
	link queue.LinkConfig
	hop  func(run *experiment.Run) queue.Hop
	high float64 // load of packets of a higher class
	tell telling // about them
}

// A telling is how packets of another class are reported to a receiver.
type telling int

const (
	byPass   telling = iota
	byUpdate         // as one more flow: the mistake that the documentation warns about
	notAtAll
)

var (
	whole  = queue.LinkConfig{Rate: rate}
	marks  = queue.QueueConfig{RED: queue.REDConfig{Min: 100, Max: 500, Weight: 0.02, Probability: 0.1, Typical: 1500, Mark: true}}
	places = []place{
		{name: "link", kind: heavyTailed, load: 0.55},
		{name: "shaper, bucket of 20 kB", kind: heavyTailed, load: 0.55, link: queue.LinkConfig{Rate: rate, Burst: 20_000}},
		{name: "link, then jitter of 1 µs", kind: heavyTailed, load: 0.55, hop: jittery(queue.JitterConfig{Mean: 1000})},
		{name: "link, then jitter of 1 µs, overtaking", kind: heavyTailed, load: 0.55,
			hop: jittery(queue.JitterConfig{Mean: 1000, Reorder: true})},
		{name: "two links, cross traffic at the second", kind: heavyTailed, load: 0.3, hop: twoLinks},
		{name: "low class, the high one told by Pass", kind: heavyTailed, load: 0.3, hop: classes, high: 0.4},
		{name: "low class, the high one not told", kind: heavyTailed, load: 0.3, hop: classes, high: 0.4, tell: notAtAll},
		{name: "low class, the high one told by Update", kind: heavyTailed, load: 0.3, hop: classes, high: 0.4, tell: byUpdate},
		{name: "link, senders that heed loss", kind: closedLoop, load: 0.55},
		{name: "drop-tail of 300, as many as it takes", kind: closedLoop, load: 1.5,
			link: queue.LinkConfig{Rate: rate, Queue: queue.QueueConfig{Packets: 300}}},
		{name: "RED that marks (ECN), as many as it takes", kind: closedLoop, load: 1.5, link: queue.LinkConfig{Rate: rate, Queue: marks}},
	}
)

func jittery(c queue.JitterConfig) func(*experiment.Run) queue.Hop {
	return func(run *experiment.Run) queue.Hop {
		c.Seed = run.SeedOf("jitter")
		return experiment.Try(queue.NewChain(experiment.Try(queue.NewFIFO(whole)), experiment.Try(queue.NewJitter(c))))
	}
}

func twoLinks(run *experiment.Run) queue.Hop {
	chain := experiment.Try(queue.NewChain(experiment.Try(queue.NewFIFO(whole)), experiment.Try(queue.NewFIFO(whole))))
	experiment.Check(chain.Join(1, poisson.source(run, 0.3)))
	return chain
}

func classes(*experiment.Run) queue.Hop {
	return experiment.Try(queue.NewScheduler(queue.SchedulerConfig{Rate: rate}))
}

// closedLoop is senders whose transfers of 50 packets, of about five round
// trips, produce a given load if nothing holds them up.
var closedLoop = kind{name: "senders that heed loss", slug: "closed", make: func(load trace.Load, seed uint64) (queue.Source, error) {
	c := queue.ClosedConfig{Senders: 100, Bytes: 1500, Return: 200_000, Gap: 1200, Window: 64, Transfer: 50, Seed: seed}
	each := c.Transfer * float64(c.Bytes) * 8e9 / (load.Utilisation * float64(load.Rate)) // ns, with a single sender
	c.Pause = max(float64(c.Senders)*each-5*float64(c.Return), 0)
	return queue.NewClosed(c)
}}

func measureBeyondLink(run *experiment.Run) {
	packets := run.Pick(60_000, 500_000)
	run.Config("packets", packets, "injector", everyNth(50), "confidence", 0.95)
	run.Note("The rate is told everywhere. Estimates as such are those within busy periods and of packets that found the link idle; " +
		"all others are by straight lines. Errors of flows are averages over packets, as a share of the mean of all: behind a shaper most " +
		"flows never wait. A receiver that tells of another class's packets by Update has references of its own class only: the error and " +
		"the interval are those of the other class's mean.")
	table := run.Table("", "Packets estimated as such, and errors of straight lines and of busy-aware", "place", "loss", "mean delay",
		"estimated as such", "flows: RLI", "busy-aware", "mean of all: RLI", "busy-aware", "flows' intervals that hold the mean")
	for _, at := range experiment.Each(run, places) {
		p := at.pass(run, packets)
		line, busy := at.receive(p, byLine), at.receive(p, byPeriod)
		theirs, lineOff := p.overall(line)
		ours, busyOff := p.overall(busy)
		k := busy.Counts()
		held, _ := p.covered(busy, 0.95)
		coverage := held.Share()
		table.Row(at.name, percent(p.loss()), duration(p.all.Mean()), percent(float64(k.Idle+k.Busy)/float64(k.Packets)), percent(theirs),
			percent(ours), signedPercent(lineOff), signedPercent(busyOff), percent(coverage))
		if at.tell == byUpdate {
			of := p.others(busy)
			run.Holds(at.name+": the high class's mean is refused, held by its interval at 95 %, or its packets counted as not the injector's",
				"yes", of.text, of.right)
			continue
		}
		run.Within(at.name+": busy-aware's error of flows' means", percent(theirs)+" (RLI, same references)", ours, theirs, 0.05)
		run.Keeps(at.name+": intervals that hold flows' means", "at least 95 %", percent(coverage), coverage >= 0.95)
	}
}

// pass sends packets through the place.
func (at *place) pass(run *experiment.Run, packets int) *passage {
	s := setting{kind: at.kind, utilisation: at.load, packets: packets, injector: everyNth(50), link: at.link}
	if at.hop != nil {
		s.hop = at.hop(run)
	}
	if at.high > 0 {
		load := trace.Load{Rate: rate, Utilisation: at.high}
		s.cross = cross{experiment.Try(poisson.make(load, run.SeedOf("high class"))), queue.High}
	}
	return simulate(run, s)
}

// otherFlow is the flow as which packets of another class are reported.
const otherFlow = hashing.Flow(0x0ddc1a55)

// receive returns the result of a receiver on the departures.
func (at *place) receive(p *passage, m method) *rli.Receiver {
	q := *p
	switch at.tell {
	case notAtAll:
		q.events = nil
		for _, d := range p.events {
			if d.stamp >= 0 {
				q.events = append(q.events, d)
			}
		}
	case byUpdate:
		q.other = otherFlow
	}
	return q.receive(q.config(m), nil)
}

// overall returns how far flows' means are off, on average over packets, and
// how far the mean of all is, with its sign; both as fractions of that mean.
func (p *passage) overall(r *rli.Receiver) (flows, all float64) {
	off, sum, truth := 0.0, 0.0, 0.0
	for i := range p.flows {
		if got, err := r.Estimate(p.flows[i].key); err == nil {
			n, mean := float64(got.N), p.flows[i].mean()
			off += n * math.Abs(got.Mean-mean)
			sum += n * got.Mean
			truth += n * mean
		}
	}
	return off / truth, sum/truth - 1
}

// An otherMean is what is said about another class's packets.
type otherMean struct {
	text  string
	right bool
}

// others returns what is said about the packets reported as another flow.
func (p *passage) others(r *rli.Receiver) otherMean {
	sum, n := 0.0, 0.0
	for _, d := range p.events {
		if d.stamp < 0 {
			sum += float64(d.delay)
			n++
		}
	}
	got, err := r.Estimate(otherFlow)
	if k := r.Counts(); float64(k.Overtaken) > n/2 {
		return otherMean{fmt.Sprintf("%s for %s; counted: %d of %.0f", duration(got.Mean), duration(sum/n), k.Overtaken, n), true}
	}
	if err != nil {
		return otherMean{"refused", true}
	}
	in := got.MeanInterval(0.95)
	text := duration(got.Mean) + " for " + duration(sum/n)
	if math.IsInf(in.High, 1) {
		return otherMean{text + ", without bounds", true}
	}
	return otherMean{text + ", up to " + duration(in.High), in.Contains(sum / n)}
}
