package hoplag

import (
	"errors"
	"fmt"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/hashing"
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
	fresh   bool  // a session began in the present report
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

// take compares a pair.
func (c *comparison) take(p pair) {
	if p.begins {
		for _, route := range c.routes {
			route.begin()
		}
		c.clocks.Reset()
		c.fresh = true
	}
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
	for d, into := range [2]*Delay{&r.Forth, &r.Back} {
		*into = c.routes[d].delay()
		if c.config.Flows > 0 && c.seen != nil {
			a := c.routes[d].flows
			into.Flows, into.UnknownFlows = flowDelays(a, c.seen(d, c.current*c.cuts))
			a.Reset()
		}
		c.samples[d] = c.samples[d][:0]
	}
	if unknown == nil {
		r.Forth.correct(reading.Reverse(), c.config.Report)
		r.Back.correct(reading, c.config.Report)
	}
	c.current++
	c.fresh = false
	return r
}

// A route compares the counters of one direction.
type route struct {
	levels   *estimate.Levels
	patience uint32
	words    [2][]uint64
	groups   []estimate.Group

	sent, received uint64
	lost           int64   // that were reported
	unknown        []int32 // by cell: outstanding after the first cut, on their way, or counted at one point only
	cells          estimate.Cells
	singles        []float64
	flows          *lds.Accumulator // nil without Config.Flows
	pairs          uint64
}

// patience is how long a packet is awaited before it is taken for lost.
const patience = 10 * time.Second

func newRoute(c Config) *route {
	cells := c.lda()
	n := 0
	for _, b := range cells.Banks {
		n += b.Rows
	}
	r := &route{
		levels:   estimate.NewLevels(n, cells.SumBits, cells.DigestBits),
		patience: uint32(max(1, patience/c.Cut)),
		unknown:  make([]int32, n),
	}
	if c.Flows > 0 {
		r.flows = must(lds.NewAccumulator(c.lds()))
	}
	return r
}

// begin forgets what was on its way.
func (w *route) begin() {
	w.levels.Reset()
	w.lost = 0
	clear(w.unknown)
	if w.flows != nil {
		w.flows.Reset()
	}
}

// compare takes what both points counted between two moments, and returns the
// groups of packets that passed both.
func (w *route) compare(up, down *tally) []estimate.Group {
	w.groups = w.groups[:0]
	w.words[0] = up.all.AppendCells(w.words[0][:0])
	w.words[1] = down.all.AppendCells(w.words[1][:0])
	w.sent += up.packets()
	w.received += down.packets()
	s, r := w.words[0], w.words[1]
	for i := range w.unknown {
		g, ok := w.levels.Cut(i, estimate.CellPair{
			SentSum: s[2*i], SentTally: s[2*i+1],
			ReceivedSum: r[2*i], ReceivedTally: r[2*i+1],
		})
		if ok {
			w.groups = append(w.groups, g)
			w.cells.Add(float64(g.Sum), uint64(g.Packets))
			if g.Packets == 1 {
				w.singles = append(w.singles, float64(g.Sum))
			}
		}
	}
	w.levels.Next()
	if w.pairs++; w.flows != nil {
		must(0, w.flows.Add(w.pairs, up.flows, down.flows))
	}
	switch cuts := w.levels.Cuts(); cuts {
	case 1:
		for i := range w.unknown {
			w.unknown[i] = w.levels.Outstanding(i)
		}
	case w.patience + 1:
		for i := range w.unknown {
			w.unknown[i] = w.atBeginning(i)
		}
	}
	return w.groups
}

// atBeginning is how many packets of a cell that look lost passed about when
// the comparison began: as many as may be. They were counted at one point only.
func (w *route) atBeginning(i int) int32 {
	lost := w.levels.Lost(i, w.patience)
	if u := w.unknown[i]; u > 0 {
		return min(max(lost, 0), u)
	} else {
		return max(min(lost, 0), u)
	}
}

// delay ends a report.
func (w *route) delay() Delay {
	d := Delay{Sent: w.sent, Received: w.received}
	var lost int64
	for i := range w.unknown {
		lost += int64(w.levels.Lost(i, w.patience) - w.atBeginning(i))
	}
	if lost > w.lost {
		d.Lost = uint64(lost - w.lost)
	} else {
		d.Extra = uint64(w.lost - lost)
	}
	w.lost = lost
	delay, err := w.cells.Delay()
	d.Delay = delay
	switch {
	case w.sent+w.received == 0:
		d.Err = ErrIdle
	case errors.Is(err, estimate.ErrNoSamples):
		d.Err = fmt.Errorf("%w: %d packets passed the first point and %d the second, none of them is known to have passed both", err, w.sent, w.received)
	default:
		d.MeanInterval95 = w.cells.MeanInterval(0.95)
		d.DeviationInterval95 = w.cells.DeviationInterval(0.95)
		e := estimate.NewEmpirical(w.singles)
		for _, q := range []float64{0.5, 0.9, 0.99} {
			if v, err := e.Quantile(q); err == nil {
				d.Quantiles = append(d.Quantiles, Quantile{Share: q, Delay: v, Interval: e.QuantileInterval(q, 0.95), N: len(w.singles)})
			}
		}
	}
	w.sent, w.received = 0, 0
	w.cells = estimate.Cells{}
	w.singles = w.singles[:0]
	return d
}
