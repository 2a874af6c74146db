package hoplag

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
)

// A comparison makes reports from the cuts of two points: one for each interval of Config.Report, in order, numbered
// and timed by the second point's clock.
type comparison struct {
	config  Config
	cuts    int64 // in a report
	meeting *meeting
	ways    [2]*way
	clocks  clocks

	current int64    // number of the current report
	paired  int64    // the latest cut compared
	covered int64    // the latest cut in a report
	begun   bool     // these are valid
	since   int64    // the cut after which the session began
	step    error    // that a clock was set in the current report
	of      sessions // that are compared
	held    []held
	waiting *pair // not yet taken
}

// held is a report that is held back, and the cut before its first one and its last.
type held struct {
	Report
	after, ended int64
	of           sessions
	ways         [2]placing
}

func newComparison(c Config) *comparison {
	made := &comparison{config: c, cuts: int64(c.Report / c.Cut), meeting: newMeeting(c), clocks: clocks{config: c}, since: math.MinInt64}
	for d := range made.ways {
		made.ways[d] = &way{config: &made.config, direction: d, names: map[namedMessage]bool{}}
	}
	return made
}

// begin makes the interval after cut number now the first report.
func (c *comparison) begin(now int64) {
	c.current, c.paired, c.covered, c.begun = floorDiv(now, c.cuts)+1, now, now, true
}

// last returns the last cut of a report.
func (c *comparison) last(report int64) int64 { return (report+1)*c.cuts - 1 }

// next returns the next report if its interval has been compared, or if cut, one
// of the second point, is so much later that it will not be.
func (c *comparison) next(cut int64) (Report, bool) {
	for {
		waits := c.ways[forth].incomplete(len(c.held) == 1) || c.ways[back].incomplete(len(c.held) == 1)
		if len(c.held) > 0 && (c.paired >= c.held[0].ended+c.hold() && !waits || c.waiting != nil && c.waiting.begins) {
			return c.release(), true
		}
		if c.begun && c.paired >= c.last(c.current) {
			c.end(nil)
			continue
		}
		if c.waiting == nil {
			c.meeting.limit = math.MaxInt64
			if c.begun {
				c.meeting.limit = c.last(c.current)
			}
			pair, ok := c.meeting.next()
			if !ok {
				break
			}
			if c.waiting = &pair; pair.begins && c.begun && c.paired > c.covered {
				c.end(nil) // a report is of one session
			}
			if pair.begins && len(c.held) > 0 {
				continue // what is held goes first
			}
		}
		if !c.begun {
			c.begin(c.waiting.after)
		}
		c.take(c.waiting)
		c.waiting = nil
	}
	if !c.begun {
		return Report{}, false
	}
	if len(c.held) > 0 && cut-c.held[0].ended-2 > c.hold()+c.cuts { // points that are idle cut no more seldom
		return c.release(), true
	}
	if jump := floorDiv(cut, c.cuts) - c.current; jump < -1 && (c.paired > cut || cut-c.paired > 2*c.cuts) || jump > maxBehind {
		// The clock was stepped; reports did not end early, and there are none for the time between.
		if c.paired > c.covered {
			c.end(nil)
			return c.release(), true
		}
		c.current += jump
		c.paired = c.current*c.cuts - 1
		c.covered = c.paired
	}
	if len(c.held) > 0 || cut-c.last(c.current)-2 <= c.cuts {
		return Report{}, false
	}
	c.end(c.meeting.silent())
	return c.release(), true
}

// hold returns how many cuts a report waits until it is known what was on its way when it ended, and whether
// what seems lost is just slow: in a young session, and while nothing has come since.
func (c *comparison) hold() (cuts int64) {
	for _, w := range c.ways {
		if w.total == nil {
			continue
		}
		settles := int64(w.total.Settling()) * w.cuts
		if settles >= unsettled {
			settles = min(unsettled, longestHold*c.cuts)
		}
		cuts = max(cuts, settles)
	}
	if len(c.held) == 0 || c.paired < c.held[0].ended+cuts {
		return cuts
	}
	ended := c.held[0].ended
	for _, w := range c.ways {
		if (c.paired < c.since+learning || w.came <= ended) && c.paired < ended+longestHold*c.cuts && w.loses(c.paired, c.cuts) {
			return c.paired + 1 - ended
		}
	}
	return cuts
}

// due is the cut at which the next report can be released.
func (c *comparison) due() int64 {
	if len(c.held) > 0 {
		return c.held[0].ended + c.hold()
	}
	return c.last(c.current) + c.hold()
}

const (
	// unsettled stands for an unknown number of cuts that packets take to settle, and longestHold is how many
	// intervals a report waits then.
	unsettled, longestHold = 90, 3

	// learning is the most cuts that a session is watched before late packets count as lost.
	learning = 45

	// maxBehind is the number of missing reports after which they are given up.
	maxBehind = 60

	// settling is the most cuts after a session's beginning in which packets may still come that were on their
	// way, or seem lost because only one point counted them.
	settling = 10
)

// take compares a pair.
func (c *comparison) take(p *pair) {
	if p.begins {
		for _, w := range c.ways {
			w.begin()
		}
		c.clocks.reset(p.of)
		c.of = p.of
		c.since = p.after
		if p.after+c.cuts < c.covered { // the clock was set back
			c.current = floorDiv(p.after+1, c.cuts)
		}
		c.covered = p.after
	}
	if p.step != 0 {
		c.step = fmt.Errorf("%w: that of %s by %v", ErrStep, name(p.whose), time.Duration(p.step))
	}
	for d, w := range c.ways {
		up, down := p.tallies[first][d], p.tallies[second][d]
		if d == back {
			up, down = down, up
		}
		w.place(p)
		w.compare(up, down, p, func(sent, received uint64) { c.clocks.sample(d, sent, received, p.through) })
	}
	c.paired = p.through
}

// end ends the current report, and begins the next one. The report is held back until release.
func (c *comparison) end(err error) {
	r := held{Report: Report{
		Number: c.current, Length: c.config.Report,
		From: c.meeting.ends[first].name, To: c.meeting.ends[second].name,
		Err: cmp.Or(err, c.step),
	}, after: min(c.covered, c.paired), ended: c.paired, of: c.of}
	start := c.current * int64(c.config.Report)
	if c.paired > c.covered {
		r.Length, start = time.Duration(c.paired-c.covered)*c.config.Cut, (c.covered+1)*int64(c.config.Cut)
		r.Number = max(c.current, floorDiv(c.paired+1, c.cuts)-1)
		c.covered = c.paired
	}
	r.Start = time.Unix(0, start).UTC()
	for d, w := range c.ways {
		r.ways[d] = w.endReport()
	}
	c.held = append(c.held, r)
	c.current = r.Number + 1
	c.step = nil
}

// release returns the first report that was held back.
func (c *comparison) release() Report {
	h := c.held[0]
	r := h.Report
	r.Begins = h.after < c.since+c.begins()
	c.held = append(c.held[:0], c.held[1:]...)
	guessed := c.meeting.asks == nil && !c.config.ClocksAgree // when records come tells which cuts belong together
	for d, into := range [2]*Traffic{&r.Forth, &r.Back} {
		w, was := c.ways[d], c.ways[d].told
		w.told, w.ends = h.ways[d], c.waiting != nil && c.waiting.begins
		*into = w.tell(c.meeting, h.after, h.ended, r.Begins, len(c.held) == 0)
		if errors.Is(r.Err, ErrStep) {
			into.Err = cmp.Or(into.Err, r.Err)
		} else if errors.Is(into.Err, ErrUnlike) && guessed {
			into.Err = fmt.Errorf("%w; or %w", into.Err, errApart)
		} else if was.least < -aligned && was.added-was.lag != w.told.added-w.told.lag {
			into.Err = cmp.Or(into.Err, errApart)
		}
	}
	if a, b := &r.Forth.Err, &r.Back.Err; guessed && (errors.Is(*a, estimate.ErrClocks) || errors.Is(*b, estimate.ErrClocks)) {
		*a, *b = cmp.Or(*a, errApart), cmp.Or(*b, errApart)
	}
	c.clocks.apply(&r, c.ways, h.of)
	for _, w := range c.ways {
		w.samples = estimate.Empirical{}
	}
	if ends := &c.meeting.ends; r.ClockErr != nil && ends[first].used != nil && ends[second].used != nil {
		ns, _ := c.meeting.apart()
		if apart := time.Duration(ns); apart.Abs() > 100*time.Millisecond {
			r.ClockErr = fmt.Errorf("%w; about %v apart", r.ClockErr, apart.Round(10*time.Millisecond))
		}
	}
	return r
}

// errApart says that cuts were compared that do not belong together.
var errApart = fmt.Errorf("%w, or records of one point come later than the other's (see Pair)", estimate.ErrClocks)

// A way compares the counters of one direction. It holds nothing until something passes.
type way struct {
	config    *Config
	direction int
	total     *lda.Accumulator // nil while nothing passed
	flows     *flows           // nil without Config.Flows
	since     int64            // when the session began, by the sender's clock
	end       int64            // of the latest pair compared
	cuts      int64            // in that pair
	came      int64            // the latest cut in which anything was received
	asked     int64            // the cut at which losing was found
	losing    bool             // packets seemed to be lost
	idle      int              // pairs since anything passed
	begins    bool             // the next one is the first of a session
	err       error            // why one of them was left out of the report

	placing         // of the current report
	told    placing // of the latest report that was told
	fastest least   // delay, if lag is added to it
	waits   bool    // receptions wait for a cut
	late    *tally  // those that do
	placed  bool    // these are valid
	ending  bool    // the latest report ends after the next pair, for which receptions wait
	ends    bool    // a session ends with the report that is told
	tardy   []tardy // packets that points counted late, since the oldest report began

	missing []Missing             // that no report named yet
	samples estimate.Empirical    // of the latest report, as measured
	strange [3]uint64             // packets sent, received and lost since the delay of any was known,
	unknown int                   // and in how many reports
	met     bool                  // the delay of one was known
	given   float64               // packets that were taken for lost and may come yet,
	hidden  float64               // those of them that no report told, or those on their way when the session began that no cell showed
	out     int64                 // packets outstanding when the latest report ended,
	early   int64                 // and those that were told to be extra before cells showed it
	names   map[namedMessage]bool // of messages that were lost lately, which reports told
	lately  [2]float64            // packets sent, and received though not due, in this report, and less and less of earlier ones
	extra   uint64                // packets found to be extra, of which earlier reports told no reception
	joined  uint64                // packets that were on their way when the session began

	// Packets that were alone in a cell: the latest sent one of each cell.
	sent  []single   // nil if clocks agree
	hasty []received // in the latest pair, of which nobody knows yet who sent them
}

// open makes room for what passes.
func (w *way) open(begins bool) {
	w.placed = true
	if w.total = must(lda.NewAccumulator(w.config.Cells)); begins {
		w.total.Gap()
	}
	if w.config.ClocksAgree {
		return // nobody asks for packets that were alone
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
	w.begins, w.fastest = true, least{}
	if w.total == nil {
		return
	}
	w.total.Gap()
	w.total.Reset()
	clear(w.sent)
	w.lately, w.strange, w.unknown, w.met, w.given, w.extra, w.joined = [2]float64{}, [3]uint64{}, 0, false, 0, 0, 0
	w.out, w.early, w.hidden = 0, 0, 0
	w.late.giveBack()
	w.tardy, w.late, w.flows, w.hasty = w.tardy[:0], nil, nil, nil
}

// endReport ends a report with the pair compared last.
func (w *way) endReport() placing {
	ended := w.placing
	ended.idle, ended.least, w.placed = w.total == nil, w.fastest.key-w.lag+w.added, false
	if w.ending = w.late != nil; !w.ending {
		w.finish()
	}
	return ended
}

// finish ends a report once all its receptions have been compared.
func (w *way) finish() {
	if w.ending = false; w.total == nil {
		return
	}
	if w.total.End(); w.total.Settling() >= unsettled {
		w.total.Estimate() // tells it how long packets take
	}
	if w.flows != nil {
		w.flows.end()
	}
}

// incomplete reports whether receptions of the oldest report, which may be the last, wait for a pair, or
// some may be on their way.
func (w *way) incomplete(last bool) bool {
	return w.ending && last || w.total != nil && w.total.Settling() < unsettled && !w.total.Settled()
}

// compare takes what both points counted between two moments, nil if nothing, and gives it back. It calls sample for
// packets that were alone in a cell at both points. Moments are those of the sender's cuts, by its clock.
func (w *way) compare(up, down *tally, p *pair, sample func(sent, received uint64)) {
	if w.idle++; up != nil || down != nil {
		w.idle = 0
	}
	if down != nil {
		w.came = p.through
	}
	if w.idle > 0 && (w.total == nil || w.idle > longestDelay && !w.ending) {
		return
	}
	begins := w.begins
	if w.begins = false; w.total == nil {
		w.open(begins)
	}
	if n := p.late[w.direction]; n > 0 {
		w.tardy = append(w.tardy, tardy{p.after, n})
	}
	if w.sent != nil {
		w.match(up, down, p.through, sample)
	}
	down.shift(w.added)
	start, end := w.ofSender(p.after, w.lag), w.ofSender(p.through, w.lag)
	if begins || w.end == 0 {
		w.since, w.end = start, start // nothing passed before
	}
	if w.config.Flows > 0 && w.flows == nil {
		w.flows = newFlows(w.config, w.end, begins)
	}
	before := w.late
	w.late, w.cuts = nil, p.through-p.after
	if w.waits && w.cuts == 1 { // that of an idle point is too long
		w.late, down = down, nil
	}
	if before != nil {
		w.add(up, before, end)
		up = nil
	}
	if w.ending {
		w.finish()
	}
	if before == nil || down != nil {
		w.add(up, down, end)
	}
}

// add takes what was sent and what was received up to a time by the sender's clock, nil if nothing, and gives it back.
func (w *way) add(up, down *tally, end int64) {
	for _, t := range []**tally{&up, &down} {
		if *t == nil {
			*t = borrowTally(w.config)
		}
		defer (*t).giveBack()
	}
	if err := w.total.Add(w.end, end, &up.all.Aggregator, &down.all.Aggregator); err != nil {
		w.err = err
	}
	if w.flows != nil {
		w.flows.add(up.flows, down.flows, end)
	}
	w.end = end
}

// delay says what is known of a report that ended, of the cuts after one and up to another. No
// message took longer than since the session began.
func (w *way) delay(from, to int64, longest float64, fresh bool) Traffic {
	r, err := w.total.Estimate()
	if len(w.tardy) > 0 && errors.Is(err, estimate.ErrClocks) {
		err = fmt.Errorf("%w, or packets were recorded long after they passed", err)
	}
	d := Traffic{Delay: Delay{Received: r.Received, Err: cmp.Or(w.err, err)}, StdDev: r.StdDev, Outstanding: r.Outstanding}
	due, length := w.given+float64(w.out), float64(max(to-from, 1))*float64(w.config.Cut)
	back := w.account(&d, &r, fresh, length)
	w.strange = [3]uint64{w.strange[0] + r.Sent, w.strange[1] + r.Received, w.strange[2] + r.Lost}
	if w.met = w.met || r.N > 0; r.N > 0 || errors.Is(err, estimate.ErrClocks) {
		w.strange, w.unknown = [3]uint64{}, 0
	} else if r.Received > 0 {
		w.unknown++
	}
	w.lately = [2]float64{0.9*w.lately[0] + float64(r.Sent), 0.9*w.lately[1] + max(0, float64(r.Received)-due)}
	switch {
	case w.err == nil && r.Sent+d.Received+d.Lost == 0:
		d.Err = ErrIdle
	case !fresh && r.Received > enough && 2*w.lately[1] > 3*w.lately[0]:
		d.Err = fmt.Errorf("%w: %d arrive and %d are sent: does a message go to several receivers, or come from a third point?",
			ErrUnlike, r.Received, r.Sent)
	case 1000*r.Repeats > r.Received+r.Sent:
		d.Err = fmt.Errorf("%w: %d of %d packets repeat an id", estimate.ErrNoSamples, r.Repeats, r.Sent)
	case !fresh && min(w.strange[0], w.strange[1]) > enough && w.unknown >= reports && (!w.met || 2*w.strange[2] > w.strange[0]):
		d.Err = fmt.Errorf("%w: none of %d that arrive was sent: do both points pass the same bytes?", ErrUnlike, w.strange[1])
	case d.Err == nil && d.Extra == d.Received:
		d.Err = fmt.Errorf("%w: all %d packets that came had counted as lost, or came twice", estimate.ErrNoSamples, d.Received)
	}
	if d.Err == nil {
		w.distribute(&d, back)
		d.Mean, d.MeanInterval95 = r.OfReceived(sampling)
		_, d.Certain = r.OfReceived(certainly)
		late := w.straying(from, to, d.Received)
		lacks := float64(back) * w.patience() / float64(d.Received) // of the time before those were given up that came after all
		for _, i := range []*estimate.Interval{&d.MeanInterval95, &d.Certain} {
			i.Low, i.High = min(i.Low-late, longest), min(i.High+late+lacks, longest)
		}
		d.DeviationInterval95 = r.DeviationInterval(confidence)
		if fresh {
			w.begun(&d, &r, length)
		}
		if w.ends && !w.total.Settled() { // nobody will know how old those are that are on their way
			least, most := float64(w.told.least), float64(w.told.added)+w.patience()
			if seen, err := w.samples.Quantile(1); err == nil {
				most = seen + (seen-least)/2
			}
			d.unsure(r.Outstanding+uint64(w.hidden), least, most)
		}
	}
	if w.total.Reset(); errors.Is(d.Err, ErrUnlike) {
		d = Traffic{Delay: Delay{Sent: r.Sent, Received: r.Received, Err: d.Err}}
		w.total.Gap() // or what seems to be on its way is looked for in every report
	}
	w.err, w.tardy = nil, slices.DeleteFunc(w.tardy, func(t tardy) bool { return t.after < to })
	return d
}

const (
	// confidence is that of the intervals of reports, sampling that of what samples and counters add to one of a mean,
	// of which clocks take the rest, and certainly that of what they add to Delay.Certain.
	confidence, sampling, certainly = 0.95, 0.975, 0.999

	// deviations is the distance from the middle of a normal distribution's interval to its ends, at sampling.
	deviations = 2.24

	// enough is how many packets, in reports, it takes to say that the points see different ones.
	enough, reports = 30, 3
)
