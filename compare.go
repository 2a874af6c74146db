package hoplag

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/hoplag/hoplag/estimate"
)

// A comparison makes reports from the cuts of two points: one for each interval of Config.Report, in order, numbered
// and timed by the second point's clock.
type comparison struct {
	config  Config
	cuts    int64 // in a report
	meeting *meeting
	ways    [2]*way
	clocks  clocks

	current int64      // number of the current report
	paired  int64      // the latest cut compared
	covered int64      // the latest cut in a report
	begun   bool       // these are valid
	since   int64      // the cut after which the session began
	step    error      // that a clock was set in the current report
	of      sessions   // that are compared
	came    [2]passage // of the current report
	held    []held
	waiting *pair // not yet taken
}

// held is a report that is held back, and the cut before its first one and its last.
type held struct {
	Report
	after, ended int64
	of           sessions
	ways         [2]placing
	came         [2]passage
}

func newComparison(c Config) *comparison {
	made := &comparison{config: c, cuts: int64(c.Report / c.Cut), meeting: newMeeting(c), clocks: clocks{config: c}, since: math.MinInt64}
	for d := range made.ways {
		made.ways[d] = &way{config: &made.config, direction: d, anew: math.MinInt64, names: map[[2]int64]bool{}}
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
	if len(c.held) > 0 && cut-c.held[0].ended-2 > c.hold()+c.cuts { // idle points make their long cuts at least this often
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

const (
	// longestHold is how many intervals a report waits while it is unknown how long packets take.
	longestHold = 3

	// learning is the most cuts that a session is watched before late packets count as lost.
	learning = 45

	// maxBehind is the number of missing reports after which they are given up.
	maxBehind = 60
)

// due is the cut at which the next report can be released.
func (c *comparison) due() int64 {
	if len(c.held) > 0 {
		return c.held[0].ended + c.hold()
	}
	return c.last(c.current) + c.hold()
}

// early reports whether no report can be due by this cut of the second point. Then records wait, for at most
// half a second: if several cuts are compared together, their counters stay in the processor's cache.
func (c *comparison) early(cut int64) bool {
	most := c.paired + int64(time.Second/2/c.config.Cut)
	return c.begun && c.paired <= cut && cut < min(most, c.due())
}

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
		up, down := p.tallies[d][d], p.tallies[1-d][d] // forth is sent by the first point, back by the second
		w.place(p)
		if !c.config.ClocksAgree { // nothing drifts
			c.came[d].add(down, (p.after-c.covered)*int64(c.config.Cut), (p.through-c.covered)*int64(c.config.Cut))
		}
		w.compare(up, down, p, func(sent, received uint64) {
			c.clocks.messages.add(&c.config, d, sent, received, (p.through+1)*int64(c.config.Cut))
		})
		if f := &w.fastest; f.known {
			c.meeting.most[d] = f.key - w.lag + int64(mostDrift*float64(p.through*int64(c.config.Cut)-f.at))
		}
	}
	c.paired = p.through
}

// end ends the current report, and begins the next one. The report is held back until release.
func (c *comparison) end(err error) {
	r := held{Report: Report{
		Number: c.current, Length: c.config.Report,
		From: c.meeting.ends[first].name, To: c.meeting.ends[second].name,
		Err: cmp.Or(err, c.step),
	}, after: min(c.covered, c.paired), ended: c.paired, of: c.of, came: c.came}
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
	c.step, c.came = nil, [2]passage{}
}

// release returns the first report that was held back.
func (c *comparison) release() Report {
	h := c.held[0]
	r := h.Report
	r.Begins = h.after < c.since+max(c.ways[forth].joins(), c.ways[back].joins())
	c.held = append(c.held[:0], c.held[1:]...)
	r.Err, c.meeting.turns = cmp.Or(r.Err, c.meeting.turns), nil
	guessed := c.meeting.asks == nil && !c.config.ClocksAgree // when records come tells which cuts belong together
	for d, into := range [2]*Traffic{&r.Forth, &r.Back} {
		w, was := c.ways[d], c.ways[d].told
		w.told, w.ends = h.ways[d], c.waiting != nil && c.waiting.begins
		*into = w.tell(c.meeting, h.after, h.ended, r.Begins, len(c.held) == 0)
		if errors.Is(r.Err, ErrStep) {
			into.Err = cmp.Or(into.Err, r.Err)
		} else if errors.Is(into.Err, ErrIdle) && h.after == h.ended {
			into.Err = cmp.Or(r.Err, into.Err) // nobody knows what passed
		} else if errors.Is(into.Err, ErrUnlike) && guessed {
			into.Err = fmt.Errorf("%w; or %w", into.Err, errApart)
		} else if was.least < -aligned && was.added-was.lag != w.told.added-w.told.lag {
			into.Err = cmp.Or(into.Err, errApart)
		}
	}
	if a, b := &r.Forth.Err, &r.Back.Err; guessed && (errors.Is(*a, estimate.ErrClocks) || errors.Is(*b, estimate.ErrClocks)) {
		*a, *b = cmp.Or(*a, errApart), cmp.Or(*b, errApart)
	}
	c.clocks.apply(&r, c.ways, h.of, h.came)
	for _, d := range [2]*Traffic{&r.Forth, &r.Back} { // no clock corrects what has no mean
		if d.Err != nil && (!c.config.ClocksAgree || errors.Is(d.Err, ErrStep) || errors.Is(d.Err, estimate.ErrClocks)) {
			d.UnknownFlows += len(d.Flows)
			d.Flows, d.Quantiles = nil, nil
		}
	}
	c.ways[forth].samples, c.ways[back].samples = estimate.Empirical{}, estimate.Empirical{}
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
