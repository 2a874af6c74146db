package hoplag

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hoplag/hoplag/estimate"
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
	meeting *meeting
	ways    [2]*way
	clocks  clocks

	seen func(direction int, since int64) []hashing.Flow // the flows to report

	current int64 // number of the current report
	paired  int64 // the latest cut compared
	covered int64 // the latest cut in a report
	begun   bool  // these are valid
	fresh   bool  // a session began in the current report, or settled
	settles int   // pairs until packets on their way when the session began have come
	step    error // that a clock was set in the current report
}

func newComparison(c Config) *comparison {
	made := &comparison{config: c, cuts: int64(c.Report / c.Cut), meeting: newMeeting(c), clocks: clocks{config: c}}
	made.ways = [2]*way{{config: &made.config}, {config: &made.config}}
	return made
}

// begin makes the interval after cut number now the first report.
func (c *comparison) begin(now int64) {
	c.current, c.paired, c.covered, c.begun = floorDiv(now, c.cuts)+1, now, now, true
}

// last returns the last cut of a report.
func (c *comparison) last(report int64) int64 { return (report+1)*c.cuts - 1 }

// next returns the next report if its interval has been compared, or if cut, one
// of the second point, is so much later that it will not be. now is a time in ns.
func (c *comparison) next(cut, now int64) (Report, bool) {
	for {
		if c.begun && c.paired >= c.last(c.current) {
			return c.end(nil), true
		}
		pair, ok := c.meeting.next(now)
		if !ok {
			break
		}
		if !c.begun {
			c.begin(pair.after)
		}
		c.take(pair)
		c.paired = min(c.paired, cut) // in case the clock was set back
	}
	if !c.begun {
		return Report{}, false
	}
	if jump := floorDiv(cut, c.cuts) - c.current; jump < -1 || jump > maxBehind {
		// The clock was stepped: there are no reports for the time between.
		c.current += jump
		c.paired = c.current*c.cuts - 1
		c.covered = c.paired
	}
	if cut-c.last(c.current)-2 > c.cuts {
		return c.end(ErrSilent), true
	}
	return Report{}, false
}

// maxBehind is the number of missing reports after which they are given up.
const maxBehind = 60

// settling is the number of cuts after the beginning of a session in which
// packets that were on their way may still arrive, or seem lost because only
// one point counted them.
const settling = 10

// take compares a pair.
func (c *comparison) take(p pair) {
	if p.begins {
		for _, w := range c.ways {
			w.begin()
		}
		c.clocks.reset()
		c.fresh, c.settles = true, settling
		if c.covered > p.after || c.paired != p.after {
			c.covered = min(c.covered, p.after)
		}
	}
	if p.step != 0 {
		c.step = fmt.Errorf("%w: that of %s by %v", ErrStep, name(p.whose), time.Duration(p.step))
	}
	c.settles--
	for d, w := range c.ways {
		up, down := p.tallies[first][d], p.tallies[second][d]
		if d == back {
			up, down = down, up
		}
		w.compare(up, down, p.through, func(sent, received uint64) { c.clocks.sample(d, sent, received, p.through) })
	}
	c.paired = p.through
}

// end ends the current report and begins the next one.
func (c *comparison) end(err error) Report {
	r := Report{
		Number: c.current, Length: c.config.Report,
		From: c.meeting.ends[first].name, To: c.meeting.ends[second].name, Class: c.config.Class,
		Begins: c.fresh, Err: cmp.Or(err, c.step),
	}
	start := c.current * int64(c.config.Report)
	if c.paired > c.covered {
		r.Length = time.Duration(c.paired-c.covered) * c.config.Cut
		start = (c.covered + 1) * int64(c.config.Cut)
		r.Number = max(c.current, floorDiv(c.paired, c.cuts))
		if c.paired < c.last(c.current) {
			r.Number = c.current
		}
		c.covered = c.paired
	}
	r.Start = time.Unix(0, start).UTC()
	for d, into := range [2]*Delay{&r.Forth, &r.Back} {
		*into = c.ways[d].delay(c.fresh)
		if c.config.Flows > 0 && c.seen != nil && c.ways[d].flows != nil {
			into.Flows, into.UnknownFlows = c.ways[d].flowDelays(c.seen(d, start/int64(c.config.Cut)), into.StdDev)
		}
	}
	if errors.Is(r.Err, ErrStep) {
		for _, d := range [2]*Delay{&r.Forth, &r.Back} {
			d.Err = cmp.Or(d.Err, r.Err)
		}
	}
	c.clocks.apply(&r, [2]estimate.Empirical{c.ways[forth].samples, c.ways[back].samples}, c.meeting.shift)
	r.Clock.Apart = c.meeting.apart()
	c.current = max(c.current, floorDiv(c.paired+1, c.cuts)-1) + 1
	c.fresh, c.step = c.settles > 0, nil
	return r
}

// A way compares the counters of one direction. It holds nothing until something
// passes.
type way struct {
	config *Config
	total  *lda.Accumulator // nil while nothing passed
	flows  *lds.Accumulator // nil without Config.Flows
	pairs  uint64           // number compared
	idle   int              // of them, the latest in which nothing passed
	begins bool             // the next one is the first of a session
	err    error            // why one of them was left out of the report

	earlier Delay              // the counts of the report's part before a session began
	samples estimate.Empirical // of the latest report, as measured

	// Packets that were alone in a cell: the latest sent one of each cell.
	sent           []single
	sentRaw, alone int // in the report: packets sent; alone when sent
	received       int // packets received
	arrived, known int // alone when received; of these, known to have been sent
}

// A single is a packet that was alone in its cell.
type single struct {
	cut    int64
	stamp  uint64
	digest uint32
	state  uint8 // see below
}

const (
	nobody    = iota
	onItsWay  // a packet
	ambiguous // several packets look alike
)

const (
	// longestDelay is for how many cuts a packet is waited for that was alone.
	longestDelay = 300

	// longestIdle is after how many cuts without any packet it is certain that
	// none is on its way.
	longestIdle = 300
)

// open makes room for what passes.
func (w *way) open() {
	w.total = must(lda.NewAccumulator(w.config.lda()))
	if w.config.Flows > 0 {
		w.flows = must(lds.NewAccumulator(w.config.lds()))
	}
	cells := 0
	for _, b := range w.config.Cells.Banks {
		cells += b.Rows
	}
	w.sent = make([]single, cells)
}

// begin records that what was on its way is unknown. The delays of before and
// after, perhaps by different clocks, do not mix.
func (w *way) begin() {
	w.begins = true
	if w.total == nil {
		return
	}
	r, _ := w.total.Estimate()
	w.earlier.count(&r)
	w.total.Gap()
	w.total.Reset()
	clear(w.sent)
	if w.flows != nil {
		w.flows.Reset()
		w.flows.Gap()
	}
}

// count adds what a result counts.
func (d *Delay) count(r *lda.Result) {
	d.Received += r.Received
	d.Lost += r.Lost
	d.Extra += r.Extra
	d.Outstanding = r.Outstanding
}

// compare takes what both points counted between two moments, nil if nothing. It
// calls sample for packets that were alone in a cell at both points.
func (w *way) compare(up, down *tally, cut int64, sample func(sent, received uint64)) {
	if up == nil && down == nil {
		if w.idle++; w.total == nil || w.idle > longestIdle {
			return
		}
	} else {
		w.idle = 0
	}
	if w.total == nil {
		w.open()
		if w.begins {
			w.total.Gap()
		}
	}
	w.begins = false
	for _, t := range []**tally{&up, &down} {
		if *t == nil {
			*t = borrowTally(w.config)
			defer (*t).giveBack()
		}
	}
	w.pairs++
	if err := w.total.Add(w.pairs, up.all, down.all); err != nil {
		w.err = err
	}
	if w.flows != nil {
		must(0, w.flows.Add(w.pairs, up.flows, down.flows))
	}
	w.match(up.all, down.all, cut, sample)
}

// match finds packets that were alone in a cell at both points, whatever cuts
// they passed in.
func (w *way) match(up, down *lda.Aggregator, cut int64, sample func(sent, received uint64)) {
	w.sentRaw += int(up.Packets())
	w.received += int(down.Packets())
	up.Singles(func(cell int, digest uint32, stamp uint64) {
		w.alone++
		s := &w.sent[cell]
		state := uint8(onItsWay)
		if s.state != nobody && s.digest == digest && cut-s.cut < longestDelay {
			state = ambiguous
		}
		*s = single{cut, stamp, digest, state}
	})
	down.Singles(func(cell int, digest uint32, stamp uint64) {
		w.arrived++
		s := &w.sent[cell]
		if s.state == nobody || s.digest != digest || cut-s.cut >= longestDelay {
			return
		}
		w.known++
		if s.state == onItsWay {
			sample(s.stamp, stamp)
			s.state = nobody
		}
	})
}

// delay ends a report.
func (w *way) delay(fresh bool) Delay {
	if w.total == nil {
		return Delay{Err: ErrIdle}
	}
	r, err := w.total.Estimate()
	d := w.earlier
	d.count(&r)
	d.Delay, d.Err = r.Delay, cmp.Or(w.err, err)
	if fresh {
		d.Lost, d.Extra = 0, 0
	}
	d.Sent = max(d.Received+d.Lost, d.Extra) - d.Extra
	switch {
	case w.sentRaw+w.received+int(d.Lost) == 0:
		d.Err = ErrIdle
	case !fresh && w.received > enough && 2*w.received > 3*w.sentRaw && 2*d.Extra > d.Received/2:
		d.Err = fmt.Errorf("%w: %d received, %d sent", ErrCopies, w.received, w.sentRaw)
	case !fresh && w.known == 0 && min(w.arrived, w.alone) > enough:
		d.Err = fmt.Errorf("%w: none of %d", ErrUnlike, w.arrived)
	}
	if d.Err == nil {
		d.MeanInterval95, d.DeviationInterval95 = r.MeanInterval(sampling), r.DeviationInterval(confidence)
		w.distribute(&d)
	}
	if errors.Is(d.Err, ErrCopies) || errors.Is(d.Err, ErrUnlike) {
		d = Delay{Sent: uint64(w.sentRaw), Received: uint64(w.received), Err: d.Err}
	}
	w.total.Reset()
	w.err, w.earlier = nil, Delay{}
	w.sentRaw, w.alone, w.received, w.arrived, w.known = 0, 0, 0, 0, 0
	return d
}

const (
	// confidence is that of the intervals of reports, and sampling that of what
	// samples and counters add to one of a mean, of which clocks take the rest.
	confidence, sampling = 0.95, 0.975

	// enough is how many packets it takes to say that points see unlike ones.
	enough = 30
)

// distribute fills in quantiles, the greatest delay and the histogram.
func (w *way) distribute(d *Delay) {
	samples := w.total.Distribution()
	all := samples.Empirical()
	w.samples = all
	for _, p := range []float64{0.5, 0.9, 0.99, 0.999} {
		if q, err := samples.Quantile(p, confidence); err == nil {
			d.Quantiles = append(d.Quantiles, q)
		}
	}
	d.Greatest, _ = all.Quantile(1)
}

// lds returns the Config of the counters of flows: eight cells a flow. Two
// rows see every packet. The rows that sample are for flows that always have
// packets on their way, whose cells in the other rows are never empty.
func (c Config) lds() lds.Config {
	return lds.Config{
		Rows: 4, Columns: max(64, 2*c.Flows), Spread: 1, Rates: [lds.MaxRows]float64{1, 1, 1.0 / 8, 1.0 / 64},
		SumBits: 64, DigestBits: 24,
	}
}

// maxFlows bounds Config.Flows.
const maxFlows = 1 << 20

// flowDelays estimates all flows and returns the slowest first. It also
// returns how many have no answer. All packets' delays have the deviation. What
// bursts of losses leave of a flow is of calmer times, so it widens the intervals.
func (w *way) flowDelays(flows []hashing.Flow, deviation float64) (known []FlowDelay, unknown int) {
	defer w.flows.Reset()
	for _, f := range flows {
		r, err := w.flows.Estimate(f)
		if err != nil {
			unknown++
			continue
		}
		i, apart := r.MeanInterval(sampling), r.LeftOut(deviation)
		i.Low -= apart
		i.High += apart
		known = append(known, FlowDelay{
			Flow: f, Mean: r.Mean, StdDev: r.StdDev, Sent: r.Sent, Lost: r.Lost, Overdue: r.Overdue, Share: r.Share, MeanInterval95: i,
		})
	}
	slices.SortFunc(known, func(a, b FlowDelay) int {
		return cmp.Or(-cmp.Compare(a.Mean, b.Mean), cmp.Compare(a.Flow, b.Flow))
	})
	return known, unknown
}
