package hoplag

import (
	"cmp"
	"math"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lds"
)

// A comparison makes reports from the cuts of two points: one for each
// interval of Config.Report, in order, numbered and timed by the second
// point's clock.
type comparison struct {
	config  Config
	cuts    int64 // in a report
	pairing *pairing
	routes  [2]*route
	clocks  *clock.Tracker
	samples [2][]clock.Sample

	seen func(direction int, since int64) []hashing.Flow // the flows to report

	current int64 // number of the current report
	paired  int64 // the latest cut compared
	begun   bool  // current and paired are valid
	fresh   bool  // a session began in the current report, or settled
	settles int   // pairs until packets on their way when the session began have come

	held    *Report // ended, and waiting for release
	after   int64   // pairs since its end
	reading clock.Reading

	from, to int64 // the report's pairs lie between these moments
}

func newComparison(c Config) *comparison {
	k := clock.DefaultConfig
	k.SumBits = int(c.Cells.SumBits)
	tracker := must(clock.New(k)) // SumBits was validated
	made := &comparison{
		config:  c,
		cuts:    int64(c.Report / c.Cut),
		pairing: newPairing(c),
		routes:  [2]*route{{config: c}, {config: c}},
		clocks:  tracker,
	}
	if c.Flows > 0 {
		made.routes[forth].open() // reports say which flows are unknown
		made.routes[back].open()
	}
	return made
}

// begin makes the interval after cut number now the first report.
func (c *comparison) begin(now int64) {
	c.current, c.paired, c.begun = floorDiv(now, c.cuts)+1, now, true
}

// last returns the last cut of a report.
func (c *comparison) last(report int64) int64 { return (report+1)*c.cuts - 1 }

// next returns the next report if its interval has been compared, or if now, a
// cut of the second point's clock, is so much later that it will not be.
func (c *comparison) next(now int64) (Report, bool) {
	for {
		if c.held != nil && c.after >= c.hold() {
			return c.release(), true
		}
		if c.begun && c.held == nil && c.paired >= c.last(c.current) {
			c.end(nil)
			continue
		}
		pair, ok := c.pairing.next()
		if !ok {
			break
		}
		if !c.begun {
			c.begin(pair.through - 1)
		}
		c.take(pair)
		c.pairing.clear()
		c.paired = min(c.paired, now) // in case the clock was set back
		c.after++
	}
	if !c.begun {
		return Report{}, false
	}
	if jump := floorDiv(now, c.cuts) - c.current; jump < -1 || jump > maxBehind {
		// The clock was stepped: there are no reports for the time between.
		c.current += jump
		c.paired = c.current*c.cuts - 1
	}
	late := now - c.last(c.current) - 2
	if c.held == nil && late > c.cuts {
		c.end(ErrSilent)
	}
	if c.held != nil && late > c.hold()-c.cuts {
		return c.release(), true
	}
	return Report{}, false
}

// hold returns for how many cuts a report waits for packets that were received
// in its interval and are known to have passed both points a little later.
func (c *comparison) hold() int64 { return min(2, c.cuts) }

// maxBehind is the number of missing reports after which they are given up.
const maxBehind = 60

// settling is the number of cuts after the beginning of a session in which
// packets that were on their way may still arrive, or seem lost because only
// one point counted them. It is longer than the patience of package lda.
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
	if p.begins {
		c.from = near - int64(c.config.Cut)
	}
	c.to = near
	// While nothing passes one way, the clocks are unknown.
	twoWays := true
	for d, route := range c.routes {
		twoWays = twoWays && (route.empty != nil || p.tallies[first][d] != nil || p.tallies[second][d] != nil)
	}
	for d, route := range c.routes {
		up, down := p.tallies[first][d], p.tallies[second][d]
		if d == back {
			up, down = down, up
		}
		groups := route.compare(up, down, p.through > c.last(c.current))
		for i := 0; twoWays && i < len(groups); i++ {
			c.samples[d] = append(c.samples[d], c.sample(d, groups[i], near))
		}
	}
	c.paired = p.through
}

// sample returns what a group says about the clocks. The near point is the
// second.
func (c *comparison) sample(direction int, g estimate.Group, near int64) clock.Sample {
	bits := int(c.config.Cells.SumBits)
	received := g.Sent + uint64(g.Sum)
	if direction == forth {
		return clock.Back(g.Sent, received, g.Packets, bits, near)
	}
	return clock.There(g.Sent, received, g.Packets, bits, near)
}

// end ends the current report and begins the next one. The report is held back
// until release.
func (c *comparison) end(err error) {
	start := c.current * int64(c.config.Report)
	r := &Report{
		Number: c.current,
		Start:  time.Unix(0, start).UTC(),
		Length: c.config.Report,
		From:   c.pairing.feeds[first].name,
		To:     c.pairing.feeds[second].name,
		Class:  c.config.Class,
		Begins: c.fresh,
		Err:    err,
	}
	r.Clock.Apart = c.pairing.apart()
	_, unknown := c.clocks.Add(c.samples[back], c.samples[forth])
	if unknown == nil {
		c.reading, _ = c.clocks.Between(c.from, c.to)
		r.Clock.set(c.reading)
	}
	c.from = c.to
	for d, into := range [2]*Delay{&r.Forth, &r.Back} {
		c.samples[d] = c.samples[d][:0]
		*into = c.routes[d].delay()
		if c.fresh {
			into.Lost, into.Extra = 0, 0
		}
		if c.config.Flows > 0 && c.seen != nil {
			flows := c.routes[d].flows
			into.Flows, into.UnknownFlows = flowDelays(flows, c.seen(d, c.current*c.cuts), into.StdDev)
			flows.Reset()
		}
	}
	c.held, c.after = r, 0
	c.current++
	c.fresh = c.settles > 0
}

// release returns the report that was held back. By now it is known what was
// on its way at the end of its interval.
func (c *comparison) release() Report {
	r := c.held
	c.held = nil
	for d, delay := range [2]*Delay{&r.Forth, &r.Back} {
		if delay.Err == nil {
			delay.Edge = c.routes[d].edge(delay)
		}
	}
	if r.Clock.Known {
		r.Forth.correct(c.reading.Reverse(), c.config.Report)
		r.Back.correct(c.reading, c.config.Report)
	}
	for _, d := range [2]*Delay{&r.Forth, &r.Back} {
		if d.Err == nil {
			d.MeanInterval95, d.DeviationInterval95 = d.MeanInterval(confidence), d.DeviationInterval(confidence)
		}
	}
	return *r
}

// A route compares the counters of one direction. It holds only its Config
// until something passes.
type route struct {
	config Config
	empty  *tally           // nil while nothing passed
	total  *lda.Accumulator // and the others
	flows  *lds.Accumulator // nil without Config.Flows
	pairs  uint64           // number compared
	err    error            // why one of them was left out of the report
	begins bool             // the next one is the first of a session

	start   uint32   // the cut after which the current report begins
	crossed crossing // its beginning, and so the end of the report before
	astride crossing // its end
	carried crossing // either end of the report before, as far as known when it ended
}

// A crossing is groups of packets of which some were received before a report
// begins, and some after. The report counts all of them.
type crossing struct {
	packets float64
	base    int64   // ns
	excess  float64 // of the delays, over base each
}

func (x *crossing) add(g estimate.Group) {
	if x.packets == 0 {
		x.base = g.Sum / int64(g.Packets)
	}
	x.packets += float64(g.Packets)
	x.excess += float64(g.Sum - int64(g.Packets)*x.base)
}

// plus returns both together.
func (x crossing) plus(y crossing) crossing {
	if x.packets == 0 {
		return y
	}
	x.excess += y.excess + y.packets*float64(y.base-x.base)
	x.packets += y.packets
	return x
}

// off returns by how much the delays differ from a mean, in total.
func (x *crossing) off(mean float64) float64 {
	return math.Abs(x.excess + x.packets*(float64(x.base)-mean))
}

// edge returns how far the mean may be off because packets received in one
// interval count in another: those of the groups that cross the ends of the
// report that ended last. Their delays are known, but not which of them were
// received on which side.
func (w *route) edge(d *Delay) float64 {
	const errors = 2 // standard errors
	if d.Received == 0 {
		return 0
	}
	chance := errors * d.StdDev * math.Sqrt(w.carried.packets+w.crossed.packets)
	return (w.carried.off(d.Mean) + w.crossed.off(d.Mean) + chance) / float64(d.Received)
}

// open makes room for what passes.
func (w *route) open() {
	w.empty = newTally(&w.config)
	w.total = must(lda.NewAccumulator(w.config.lda()))
	if w.config.Flows > 0 {
		w.flows = must(lds.NewAccumulator(w.config.lds()))
	}
}

// begin records that what was on its way is unknown.
func (w *route) begin() {
	w.begins = true
	if w.empty == nil {
		return
	}
	w.total.Gap()
	w.start, w.crossed, w.astride = uint32(w.pairs), crossing{}, crossing{}
	if w.flows != nil {
		w.flows.Reset()
		w.flows.Gap()
	}
}

// compare takes what both points counted between two moments, nil if nothing.
// It returns the groups of packets that are known to have passed both points.
// If the time between straddles the end of the report, they may belong to the
// next one.
func (w *route) compare(up, down *tally, straddles bool) []estimate.Group {
	begins := w.begins
	w.begins = false
	if w.empty == nil {
		if up == nil && down == nil {
			return nil
		}
		w.open()
		if begins {
			w.total.Gap()
		}
	}
	up, down = cmp.Or(up, w.empty), cmp.Or(down, w.empty)
	w.pairs++
	if err := w.total.Add(w.pairs, up.all, down.all); err != nil {
		w.err = err
	}
	if w.flows != nil {
		must(0, w.flows.Add(w.pairs, up.flows, down.flows))
	}
	groups := w.total.Groups()
	for _, g := range groups {
		if g.From < w.start {
			w.crossed.add(g)
		}
		if straddles {
			w.astride.add(g)
		}
	}
	return groups
}

// delay ends a report.
func (w *route) delay() Delay {
	if w.empty == nil {
		return Delay{Err: ErrIdle}
	}
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
	}
	w.total.Reset()
	w.err = nil
	w.carried, w.crossed, w.astride = w.crossed.plus(w.astride), w.astride, crossing{}
	w.start = uint32(w.pairs)
	return d
}

const confidence = 0.95
