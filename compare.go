package hoplag

import (
	"cmp"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lds"
)

// A comparison makes reports of the cuts of two points: one for each interval
// of Config.Report, in order, numbered and timed by the second point's clock.
type comparison struct {
	config  Config
	cuts    int64 // in a report
	pairing *pairing
	routes  [2]*route
	clocks  *clock.Tracker
	samples [2][]clock.Sample

	seen func(direction int, since int64) []hashing.Flow // the flows to report

	current int64 // number of the report that is being made
	paired  int64 // the latest cut that was compared
	begun   bool  // current and paired mean something
	fresh   bool  // a session began in the present report, or settled
	settles int   // pairs until what was on its way when the session began has come
}

func newComparison(c Config) *comparison {
	k := clock.DefaultConfig
	k.SumBits = int(c.Cells.SumBits)
	tracker := must(clock.New(k)) // SumBits was validated
	return &comparison{
		config:  c,
		cuts:    int64(c.Report / c.Cut),
		pairing: newPairing(c),
		routes:  [2]*route{newRoute(c), newRoute(c)},
		clocks:  tracker,
	}
}

// begin makes the interval after that of cut number now the first report.
func (c *comparison) begin(now int64) {
	c.current, c.paired, c.begun = floorDiv(now, c.cuts)+1, now, true
}

// last is the last cut of a report.
func (c *comparison) last(report int64) int64 { return (report+1)*c.cuts - 1 }

// next returns the next report if its interval has been compared, or if now,
// a cut of the second point's clock, is so much later that it will not be.
func (c *comparison) next(now int64) (Report, bool) {
	for !c.begun || c.paired < c.last(c.current) {
		pair, ok := c.pairing.next()
		if !ok {
			break
		}
		if !c.begun {
			c.begin(pair.through - 1)
		}
		c.take(pair)
	}
	if !c.begun {
		return Report{}, false
	}
	if jump := floorDiv(now, c.cuts) - c.current; jump < -1 || jump > maxBehind {
		// The clock was stepped: there are no reports of the time between.
		c.current += jump
		return Report{}, false
	}
	switch {
	case c.paired >= c.last(c.current):
		return c.report(nil), true
	case now > c.last(c.current)+c.cuts+2:
		return c.report(ErrSilent), true
	}
	return Report{}, false
}

// maxBehind is how many reports may be missing before they are given up.
const maxBehind = 60

// settling is for how many cuts packets that were on their way when a session
// began may turn up, or seem lost where they were counted at one point only. It
// is longer than the patience of package lda.
const settling = 10

// take compares a pair.
func (c *comparison) take(p pair) {
	if p.begins {
		for _, route := range c.routes {
			route.begin()
		}
		c.clocks.Reset()
		c.fresh, c.settles = true, settling
	}
	c.settles--
	near := (p.through + 1) * int64(c.config.Cut)
	for d, route := range c.routes {
		up, down := p.tallies[first][d], p.tallies[second][d]
		if d == back {
			up, down = down, up
		}
		for _, g := range route.compare(up, down) {
			c.samples[d] = append(c.samples[d], c.sample(d, g, near))
		}
	}
	c.paired = p.through
}

// sample is what a group tells of the clocks. The near point is the second.
func (c *comparison) sample(direction int, g estimate.Group, near int64) clock.Sample {
	bits := int(c.config.Cells.SumBits)
	received := g.Sent + uint64(g.Sum)
	if direction == forth {
		return clock.Back(g.Sent, received, g.Packets, bits, near)
	}
	return clock.There(g.Sent, received, g.Packets, bits, near)
}

// report ends the present report.
func (c *comparison) report(err error) Report {
	start := c.current * int64(c.config.Report)
	r := Report{
		Number: c.current,
		Start:  time.Unix(0, start).UTC(),
		Length: c.config.Report,
		From:   c.pairing.feeds[first].name,
		To:     c.pairing.feeds[second].name,
		Begins: c.fresh,
		Err:    err,
	}
	r.Clock.Apart = c.pairing.apart()
	_, unknown := c.clocks.Add(c.samples[back], c.samples[forth])
	reading, _ := c.clocks.Between(start, start+int64(c.config.Report))
	if unknown == nil {
		r.Clock.set(reading)
	}
	readings := [2]*clock.Reading{}
	if unknown == nil {
		reverse := reading.Reverse()
		readings = [2]*clock.Reading{&reverse, &reading}
	}
	for d, into := range [2]*Delay{&r.Forth, &r.Back} {
		*into = c.routes[d].delay(readings[d], c.config.Report)
		if c.config.Flows > 0 && c.seen != nil {
			a := c.routes[d].flows
			into.Flows, into.UnknownFlows = flowDelays(a, c.seen(d, c.current*c.cuts))
			a.Reset()
			if readings[d] != nil {
				into.correctFlows(*readings[d])
			}
		}
		c.samples[d] = c.samples[d][:0]
	}
	if c.fresh {
		r.Forth.Lost, r.Forth.Extra, r.Back.Lost, r.Back.Extra = 0, 0, 0, 0
	}
	c.current++
	c.fresh = c.settles > 0
	return r
}

// A route compares the counters of one direction.
type route struct {
	total *lda.Accumulator
	flows *lds.Accumulator // nil without Config.Flows
	pairs uint64           // that were compared
	err   error            // why one of them was left out of the report

	// For the clocks: single packets, though they cross the cuts.
	levels *estimate.Levels
	cells  int
	words  [2][]uint64
	groups []estimate.Group
}

func newRoute(c Config) *route {
	cells := c.lda()
	n := 0
	for _, b := range cells.Banks {
		n += b.Rows
	}
	r := &route{
		total:  must(lda.NewAccumulator(cells)),
		levels: estimate.NewLevels(n, cells.SumBits, cells.DigestBits),
		cells:  n,
	}
	if c.Flows > 0 {
		r.flows = must(lds.NewAccumulator(c.lds()))
	}
	return r
}

// begin says that what was on its way is unknown.
func (w *route) begin() {
	w.total.Gap()
	w.levels.Reset()
	if w.flows != nil {
		w.flows.Reset()
	}
}

// compare takes what both points counted between two moments, and returns the
// groups of packets that are known to have passed both.
func (w *route) compare(up, down *tally) []estimate.Group {
	w.pairs++
	if err := w.total.Add(w.pairs, up.all, down.all); err != nil {
		w.err = err
	}
	if w.flows != nil {
		must(0, w.flows.Add(w.pairs, up.flows, down.flows))
	}
	w.groups = w.groups[:0]
	w.words[0] = up.all.AppendCells(w.words[0][:0])
	w.words[1] = down.all.AppendCells(w.words[1][:0])
	for i := range w.cells {
		s, r := w.words[0][2*i:], w.words[1][2*i:]
		if g, ok := w.levels.Cut(i, estimate.CellPair{SentSum: s[0], SentTally: s[1], ReceivedSum: r[0], ReceivedTally: r[1]}); ok {
			w.groups = append(w.groups, g)
		}
	}
	w.levels.Next()
	return w.groups
}

// delay ends a report. The clocks' difference is taken off by reading, if that
// is not nil.
func (w *route) delay(reading *clock.Reading, length time.Duration) Delay {
	result, err := w.total.Estimate()
	d := Delay{Result: result, Err: cmp.Or(w.err, err)}
	if d.Sent+d.Received == 0 {
		d.Err = ErrIdle
	}
	if d.Err == nil {
		samples := w.total.Distribution()
		for _, p := range []float64{0.5, 0.9, 0.99} {
			if q, err := samples.Quantile(p, confidence); err == nil {
				d.Quantiles = append(d.Quantiles, q)
			}
		}
		if reading != nil {
			d.correct(*reading, length)
		}
		d.MeanInterval95, d.DeviationInterval95 = d.MeanInterval(confidence), d.DeviationInterval(confidence)
	}
	w.total.Reset()
	w.err = nil
	return d
}

const confidence = 0.95
