package hoplag

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/lda/flows"
)

// clocks knows how far the first point's clock is ahead of the second's: from
// messages that go both ways, and from a follower's exchanges, which do too.
type clocks struct {
	config    Config
	messages  tracked
	exchanges tracked
	exchanged []exchange // in the current report, or of a session that is not compared yet
}

// A tracked is a tracker and the samples of the current report, by direction.
type tracked struct {
	*clock.Tracker
	samples [2]clock.Least
	reading clock.Reading
	known   bool
}

// reset forgets what was known, except for exchanges of the sessions that begin.
func (c *clocks) reset(of sessions) {
	c.messages, c.exchanges = tracked{}, tracked{}
	c.exchanged = slices.DeleteFunc(c.exchanged, func(x exchange) bool { return x.of != of })
}

// An exchange is when a request was sent and its reply came, by the second point's clock, and when it was answered, by the first one's.
type exchange struct {
	sent, answered, came int64
	of                   sessions
}

func (t *tracked) add(config *Config, direction int, sent, received uint64, near int64) {
	if config.ClocksAgree {
		return
	}
	sample := [2]func(uint64, uint64, uint32, int, int64) clock.Sample{clock.Back, clock.There}[direction] // the near point is the second
	t.samples[direction].Add(sample(sent, received, 1, int(config.Cells.SumBits), near), near)
}

// read ends a report.
func (t *tracked) read(config *Config, from, to int64, outliers int) {
	there, home := t.samples[back].Take(), t.samples[forth].Take()
	if t.Tracker == nil {
		if len(there)+len(home) == 0 {
			return
		}
		k := clock.DefaultConfig
		k.SumBits, k.Asymmetry, k.Outliers, k.MaxDrift = int(config.Cells.SumBits), 0, outliers, 5*mostDrift
		t.Tracker = must(clock.New(k)) // SumBits was validated
	}
	_, err := t.Add(there, home)
	if t.known = err == nil; t.known {
		t.reading, err = t.Between(from, to)
		if t.known = err == nil && t.reading.Certain.Bounded(); !t.reading.Stepped {
			t.reading, _ = t.At(from + (to-from)/2)
		}
		d := &t.reading.LikelyDrift
		d.Low, d.High = min(max(d.Low, -mostDrift), mostDrift), max(min(d.High, mostDrift), -mostDrift)
	}
}

// between returns the reading some ns after the middle of the report, give or take apart.
func (t *tracked) between(later, apart float64) clock.Reading {
	r := moved(t.reading, later, apart, 0)
	if t.Tracker != nil && !r.Stepped { // or it may have been set at any time of the report
		line, _ := t.Between(r.Time+int64(later-apart), r.Time+int64(later+apart))
		if line.Likely.High-line.Likely.Low < r.Likely.High-r.Likely.Low {
			r.Certain, r.Likely = line.Certain, line.Likely
		}
	}
	return r
}

// A passage is when the packets of a report came: the sums, over these, of how long after its beginning the middle of
// their cuts was, and of how far they may be from it, in ns. Clocks that drift need it.
type passage struct{ packets, later, apart float64 }

// add adds what was received in cuts that end so long after the report's beginning, if it is not nil.
func (p *passage) add(down *tally, from, to int64) {
	if down != nil {
		n := float64(down.all.Packets())
		p.packets, p.later, p.apart = p.packets+n, p.later+n*float64(from+to)/2, p.apart+n*float64(to-from)/2
	}
}

// apply corrects a report by what is known of the clocks, and says what that is. A constant was added to the delays of each way.
func (c *clocks) apply(r *Report, ways [2]*way, of sessions, came [2]passage) {
	from, to, middle := r.Start.UnixNano(), r.Start.UnixNano()+int64(r.Length), float64(r.Length)/2
	c.messages.read(&c.config, from, to, 1)
	c.exchanged = slices.DeleteFunc(c.exchanged, func(x exchange) bool {
		if x.of == of {
			c.exchanges.add(&c.config, back, uint64(x.sent), uint64(x.answered), x.sent)
			c.exchanges.add(&c.config, forth, uint64(x.answered), uint64(x.came), x.came)
		}
		return x.of == of
	})
	c.exchanges.read(&c.config, from, to, 0) // they are signed
	delays, added := [2]*Traffic{&r.Forth, &r.Back}, [2]float64{float64(ways[forth].told.added), float64(ways[back].told.added)}
	if c.config.ClocksAgree {
		for i, d := range delays {
			d.agree(ways[i].samples)
		}
		r.roundTrip(estimate.Interval{}, 0, 0, 0)
	} else if r.ClockErr = c.tell(r, added[forth]+added[back]); r.ClockErr != nil {
		for i, d := range delays {
			d.unsettle(r.ClockErr, ways[i])
		}
	} else {
		ahead := [2]float64{back: r.Clock.Offset + float64(ways[back].told.lag)} // cuts are the receiver's
		for i := range came {
			if p := &came[i]; p.packets == 0 {
				p.later, p.apart = -ahead[i], middle
			} else {
				p.later, p.apart = p.later/p.packets-middle-ahead[i], p.apart/p.packets
			}
		}
		left := func(i int, p passage, d estimate.Interval) passage {
			if i == forth { // clocks matter when packets are at the first point, which sends these; none takes less than no time
				least := max(added[forth], d.Low+r.Clock.Likely.Low)
				most := max(least, d.High+r.Clock.Likely.High)
				p.later, p.apart = p.later+added[forth]-(least+most)/2, p.apart+(most-least)/2
			}
			return p
		}
		came[forth] = left(forth, came[forth], r.Forth.MeanInterval95)
		r.roundTrip(r.Clock.LikelyDrift, came[back].later-came[forth].later, came[forth].apart+came[back].apart, added[forth]+added[back])
		for i, d := range delays {
			reading := func(p passage) clock.Reading {
				when := c.between(p.later, p.apart)
				if when.Offset = r.Clock.Offset + r.Clock.Drift*p.later; i == forth {
					when = when.Reverse()
				}
				return moved(when, 0, 0, added[i])
			}
			d.settle(reading(came[i]), reading(passage{1, -ahead[i], middle}), func(f *flows.Delay) clock.Reading {
				later := (f.Came.Low+f.Came.High)/2 - float64(from) - middle - ahead[i]
				return reading(left(i, passage{1, later, (f.Came.High - f.Came.Low) / 2}, f.MeanInterval95))
			}, r.Length, ways[i].samples)
		}
	}
}

// agree takes a delay as it was measured, unless it shows that the clocks do not agree.
func (d *Traffic) agree(samples estimate.Empirical) {
	early, err := samples.Quantile(0.01)
	switch negative := d.backwards(samples, 0); {
	case negative && err == nil && early >= 0:
		d.Err = fmt.Errorf("%w: no packet arrives before it is sent, and the mean seems to be %s", estimate.ErrNoSamples, Format(d.Mean))
	case negative:
		d.Err = fmt.Errorf("%w, though Config.ClocksAgree says so: the mean is %s", estimate.ErrClocks, Format(d.Mean))
	case d.Err == nil && err == nil && early < 0:
		d.Err = fmt.Errorf("%w, though Config.ClocksAgree says so: one message in a hundred arrives %s or more before it is sent",
			estimate.ErrClocks, Format(-early))
	}
	d.settle(clock.Reading{}, clock.Reading{}, func(*flows.Delay) (none clock.Reading) { return none }, 0, samples)
}

// tell says in a report how far the clocks are apart, or returns why that is not known. A step is the report's error.
func (c *clocks) tell(r *Report, added float64) (unknown error) {
	k, m, x := &r.Clock, &c.messages, &c.exchanges
	steep := func(t *tracked) bool {
		return t.known && max(t.reading.CertainDrift.Low, -t.reading.CertainDrift.High) > mostDrift
	}
	faster := x.known && x.reading.RoundTrip < m.reading.RoundTrip
	switch {
	case steep(m) || steep(x):
		unknown = errors.New("their rates differ by more than 0.1 %")
	case m.known || x.known:
		*k = c.between(0, 0)
	case r.Forth.Err == nil && r.Back.Err == nil && r.Forth.Mean+r.Back.Mean < added:
		unknown = errors.New("messages arrive before they are sent; is Passed called after a message has left?")
	case r.Back.Received > 0:
		unknown = errors.New("what came back contradicts the rest, or tells too little")
	default:
		unknown = errors.New("nothing came back")
	}
	// The slower of the two seem to show a step, too, where one path gets longer and the other shorter, or where few were fast.
	if m.known && m.reading.Stepped && !faster || x.known && x.reading.Stepped && (faster || !m.known) {
		r.Err = cmp.Or(r.Err, fmt.Errorf("%w: that of %s or of %s, or its rate changed", ErrStep, name(r.From), name(r.To)))
		r.Forth.Err, r.Back.Err = cmp.Or(r.Forth.Err, r.Err), cmp.Or(r.Back.Err, r.Err)
	}
	return unknown
}

// between returns what is known of the clocks at a time so long after the middle of the report, give or take apart.
func (c *clocks) between(later, apart float64) (k clock.Reading) {
	m, x := c.messages.between(later, apart), c.exchanges.between(later, apart)
	if !c.messages.known {
		return x.Allow(math.Inf(1))
	}
	if k = m.Allow(cmp.Or(float64(c.config.Asymmetry), m.RoundTrip/2)); !c.exchanges.known {
		return k
	}
	k = k.Within(x)
	// All the time by which exchanges take longer may be one way. If they contradict packets even so, either may be uneven.
	uneven := x.RoundTrip/2 + max(0, x.RoundTrip-m.RoundTrip)
	if c.config.Asymmetry == 0 && 2*math.Abs(x.Offset-m.Offset) > uneven {
		other := x.Allow(uneven).Within(k)
		k.Likely.Low, k.Likely.High = min(k.Likely.Low, other.Likely.Low), max(k.Likely.High, other.Likely.High)
		k.Offset = k.Likely.Low + (k.Likely.High-k.Likely.Low)/2
	}
	return k
}

// moved returns the reading of a time that is later by some ns, give or take apart, for delays to which a constant was added.
func moved(r clock.Reading, later, apart, added float64) clock.Reading {
	move := func(i *estimate.Interval, drift estimate.Interval) {
		low, high := gained(drift, later, apart)
		i.Low, i.High = i.Low+low+added, i.High+high+added
	}
	r.Offset += r.Drift*later + added
	move(&r.Certain, r.CertainDrift)
	move(&r.Likely, r.LikelyDrift)
	return r
}

// gained returns what a clock may gain at rates of an interval in a time that is known to within so much.
func gained(drift estimate.Interval, time, apart float64) (low, high float64) {
	x, y := max(drift.Low, -mostDrift), min(drift.High, mostDrift)
	most := max(-x, y) * apart
	return min(x*time, y*time) - most, max(x*time, y*time) + most
}

// roundTrip adds up the delays there and back, from which the clocks' offset cancels out, but not what they drift from
// when packets left the first point until others came back.
func (r *Report) roundTrip(drift estimate.Interval, later, apart, added float64) {
	a, b := &r.Forth, &r.Back
	least, most := gained(drift, later, apart)
	high := a.MeanInterval95.High + b.MeanInterval95.High - least - added
	if a.Err != nil || b.Err != nil || high < 0 { // both were measured before one clock was set
		return
	}
	low := max(0, a.MeanInterval95.Low+b.MeanInterval95.Low-most-added)
	r.RoundTrip = estimate.Interval{Low: low, High: high, Confidence: confidence}
}

// settle corrects a delay by readings of when its packets passed on average, or at any time of the report, and of when a flow's did.
func (d *Traffic) settle(r, ever clock.Reading, of func(*flows.Delay) clock.Reading, length time.Duration, samples estimate.Empirical) {
	const evenly = 0.28867513459481287 // 1/√12
	if d.Err != nil {
		return
	}
	total := func(i, offset estimate.Interval, ends float64) estimate.Interval {
		return estimate.Interval{Low: max(0, i.Low-offset.High-ends), High: max(0, i.High-offset.Low+ends), Confidence: confidence}
	}
	if most := d.Certain.High - r.Certain.Low; most < 0 {
		d.Err = fmt.Errorf("%w: messages seem to arrive %s before they are sent", estimate.ErrClocks, Format(-most))
		return
	}
	whole := r.Subtract(estimate.Delay{Mean: d.Mean, StdDev: d.StdDev}, evenly*float64(length))
	d.Mean, d.StdDev = whole.Mean, whole.StdDev
	d.DeviationInterval95.Low = min(d.DeviationInterval95.Low, d.StdDev)
	d.Certain = total(d.Certain, r.Certain, 0)
	d.Certain.Confidence = certainly
	d.MeanInterval95 = total(d.MeanInterval95, r.Likely, 0)
	d.Mean = min(max(d.Mean, d.MeanInterval95.Low), d.MeanInterval95.High)
	single := func(delay *float64, i *estimate.Interval, r clock.Reading, way float64) {
		*delay = max(0, *delay-r.Offset)
		_, ends := gained(r.LikelyDrift, 0, way**delay) // the clocks drift while it is on its way
		*i = total(*i, r.Likely, ends)
	}
	for i := range d.Quantiles {
		single(&d.Quantiles[i].Delay, &d.Quantiles[i].Interval, ever, 1)
	}
	for i := range d.Flows {
		single(&d.Flows[i].Mean, &d.Flows[i].MeanInterval95, of(&d.Flows[i]), 0)
	}
	if samples.N() > 0 {
		d.AtMost = make([]float64, len(bounds))
		for i, b := range bounds {
			d.AtMost[i] = samples.CDF(b+r.Offset) * float64(d.Received)
		}
	}
}

// backwards reports whether all messages seem to arrive before they are sent.
func (d *Traffic) backwards(samples estimate.Empirical, added float64) bool {
	most, err := samples.Quantile(1)
	return d.Err == nil && (d.MeanInterval95.High < added || err == nil && most < added)
}

// unsettle says what is known of a delay without the clocks: no delay is negative,
// so the mean is no less than its distance from the least one.
func (d *Traffic) unsettle(why error, w *way) {
	if d.Err != nil {
		return
	}
	least, err := w.samples.Quantile(0)
	if err != nil {
		least = d.MeanInterval95.Low
	}
	added := float64(w.told.added)
	least = max(least, float64(w.told.least)) // some samples may be of the report before
	d.Mean -= added
	if d.backwards(w.samples, added) {
		d.Err = fmt.Errorf("%w (%w), and messages seem to arrive %s before they are sent", estimate.ErrClocks, why, Format(-d.Mean))
		return
	}
	bound := func(i estimate.Interval) estimate.Interval {
		return estimate.Interval{Low: max(0, i.Low-max(least, 0)), High: math.Inf(1), Confidence: confidence}
	}
	d.MeanInterval95, d.Certain = bound(d.MeanInterval95), bound(d.Certain)
	d.Certain.Confidence = certainly
	d.Quantiles = nil
	for i := range d.Flows {
		f := &d.Flows[i]
		f.Mean, f.MeanInterval95 = f.Mean-added, bound(f.MeanInterval95)
	}
}
