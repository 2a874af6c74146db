package figreal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
)

var realLDA = experiment.Experiment{
	Name:   "real-lda",
	Group:  Group,
	Title:  "LDA: mean, deviation, quantiles and loss beside the exact answer",
	Claim:  "In the paper packets are from a trace and delays are drawn (section IV). What it claims of them, that the mean is as good as a random sample of the packets in usable cells, should hold of real queues too, whose delays depend on one another and on loss, since cells are chosen by a hash.",
	Weight: 3, Quick: 2,
	Run: runLDA,
}

// confidence is that of all intervals shown.
const confidence = 0.95

// hashes is how many runs with different hashes an error is the mean of.
const hashes = 20

func runLDA(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	captures, notes, err := loadAll(append(slices.Clone(sources), hardware)...)
	if err != nil {
		return experiment.Result{}, err
	}
	whole := lda.DefaultConfig
	whole.DigestBits = 16
	short := lda.Config{Banks: [lda.MaxBanks]lda.Bank{{Rows: 512, Shift: 0}, {Rows: 512, Shift: 3}}, SumBits: 40, DigestBits: 16}

	result := experiment.Result{
		Notes: append(notes,
			fmt.Sprintf("One aggregator at each point for the whole capture, %d bytes on the wire, with %d seeds; over time, one of %d bytes for each interval. Where a marker would end the receiver's interval, the first packet does that was sent after the sender's had ended.", whole.EncodedSize(), hashes, short.EncodedSize()),
			"Behind two classes of packets a marker overtakes some and is overtaken by others. Those count as lost in one interval and as too many in another, and their cells are left out; they are the packets that waited longest, so the mean of such an interval is too low. Measure each class by itself, as section V of the paper does.",
			"What is to be expected of a mean is the deviation of the delays by the root of the sample size, with the correction for a sample that is a large part of all packets.",
			"A quantile is judged by its rank: where most delays are next to nothing and some are tens of milliseconds, a value a little off in rank can be far off in time.",
		),
		Config: map[string]any{"whole": whole, "intervals": short, "hashes": hashes, "confidence": confidence},
	}
	passed := experiment.Table{
		Name: "captures", Title: "What was captured",
		Columns: []string{"capture", "seconds", "packets", "flows", "offered", "loss", "identical to one under way", "not of IP, passed over", "mean", "deviation"},
	}
	errorsTable := experiment.Table{
		Name: "errors", Title: fmt.Sprintf("Relative errors over whole captures, root mean square of %d seeds", hashes),
		Columns: []string{"capture", "packets", "loss", "exact mean", "sample", "mean", "to be expected", "deviation by eq. (5)", "deviation, count-conditioned"},
	}
	quantiles := experiment.Table{
		Name: "quantiles", Title: "Quantiles from packets alone in a cell",
		Columns: []string{"capture", "samples", "quantile", "exact", "LDA", "which is the exact quantile"},
	}
	bars := plot.Figure{
		Name: "errors", Title: "Relative error over whole captures",
		Caption: fmt.Sprintf("Root mean square over %d seeds. Deviations are from the same cells. The switch lost nothing, so its mean is exact and has no bar.", hashes),
		Y:       plot.Axis{Label: "relative error (%)", Scale: plot.Log},
	}
	mean := plot.Series{Name: "mean", Kind: plot.Bars}
	paper := plot.Series{Name: "deviation, eq. (5)", Kind: plot.Bars, Paper: true, Pair: 2}
	ours := plot.Series{Name: "deviation, count-conditioned", Kind: plot.Bars, Pair: 2}

	for i, c := range captures {
		r, err := c.measureLDA(run, whole)
		if err != nil {
			return experiment.Result{}, err
		}
		if err := run.Progress(ctx, 2*i+1, 2*len(captures)); err != nil {
			return experiment.Result{}, err
		}
		passed.Add(c.title, experiment.Number(c.seconds()), fmt.Sprint(len(c.packets)), fmt.Sprint(len(c.flows)), experiment.Number(c.offered()/1e6)+" Mb/s", experiment.Percent(c.loss()),
			fmt.Sprint(c.twins), fmt.Sprint(c.others), duration(r.truth.Mean()), duration(math.Sqrt(r.truth.PopulationVariance())))
		bars.X.Categories = append(bars.X.Categories, c.title)
		x := float64(i)
		if r.mean > 1e-9 {
			mean.Add(x, 100*r.mean)
		}
		paper.Add(x, 100*r.paper)
		ours.Add(x, 100*r.ours)
		errorsTable.Add(c.title, fmt.Sprint(len(c.packets)), experiment.Percent(c.loss()), duration(r.truth.Mean()), fmt.Sprintf("%.0f", r.sample),
			experiment.Percent(r.mean), experiment.Percent(r.expected), experiment.Percent(r.paper), experiment.Percent(r.ours))
		result.Claims = append(result.Claims, r.claims(c)...)

		if c.period > 0 {
			over, err := c.overTime(short)
			if err != nil {
				return experiment.Result{}, err
			}
			result.Figures = append(result.Figures, over.delayFigure(c), over.lossFigure(c))
			result.Claims = append(result.Claims, over.claims(c)...)
		}
		if len(r.samples) >= 50 {
			result.Figures = append(result.Figures, r.distribution(c, &quantiles))
			result.Claims = append(result.Claims, r.rankClaim(c))
		}
		if err := run.Progress(ctx, 2*i+2, 2*len(captures)); err != nil {
			return experiment.Result{}, err
		}
	}
	bars.Series = []plot.Series{mean, paper, ours}
	result.Figures = slices.Insert(result.Figures, 0, bars)
	result.Tables = []experiment.Table{passed, errorsTable, quantiles}
	return result, nil
}

// measuredLDA is what aggregators of one whole capture say. Errors are
// relative, and root mean squares over the seeds.
type measuredLDA struct {
	truth             estimate.Moments
	exact             estimate.Empirical
	mean, paper, ours float64
	expected          float64 // of the mean, by the sample size
	sample            float64
	lossWrong         int       // runs whose number of lost packets is not exact
	samples           []float64 // of the first seed
	ranked            int       // runs in which all quantiles are as near to theirs as chance allows
	farthest          estimate.Moments
}

func (c *capture) measureLDA(run *experiment.Run, config lda.Config) (*measuredLDA, error) {
	m := &measuredLDA{truth: c.truth()}
	delays := make([]float64, len(c.leaving))
	for i, number := range c.leaving {
		delays[i] = c.packets[number].delay()
	}
	m.exact = estimate.NewEmpirical(delays)
	deviation := math.Sqrt(m.truth.PopulationVariance())
	var mean, paper, ours, expected estimate.Moments
	for i := range hashes {
		config.Identity = run.SeedOf(fmt.Sprint("lda ", i))
		up, down, err := pair(lda.New, config)
		if err != nil {
			return nil, err
		}
		for i := range c.packets {
			p := &c.packets[i]
			up.Update(packetKey(config.Identity, p), p.in)
			if !p.lost {
				down.Update(packetKey(config.Identity, p), p.out)
			}
		}
		r, err := lda.Estimate(up, down)
		if err != nil {
			return nil, err
		}
		collapsed, err := lda.CollapsedVariance(up, down)
		if err != nil {
			return nil, err
		}
		square := func(of *estimate.Moments, got, truth float64) {
			e := estimate.RelativeError(got, truth)
			of.Add(e * e)
		}
		square(&mean, r.Mean, m.truth.Mean())
		square(&paper, math.Sqrt(max(0, collapsed)), deviation)
		square(&ours, r.StdDev, deviation)
		n, all := float64(r.N), float64(len(c.leaving))
		expected.Add(m.truth.PopulationVariance() / (m.truth.Mean() * m.truth.Mean()) * max(0, 1-n/all) / n)
		m.sample += n / hashes
		if r.Lost != uint64(c.lost) || r.Extra != 0 {
			m.lossWrong++
		}
		samples, err := lda.AppendSamples(nil, up, down)
		if err != nil {
			return nil, err
		}
		off := m.rank(estimate.NewEmpirical(slices.Clone(samples)))
		m.farthest.Add(off)
		if off <= estimate.RankError(len(samples), rankConfidence) {
			m.ranked++
		}
		if i == 0 {
			m.samples = samples
		}
	}
	m.mean, m.paper, m.ours, m.expected = math.Sqrt(mean.Mean()), math.Sqrt(paper.Mean()), math.Sqrt(ours.Mean()), math.Sqrt(expected.Mean())
	return m, nil
}

// pair makes the synopses of two points.
func pair[C, S any](make func(C) (S, error), c C) (up, down S, err error) {
	if up, err = make(c); err != nil {
		return up, down, err
	}
	down, err = make(c)
	return up, down, err
}

func (m *measuredLDA) claims(c *capture) []experiment.Claim {
	v := experiment.AsGood
	if m.expected > 0 {
		// Two standard errors of a root mean square.
		v = experiment.Judge(m.mean, m.expected, 2/math.Sqrt(2*hashes))
	}
	counted := experiment.AsGood
	if m.lossWrong > 0 {
		counted = experiment.Loss
	}
	return []experiment.Claim{
		{What: c.title + ": error of the mean, against that of as many random packets", Paper: experiment.Percent(m.expected), Ours: experiment.Percent(m.mean), Verdict: v},
		{What: c.title + ": error of the deviation, eq. (5) and count-conditioned", Paper: experiment.Percent(m.paper), Ours: experiment.Percent(m.ours), Verdict: experiment.Judge(m.ours, m.paper, 0.1)},
		{What: fmt.Sprintf("%s: seeds of %d for which the number of lost packets is right", c.title, hashes), Paper: "all", Ours: fmt.Sprint(hashes - m.lossWrong), Verdict: counted},
	}
}

// distribution draws the delays of the first seed's samples beside all.
func (m *measuredLDA) distribution(c *capture, t *experiment.Table) plot.Figure {
	found := estimate.NewEmpirical(slices.Clone(m.samples))
	for _, p := range []float64{0.5, 0.9, 0.99} {
		exact, _ := m.exact.Quantile(p)
		got, _ := found.Quantile(p)
		t.Add(c.title, fmt.Sprint(found.N()), fmt.Sprintf("p%.0f", 100*p), duration(exact), duration(got), fmt.Sprintf("p%.1f", 100*m.exact.CDF(got)))
	}
	const unit = 1e3
	all := make([]float64, 0, m.exact.N())
	for _, number := range c.leaving {
		all = append(all, c.packets[number].delay()/unit)
	}
	few := make([]float64, len(m.samples))
	for i, delay := range m.samples {
		few[i] = delay / unit
	}
	alone := plot.CDF("alone in a cell", few, 0)
	alone.Pair = 2
	band := plot.Series{Name: fmt.Sprintf("%.0f %% of such samples", 100*rankConfidence), Kind: plot.Band, Pair: 2}
	const pieces = 200
	off := estimate.RankError(len(few), rankConfidence)
	for i := range pieces + 1 {
		p := float64(i) / pieces
		band.AddRange(quantile(m.exact, p)/unit, p, max(0, p-off), min(1, p+off))
	}
	return plot.Figure{
		Name: "cdf-" + c.name, Title: "Distribution of delays, " + c.title,
		Caption: fmt.Sprintf("All %d packets that arrived, and the %d that were alone in their cell of an LDA, with the first seed. The band is how far chance may take that many.", len(all), len(few)),
		X:       plot.Axis{Label: "delay (µs)", Scale: plot.Log}, Y: plot.Axis{Label: "share of packets", Max: 1},
		Series: []plot.Series{band, plot.CDF("exact", all, 0), alone},
	}
}

// rankConfidence is that of the farthest rank which chance allows.
const rankConfidence = 0.99

// rank is how far the rank of any quantile of the samples is from where it
// should be.
func (m *measuredLDA) rank(found estimate.Empirical) float64 {
	worst := 0.0
	for i := 1; i < 1000; i++ {
		p := float64(i) / 1000
		q := quantile(found, p)
		// Delays are whole nanoseconds, so many packets have the same one.
		below, upTo := m.exact.CDF(math.Nextafter(q, 0)), m.exact.CDF(q)
		worst = max(worst, below-p, p-upTo)
	}
	return worst
}

func (m *measuredLDA) rankClaim(c *capture) experiment.Claim {
	v := experiment.Win
	// One run in a hundred may be off; that of twenty more than two are has a
	// chance of one in a thousand.
	if m.ranked < hashes-2 {
		v = experiment.DoesNotHold
	}
	return experiment.Claim{
		What:  fmt.Sprintf("%s: seeds of %d with all quantiles in the rank that chance allows with %.0f %% for such samples; the farthest is off by %s on average", c.title, hashes, 100*rankConfidence, experiment.Percent(m.farthest.Mean())),
		Paper: "impossible", Ours: fmt.Sprint(m.ranked), Verdict: v,
	}
}

// An interval is what an LDA says of one, beside the truth.
type interval struct {
	start  float64 // seconds
	sent   int
	exact  estimate.Moments
	result lda.Result
	err    error

	// crossed: packets sent in it came after the receiver's had ended, or
	// those of another came before.
	crossed bool
}

type intervals []interval

// overTime measures interval by interval, as a sender and a receiver would
// with a marker between them.
func (c *capture) overTime(config lda.Config) (intervals, error) {
	first := c.packets[0].in
	of := func(p *packet) int { return int((p.in - first) / c.period) }
	last := of(&c.packets[len(c.packets)-1])
	all := make(intervals, last+1)
	ups := make([]*lda.Aggregator, last+1)
	for i := range ups {
		var err error
		if ups[i], err = lda.New(config); err != nil {
			return nil, err
		}
		all[i].start = float64(i) * float64(c.period) / 1e9
	}
	down, err := lda.New(config)
	if err != nil {
		return nil, err
	}
	for i := range c.packets {
		p := &c.packets[i]
		ups[of(p)].Update(packetKey(config.Identity, p), p.in)
		all[of(p)].sent++
	}
	receiving := 0
	end := func() {
		all[receiving].result, all[receiving].err = lda.Estimate(ups[receiving], down)
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
	for i := range all {
		if err := all[i].err; err != nil && !errors.Is(err, estimate.ErrNoSamples) {
			return nil, err
		}
	}
	return all, nil
}

func (all intervals) delayFigure(c *capture) plot.Figure {
	exact := plot.Series{Name: "mean, exact", Kind: plot.Line, Pair: 1}
	mean := plot.Series{Name: "mean, LDA", Kind: plot.Markers, Pair: 1}
	deviation := plot.Series{Name: "deviation, exact", Kind: plot.Line, Pair: 2}
	got := plot.Series{Name: "deviation, LDA", Kind: plot.Markers, Pair: 2}
	for i := range all {
		w := &all[i]
		if w.exact.N() > 0 {
			exact.Add(w.start, w.exact.Mean()/1e6)
			deviation.Add(w.start, math.Sqrt(w.exact.PopulationVariance())/1e6)
		}
		if w.err == nil {
			limits := w.result.MeanInterval(confidence)
			mean.AddRange(w.start, w.result.Mean/1e6, max(0, limits.Low/1e6), limits.High/1e6)
			got.Add(w.start, w.result.StdDev/1e6)
		}
	}
	return plot.Figure{
		Name: "delay-" + c.name, Title: "Delay over time, " + c.title,
		Caption: fmt.Sprintf("One LDA for every %.0f ms. Bars: the %.0f %% interval that it gives with its mean.", float64(c.period)/1e6, 100*confidence),
		X:       plot.Axis{Label: "time (s)"}, Y: plot.Axis{Label: "delay (ms)"},
		Series: []plot.Series{exact, mean, deviation, got},
	}
}

func (all intervals) lossFigure(c *capture) plot.Figure {
	exact := plot.Series{Name: "exact", Kind: plot.Steps}
	got := plot.Series{Name: "LDA", Kind: plot.Markers}
	scale := 1e9 / float64(c.period)
	for i := range all {
		w := &all[i]
		exact.Add(w.start, float64(w.sent-int(w.exact.N()))*scale)
		got.Add(w.start, (float64(w.result.Lost)-float64(w.result.Extra))*scale)
	}
	return plot.Figure{
		Name: "loss-" + c.name, Title: "Loss over time, " + c.title,
		Caption: fmt.Sprintf("Every %.0f ms. An LDA counts a packet that crosses the end of its interval as lost in one and as too many in the other, which is less than none lost.", float64(c.period)/1e6),
		X:       plot.Axis{Label: "time (s)"}, Y: plot.Axis{Label: "packets lost a second"},
		Series: []plot.Series{exact, got},
	}
}

// claims judges the intervals' bars, and where nothing was lost the mean.
func (all intervals) claims(c *capture) []experiment.Claim {
	var claims []experiment.Claim
	var lossless, exactly uint64
	for _, crossed := range []bool{false, true} {
		var answered, held uint64
		for i := range all {
			w := &all[i]
			if w.exact.N() == 0 || w.crossed != crossed || w.err != nil {
				continue
			}
			answered++
			if w.result.MeanInterval(confidence).Contains(w.exact.Mean()) {
				held++
			}
			if !crossed && w.sent == int(w.exact.N()) {
				lossless++
				if estimate.RelativeError(w.result.Mean, w.exact.Mean()) < 1e-9 {
					exactly++
				}
			}
		}
		if answered == 0 {
			continue
		}
		v := experiment.AsGood
		if estimate.ProportionInterval(held, answered, confidence).High < confidence {
			v = experiment.DoesNotHold
		}
		kind := "no packet"
		if crossed {
			kind = "packets"
		}
		claims = append(claims, experiment.Claim{
			What:  fmt.Sprintf("%s: true means within the %.0f %% bars, of %d intervals whose ends %s crossed", c.title, 100*confidence, answered, kind),
			Paper: fmt.Sprintf("%.0f %%", 100*confidence), Ours: experiment.Percent(float64(held) / float64(answered)), Verdict: v,
		})
	}
	if lossless > 0 {
		v := experiment.AsGood
		if exactly < lossless {
			v = experiment.DoesNotHold
		}
		claims = append(claims, experiment.Claim{
			What:  fmt.Sprintf("%s: means that are exact, of %d intervals in which nothing was lost or crossed", c.title, lossless),
			Paper: "all", Ours: fmt.Sprint(exactly), Verdict: v,
		})
	}
	return claims
}

// duration prints nanoseconds in the unit that suits them.
func duration(ns float64) string {
	switch size := math.Abs(ns); {
	case size >= 1e6:
		return experiment.Number(ns/1e6) + " ms"
	case size >= 1e3:
		return experiment.Number(ns/1e3) + " µs"
	}
	return experiment.Number(ns) + " ns"
}
