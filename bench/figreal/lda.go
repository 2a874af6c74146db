package figreal

import (
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/paper"
)

var realLDA = experiment.Experiment{
	Name: "real-lda", Title: "LDA: mean, deviation and loss beside the exact answer",
	Claim: "In the paper packets are from a trace and delays are drawn (section IV). What it claims of them, that the mean is as good as " +
		"a random sample of the packets in usable cells, should hold of real queues too, whose delays depend on one another and on loss, " +
		"since cells are chosen by a hash.",
	Weight: 3, Quick: 2, Measure: measureLDA,
}

// confidence is that of all intervals shown.
const confidence = 0.95

// hashes is the number of runs with different hashes over which an error is
// averaged.
const hashes = 20

// Sizes of aggregators: for a whole capture, and for an interval.
var (
	wholeLDA = func() lda.Config { c := lda.DefaultConfig; c.DigestBits = 16; return c }()
	shortLDA = lda.Config{Banks: [lda.MaxBanks]lda.Bank{{Rows: 512, Shift: 0}, {Rows: 512, Shift: 3}}, SumBits: 40, DigestBits: 16}
)

func measureLDA(run *experiment.Run) {
	captures := loadAll(run, append(slices.Clone(sources), hardware)...)
	run.Notef("One aggregator at each point for the whole capture, %d bytes on the wire, with %d seeds; over time, one of %d bytes for "+
		"each interval. Where a marker would end the receiver's interval, the first packet does that was sent after the sender's had ended.",
		wholeLDA.EncodedSize(), hashes, shortLDA.EncodedSize())
	run.Note("Behind two classes of packets a marker overtakes some and is overtaken by others. Those count as lost in one interval and as "+
		"too many in another, and their cells are left out; they are the packets that waited longest, so the mean of such an interval is too "+
		"low. Measure each class by itself, as section V of the paper does.",
		"The error to expect of a mean is the deviation of the delays over the root of the sample size, with the correction for a sample "+
			"that is a large part of all packets.")
	run.Config("whole", wholeLDA, "intervals", shortLDA, "hashes", hashes, "confidence", confidence)
	table := run.Table("captures", "What was captured", "capture", "seconds", "packets", "flows", "offered", "loss",
		"identical to one under way", "not of IP, passed over", "mean", "deviation")
	errors := run.Table("errors", fmt.Sprintf("Relative errors over whole captures, root mean square of %d seeds", hashes),
		"capture", "packets", "loss", "exact mean", "sample", "mean", "to be expected", "deviation by eq. (5)", "deviation, count-conditioned")
	for _, c := range experiment.Each(run, captures) {
		r := c.measureLDA(run, wholeLDA)
		table.Row(c.title, number(c.seconds()), len(c.packets), len(c.flows), number(c.bits/c.seconds()/1e6)+" Mb/s", percent(c.loss()),
			c.twins, c.others, duration(r.truth.Mean()), duration(math.Sqrt(r.truth.PopulationVariance())))
		errors.Row(c.title, len(c.packets), percent(c.loss()), duration(r.truth.Mean()), fmt.Sprintf("%.0f", r.sample), percent(r.mean),
			percent(r.expected), percent(r.paper), percent(r.ours))
		r.judge(run, c)
		if c.period > 0 {
			over := c.overTime(shortLDA)
			over.draw(run, c)
			over.judge(run, c)
		}
	}
}

// aggregate shows a capture to aggregators at both points.
func (c *capture) aggregate(config lda.Config) (up, down *lda.Aggregator) {
	up, down = experiment.Try(lda.New(config)), experiment.Try(lda.New(config))
	for i := range c.packets {
		p := &c.packets[i]
		id := packetKey(config.Identity, p)
		if up.Update(id, p.in); !p.lost {
			down.Update(id, p.out)
		}
	}
	return up, down
}

// measuredLDA is what aggregators of one whole capture say. Errors are
// relative, and root mean squares over the seeds.
type measuredLDA struct {
	truth             estimate.Moments
	mean, paper, ours float64
	expected          float64 // of the mean, by the sample size
	sample            float64
	lossWrong         int // runs in which the number of lost packets is not exact
}

func (c *capture) measureLDA(run *experiment.Run, config lda.Config) *measuredLDA {
	m := &measuredLDA{truth: c.truth()}
	deviation := math.Sqrt(m.truth.PopulationVariance())
	var mean, fifth, ours, expected estimate.Moments
	for i := range hashes {
		config.Identity = run.SeedOf(fmt.Sprint("lda ", i))
		up, down := c.aggregate(config)
		r := experiment.Try(lda.Estimate(up, down))
		collapsed := experiment.Try(paper.CollapsedVariance(up, down))
		square := func(of *estimate.Moments, got, truth float64) {
			e := estimate.RelativeError(got, truth)
			of.Add(e * e)
		}
		square(&mean, r.Mean, m.truth.Mean())
		square(&fifth, math.Sqrt(max(0, collapsed)), deviation)
		square(&ours, r.StdDev, deviation)
		n, all := float64(r.N), float64(len(c.leaving))
		expected.Add(m.truth.PopulationVariance() / (m.truth.Mean() * m.truth.Mean()) * max(0, 1-n/all) / n)
		m.sample += n / hashes
		if r.Lost != uint64(c.lost) || r.Extra != 0 {
			m.lossWrong++
		}
	}
	m.mean, m.paper, m.ours, m.expected = math.Sqrt(mean.Mean()), math.Sqrt(fifth.Mean()), math.Sqrt(ours.Mean()), math.Sqrt(expected.Mean())
	return m
}

func (m *measuredLDA) judge(run *experiment.Run, c *capture) {
	v := experiment.AsGood
	if m.expected > 0 {
		// Two standard errors of a root mean square.
		v = experiment.Judge(m.mean, m.expected, 2/math.Sqrt(2*hashes))
	}
	run.Claim(c.title+": error of the mean, against that of as many random packets", percent(m.expected), percent(m.mean), v)
	run.Beats(c.title+": error of the deviation, eq. (5) and count-conditioned", m.ours, m.paper, 0.1)
	run.Meets(fmt.Sprintf("%s: seeds of %d for which the number of lost packets is right", c.title, hashes), "all",
		fmt.Sprint(hashes-m.lossWrong), m.lossWrong == 0)
}

// An interval is what an LDA says about one, with the truth.
type interval struct {
	middle   float64 // seconds
	sent     int
	exact    estimate.Moments
	result   lda.Result
	answered bool // whether it has a result

	// crossed: packets sent in it came after the receiver's interval had
	// ended, or those of another came before.
	crossed bool
}

type intervals []interval

// overTime measures interval by interval, as a sender and a receiver would
// with a marker between them.
func (c *capture) overTime(config lda.Config) intervals {
	first := c.packets[0].in
	of := func(p *packet) int { return int((p.in - first) / c.period) }
	last := of(&c.packets[len(c.packets)-1])
	all := make(intervals, last+1)
	ups := make([]*lda.Aggregator, last+1)
	for i := range ups {
		ups[i] = experiment.Try(lda.New(config))
		all[i].middle = (float64(i) + 0.5) * float64(c.period) / 1e9
	}
	down := experiment.Try(lda.New(config))
	for i := range c.packets {
		p := &c.packets[i]
		ups[of(p)].Update(packetKey(config.Identity, p), p.in)
		all[of(p)].sent++
	}
	receiving := 0
	end := func() {
		all[receiving].result, all[receiving].answered = experiment.Answer(lda.Estimate(ups[receiving], down))
		down.Reset()
		receiving++
	}
	for _, number := range c.leaving {
		p := &c.packets[number]
		for receiving < of(p) { // the marker would have come by now
			end()
		}
		down.Update(packetKey(config.Identity, p), p.out)
		all[of(p)].exact.Add(p.delay())
		if of(p) != receiving {
			all[of(p)].crossed, all[receiving].crossed = true, true
		}
	}
	for receiving <= last {
		end()
	}
	return all
}

// draw shows the delay over time.
func (all intervals) draw(run *experiment.Run, c *capture) {
	f := run.Draw("delay-"+c.name, "Delay over time, "+c.title,
		fmt.Sprintf("One LDA for every %.0f ms. Bars: the %.0f %% interval of the mean for delays whose tails are light, as a queue "+
			"of bounded length has. Of delays without bound, MeanInterval's is wider where packets were lost, for those that no cell saw.",
			float64(c.period)/1e6, 100*confidence), plot.LinearAxis("time (s)"), plot.LinearAxis("delay (ms)"))
	exact := f.Line(plot.Series{Name: "mean, exact", Kind: plot.Line, Pair: 1})
	mean := f.Line(plot.Series{Name: "mean, LDA", Kind: plot.Markers, Pair: 1})
	deviation := f.Line(plot.Series{Name: "deviation, exact", Kind: plot.Line, Pair: 2})
	got := f.Line(plot.Series{Name: "deviation, LDA", Kind: plot.Markers, Pair: 2})
	for i := range all {
		w := &all[i]
		if w.exact.N() > 0 {
			exact.Add(w.middle, w.exact.Mean()/1e6)
			deviation.Add(w.middle, math.Sqrt(w.exact.PopulationVariance())/1e6)
		}
		if w.answered {
			limits := w.result.CentralLimitInterval(confidence)
			mean.AddRange(w.middle, w.result.Mean/1e6, max(0, limits.Low/1e6), limits.High/1e6)
			got.Add(w.middle, w.result.StdDev/1e6)
		}
	}
}

// judge judges the intervals' bars and, if nothing was lost, the mean.
func (all intervals) judge(run *experiment.Run, c *capture) {
	var exactly perflow.Coverage // where nothing was lost or crossed
	for _, crossed := range []bool{false, true} {
		var held, light perflow.Coverage
		for i := range all {
			w := &all[i]
			if w.exact.N() == 0 || w.crossed != crossed || !w.answered {
				continue
			}
			held.Count(w.result.MeanInterval(confidence).Contains(w.exact.Mean()))
			light.Count(w.result.CentralLimitInterval(confidence).Contains(w.exact.Mean()))
			if !crossed && w.sent == int(w.exact.N()) {
				exactly.Count(estimate.RelativeError(w.result.Mean, w.exact.Mean()) < 1e-9)
			}
		}
		if held.All == 0 {
			continue
		}
		kind := map[bool]string{false: "no packet", true: "packets"}[crossed]
		for i, of := range []*perflow.Coverage{&held, &light} {
			run.Claim(fmt.Sprintf("%s: true means within the %.0f %% %s, of %d whose ends %s crossed", c.title, 100*confidence,
				[]string{"intervals", "intervals for light tails"}[i], of.All, kind), fmt.Sprintf("at least %.0f %%", 100*confidence),
				percent(of.Share()), experiment.Covers(of.Held, of.All, confidence, confidence))
		}
	}
	if exactly.All > 0 {
		run.Holds(fmt.Sprintf("%s: means that are exact, of %d intervals in which nothing was lost or crossed", c.title, exactly.All),
			"all", fmt.Sprint(exactly.Held), exactly.Held == exactly.All)
	}
}
