package hoplag

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
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

	current int64 // number of the current report
	paired  int64 // the latest cut compared
	covered int64 // the latest cut in a report
	begun   bool  // these are valid
	fresh   bool  // a session began in the current report, or was settling
	settles int   // pairs until packets on their way then have come
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
		c.covered = min(c.covered, p.after)
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
		w.compare(up, down, p.after, p.through, func(sent, received uint64) { c.clocks.sample(d, sent, received, p.through) })
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
		r.Length, start = time.Duration(c.paired-c.covered)*c.config.Cut, (c.covered+1)*int64(c.config.Cut)
		r.Number = max(c.current, floorDiv(c.paired+1, c.cuts)-1)
		c.covered = c.paired
	}
	r.Start = time.Unix(0, start).UTC()
	for d, into := range [2]*Delay{&r.Forth, &r.Back} {
		*into = c.ways[d].delay(c.fresh)
		if w := c.ways[d]; w.flows != nil {
			into.Flows, into.UnknownFlows = w.flows.report()
		}
	}
	if errors.Is(r.Err, ErrStep) {
		for _, d := range [2]*Delay{&r.Forth, &r.Back} {
			d.Err = cmp.Or(d.Err, r.Err)
		}
	}
	c.clocks.apply(&r, [2]estimate.Empirical{c.ways[forth].samples, c.ways[back].samples}, c.meeting.shift)
	r.Clock.Apart = c.meeting.apart()
	c.current = r.Number + 1
	c.fresh, c.step = c.settles > 0, nil
	return r
}

// A way compares the counters of one direction. It holds nothing until something
// passes.
type way struct {
	config *Config
	total  *lda.Accumulator // nil while nothing passed
	flows  *flows           // nil without Config.Flows
	idle   int              // of them, the latest in which nothing passed
	begins bool             // the next one is the first of a session
	err    error            // why one of them was left out of the report

	earlier Delay              // the counts of the report's part before a session began
	samples estimate.Empirical // of the latest report, as measured

	// Packets that were alone in a cell: the latest sent one of each cell.
	sent                     []single
	sentRaw, alone           int // in the report: packets sent; alone when sent
	received, arrived, known int // received; alone when received; of these, known to have been sent
}

// A single is a packet that was alone in its cell.
type single struct {
	cut    int64
	stamp  uint64
	digest uint32
	state  uint8 // see below
}

const (
	nobody = iota
	onItsWay
	ambiguous // several packets look alike
)

// longestDelay is for how many cuts a packet is waited for.
const longestDelay = 300

// open makes room for what passes.
func (w *way) open() {
	w.total = must(lda.NewAccumulator(w.config.lda()))
	if w.config.Flows > 0 {
		w.flows = &flows{all: map[hashing.Flow]*flow{}}
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
		w.flows = &flows{all: map[hashing.Flow]*flow{}}
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
func (w *way) compare(up, down *tally, after, cut int64, sample func(sent, received uint64)) {
	if up == nil && down == nil {
		if w.idle++; w.total == nil || w.idle > longestDelay {
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
	length := int64(w.config.Cut)
	if err := w.total.Add((after+1)*length, (cut+1)*length, up.all, down.all); err != nil {
		w.err = err
	}
	if w.flows != nil {
		w.flows.compare(up.flows, down.flows, cut, int64(w.config.Cut))
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
	w.err, w.earlier, w.sentRaw, w.alone, w.received, w.arrived, w.known = nil, Delay{}, 0, 0, 0, 0, 0
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
	w.samples = samples.Empirical()
	for _, p := range []float64{0.5, 0.9, 0.99, 0.999} {
		if q, err := samples.Quantile(p, confidence); err == nil {
			d.Quantiles = append(d.Quantiles, q)
		}
	}
	d.Greatest, _ = w.samples.Quantile(1)
}

// flows adds up the delays of each flow, whose cells no other flow has.
type flows struct {
	all  map[hashing.Flow]*flow
	full int // packets of flows that there was no room for, in the report
}

// A flow is one of them, and what passed of it in the report.
type flow struct {
	cells          [flowCells]cell
	sent, received uint64
	idle           int // reports without a packet

	delays  estimate.Cells // of spans that ended in the report
	doubt   float64        // what losses leave open of their sum, ns
	settled uint64         // packets in them
}

// A cell follows its level: how many packets were sent and have not come, and their
// digest. Between two cuts of one level, all that came is all that was sent, and the
// stamps differ by the delays. A level that is there for good is of packets that are
// lost: what they add is known but for when they were sent, within the span.
type cell struct {
	level, base flowCell // sums are since the latest settled cut
	at          int64    // when that was
	received    uint32   // since then
	seen        [4]sight // levels since then
}

// A sight is a level at a cut.
type sight struct {
	level    flowCell
	cut      int64
	received uint32
}

const (
	maxFlows  = 1 << 20 // bounds Config.Flows
	patience  = 10      // for how many cuts a level stays that is there for good
	idleFlows = 30      // for how many reports a flow is remembered without a packet
)

// compare takes what both points counted up to the end of a cut.
func (w *flows) compare(up, down *flowTable, cut, length int64) {
	limit := min(up.limit, down.limit)
	for _, t := range [2]*flowTable{up, down} {
		for f := range t.rows {
			if w.all[f] == nil && len(w.all) < up.most {
				w.all[f] = new(flow)
				for k := range w.all[f].cells {
					w.all[f].cells[k].at = cut * length
				}
			}
		}
	}
	var none flowRow
	for id, f := range w.all {
		if placeOf(id) > limit { // a point had no room for it
			delete(w.all, id)
			w.full++
			continue
		}
		sent, received := cmp.Or(up.rows[id], &none), cmp.Or(down.rows[id], &none)
		for k := range f.cells {
			f.sent += uint64(sent[k].count)
			f.received += uint64(received[k].count)
			f.cut(&f.cells[k], &sent[k], &received[k], cut, length)
		}
	}
}

// cut ends a cut for a cell.
func (f *flow) cut(c *cell, sent, received *flowCell, cut, length int64) {
	now := (cut + 1) * length
	c.level.count += sent.count - received.count
	c.level.digest += sent.digest - received.digest
	c.level.sum += received.sum - sent.sum
	c.received += received.count
	if c.level.same(&c.base) {
		f.settle(c, c.level.sum, c.received, 0, now)
		return
	}
	for i := range c.seen {
		s := &c.seen[i]
		if s.cut == 0 || !s.level.same(&c.level) {
			continue
		}
		if cut-s.cut >= patience {
			lost := int32(s.level.count - c.base.count)
			then := (s.cut + 1) * length
			middle := c.at + (then-c.at)/2
			later, rest := c.level.sum-s.level.sum, c.received-s.received
			doubt := math.Abs(float64(lost)) * float64(then-c.at) / 2
			f.settle(c, s.level.sum+uint64(int64(lost)*middle), s.received, doubt, then)
			f.settle(c, later, rest, 0, now)
			c.base = c.level
		}
		return
	}
	// The level of what is lost is lower than any other that comes later.
	most := slices.MaxFunc(c.seen[:], func(a, b sight) int { return cmp.Compare(a.rank(), b.rank()) })
	if s := (sight{c.level, cut, c.received}); s.rank() < most.rank() {
		c.seen[slices.Index(c.seen[:], most)] = s
	}
}

// rank orders sights by what should give way first: none, then the most packets.
func (s *sight) rank() int64 {
	if s.cut == 0 {
		return math.MaxInt64
	}
	return int64(int32(s.level.count))
}

// same compares levels but for sums.
func (c *flowCell) same(o *flowCell) bool { return c.count == o.count && c.digest == o.digest }

// settle ends a span of a cell: so many packets came, whose delays add up to a sum.
func (f *flow) settle(c *cell, sum uint64, packets uint32, doubt float64, at int64) {
	if packets > 0 {
		f.delays.Add(float64(int64(sum)), uint64(packets))
		f.settled += uint64(packets)
		f.doubt += doubt
	}
	c.level.sum, c.received, c.at = 0, 0, at
	c.seen = [4]sight{}
}

// report ends a report: it returns the flows of which packets came, slowest first,
// and how many more there were.
func (w *flows) report() (known []FlowDelay, unknown int) {
	for id, f := range w.all {
		if f.settled > 0 {
			known = append(known, f.delay(id))
		} else if f.sent+f.received > 0 {
			unknown++
		}
		if f.idle++; f.sent+f.received > 0 {
			f.idle = 0
		}
		if f.idle > idleFlows {
			delete(w.all, id)
		}
		f.sent, f.received, f.settled, f.doubt, f.delays = 0, 0, 0, 0, estimate.Cells{}
	}
	unknown, w.full = unknown+w.full, 0
	slices.SortFunc(known, func(a, b FlowDelay) int {
		return cmp.Or(-cmp.Compare(a.Mean, b.Mean), cmp.Compare(a.Flow, b.Flow))
	})
	return known, unknown
}

// delay says what is known of a flow.
func (f *flow) delay(id hashing.Flow) FlowDelay {
	d := FlowDelay{Flow: id, Sent: f.sent, Received: f.received, Lost: max(f.sent, f.received) - f.received}
	of, _ := f.delays.Delay()
	d.Mean = of.Mean
	d.MeanInterval95 = estimate.Interval{Low: of.Mean, High: of.Mean, Confidence: sampling}
	if f.settled < f.received { // the rest are taken to be like these
		d.MeanInterval95 = estimate.StudentInterval(of, f.delays.DegreesOfFreedom(), sampling)
	}
	d.MeanInterval95.Low -= f.doubt / float64(f.settled)
	d.MeanInterval95.High += f.doubt / float64(f.settled)
	return d
}
