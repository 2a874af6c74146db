package flows

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/hashing"
)

const (
	// confidence is that of the intervals of delays, and deviations the distance from the middle of a normal
	// distribution's interval to its ends, at that.
	confidence, deviations = 0.975, 2.24

	// patience is for how many cuts a flow is remembered of which a packet may be on its way.
	patience = 300
)

// A Delay is how long packets of a flow took, in nanoseconds.
type Delay struct {
	Flow hashing.Flow `json:",string"` // text, because JSON's numbers have 53 bits

	// Mean is that of the packets received, and MeanInterval95 holds it in at least 95 of 100 reports. It is exact
	// if no packet of the flow was lost, or on its way when the report began or ended. Packets whose times are
	// hidden by losses, or by a beginning, are assumed to be like the others.
	Mean           float64
	MeanInterval95 estimate.Interval

	// Sent and Received are the packets that passed the points in the report, and Lost is how many more were sent:
	// lost, or on their way when it ended and not when it began.
	Sent, Received, Lost uint64
	Came                 estimate.Interval `json:"-"` // when those received came, on average, by the clock of [Meter.Add]'s intervals
}

// A Meter measures the delays of each flow by the areas of its cells, which no other flow has. It is for one goroutine at a time.
type Meter struct {
	areas   *areas.Areas
	length  float64 // of a cut, ns
	all     map[hashing.Flow]*flow
	numbers []*flow   // by number
	free    []int     // numbers of none
	most    int       // flows of a report
	limits  [2]uint64 // the least, of the places that there was room for, in the patience that began last, and in the one before
	reports []report  // that were not told yet; the last has not ended
}

// A report is that, and which flows had no room in it.
type report struct {
	from   int    // the cut at which it began
	passed int    // flows with a number that passed
	limit  uint64 // points had room for places up to this in each cut
	lacks  int    // most flows of a cut that had no room, about
}

// A flow is one of them. Its cells are those from cells times its number on.
type flow struct {
	number int
	late   bool // there was no room for it or others, perhaps, when packets were sent that may come
	passed int  // the latest cut in which a packet passed
	told   total
	came   []estimate.Interval // when packets came, added up, in each report that was not told yet, up to the latest with any
}

// A total is what spans tell of a flow in a report.
type total struct {
	sent, received uint64
	exact, lossy   span    // of spans that lost none, and of others
	unknown        span    // of which no time is known
	lost           float64 // of the packets of lossy, as expected
	ends, sure     edges   // in spans that are taken to have lost none, and in exact ones
}

// A span is how long some packets took, and how long equally many of all flows did at the same times.
type span struct{ packets, time, variance, usual float64 }

// Edges are about packets on their way when the report began and when it ended: how many, the squares of that
// span by span, and what bounds their ages.
type edges [2]struct{ packets, squares, least, most float64 }

// New returns a Meter of so many flows a report, of cuts of this length, the first of which begins at a time in nanoseconds. Packets
// may be under way then. There is room for twice as many flows: those of a report that has not been told yet keep theirs.
func New(most int, cut time.Duration, begin int64, underWay bool) *Meter {
	m := &Meter{areas: areas.New([]int{2 * cells * most}, 64, 32), length: float64(cut), all: map[hashing.Flow]*flow{}, most: most}
	m.reports = []report{{limit: math.MaxUint64}}
	m.limits = [2]uint64{math.MaxUint64, math.MaxUint64}
	m.areas.Begin(begin, underWay)
	return m
}

// End ends a report with the cut added last.
func (m *Meter) End() {
	m.reports = append(m.reports, report{from: m.areas.Cuts(), limit: math.MaxUint64})
}

// Add takes what both points counted in a cut that ends at a time, by the clock of the stamps of what was sent. It removes flows
// from the tables for which the other point had no room. Packets received came in an interval, by any clock.
func (m *Meter) Add(end int64, up, down *Table, came estimate.Interval) {
	limit, now := min(up.limit, down.limit), m.areas.Cuts()+1
	up.narrow(limit)
	down.narrow(limit)
	if now%patience == 0 {
		m.limits = [2]uint64{math.MaxUint64, m.limits[0]}
	}
	r := &m.reports[len(m.reports)-1]
	r.limit, m.limits[0] = min(r.limit, limit), min(m.limits[0], limit)
	lacks := float64(max(len(up.rows), len(down.rows))) * (math.MaxUint64/(float64(limit)+1) - 1)
	if limit < math.MaxUint64 {
		for id, f := range m.all {
			f.late = f.late || place(id) > limit
		}
	}
	for _, t := range []*Table{up, down} {
		for id := range t.rows {
			if t == up || up.rows[id] == nil {
				lacks += m.cut(id, up, down, r, came)
			}
		}
	}
	r.lacks = max(r.lacks, int(lacks))
	m.areas.Next(end)
}

// cut adds what both points counted of a flow, and returns how many flows had no room for that.
func (m *Meter) cut(id hashing.Flow, up, down *Table, r *report, came estimate.Interval) float64 {
	f, now := m.all[id], m.areas.Cuts()+1
	if f == nil && (r.passed >= m.most || len(m.free) == 0 && len(m.numbers) >= 2*m.most) {
		r.passed, m.limits[0] = m.most, 0 // or a flow would be counted in part
		return 1
	} else if f == nil {
		f = m.enter(id)
	}
	if f.passed <= r.from {
		r.passed++
	}
	f.passed = now
	f.came = append(f.came, make([]estimate.Interval, len(m.reports)-len(f.came))...)
	in := &f.came[len(f.came)-1]
	var none row
	sent, received := cmp.Or(up.rows[id], &none), cmp.Or(down.rows[id], &none)
	for k := range sent {
		if s, r := &sent[k], &received[k]; s.tally|r.tally != 0 {
			in.Low, in.High = in.Low+came.Low*float64(r.count()), in.High+came.High*float64(r.count())
			m.areas.Cut(cells*f.number+k, areas.CellPair{SentSum: s.sum, SentTally: s.tally, ReceivedSum: r.sum, ReceivedTally: r.tally})
		}
	}
	return 0
}

// enter gives a flow a number, for which there is room.
func (m *Meter) enter(id hashing.Flow) *flow {
	if len(m.free) == 0 {
		m.free, m.numbers = append(m.free, len(m.numbers)), append(m.numbers, nil)
	}
	last := len(m.free) - 1
	f := &flow{number: m.free[last], passed: -1, late: place(id) > min(m.limits[0], m.limits[1])}
	m.free, m.all[id], m.numbers[f.number] = m.free[:last], f, f
	return f
}

// Report tells of the oldest report that ended: the flows that received packets and whose mean is known to within itself, slowest first,
// and about how many more there were at least. Scatter is the variance of delays over the square of their mean, of all packets or, if it
// is more, of exponential ones. Whole says that no packet, if waited for so many ns, was under way at the beginning or lost since.
func (m *Meter) Report(scatter, waited float64, whole bool) (known []Delay, unknown int) {
	if whole {
		m.areas.Empty(waited)
	}
	r, to := m.reports[0], m.reports[1].from
	m.reports = append(m.reports[:0], m.reports[1:]...)
	all, _ := m.areas.Transit(r.from, to, nil) // learns what was lost
	lost, _, _ := m.areas.Losses(to)
	m.areas.Spans(r.from, to, func(s areas.Span) {
		if f := m.numbers[s.Cell/cells]; f != nil { // or it passed so long ago that it is forgotten
			f.told.add(&s, lost > 0, whole && !f.late, f.late && s.Open) // which lack packets, as long as some are on their way
		}
	})
	m.areas.Settle(to)
	for id, f := range m.all {
		d := f.told.delay(&all, scatter, float64(to-r.from)*m.length)
		if d.Flow = id; len(f.came) > 0 {
			d.Came = estimate.Interval{Low: f.came[0].Low / float64(d.Received), High: f.came[0].High / float64(d.Received), Confidence: 1}
			f.came = f.came[1:]
		}
		if i := d.MeanInterval95; d.Received > 0 && i.High-i.Low < 2*d.Mean && place(id) <= r.limit {
			known = append(known, d)
		} else if d.Sent+d.Received > 0 {
			unknown++
		}
		if f.told = (total{}); to-f.passed > patience || f.passed <= to && m.areas.Ended(cells*f.number, cells) {
			delete(m.all, id)
			m.numbers[f.number], m.free = nil, append(m.free, f.number)
		}
	}
	slices.SortFunc(known, func(a, b Delay) int {
		return cmp.Or(-cmp.Compare(a.Mean, b.Mean), cmp.Compare(a.Flow, b.Flow))
	})
	return known, max(unknown, r.lacks)
}

// add adds a span, where some flows lose packets or none does. Delays of packets received are the time that
// passed in the report, and the ages when it began of those on their way then, less the ages when it ended.
func (t *total) add(s *areas.Span, losses, whole, unknown bool) {
	t.sent += uint64(s.Sent)
	t.received += uint64(s.Received)
	n, a, b := float64(s.Received), &s.Ends[0], &s.Ends[1]
	if unknown || math.IsInf(s.Variance, 1) || s.Joined > 0 { // copies hide some of the time
		t.unknown.add(n, 0, math.Inf(1), s.Usual)
		return
	}
	exact := whole || !s.Open && s.Variance == 0 && s.Aged == 0
	if exact {
		t.exact.add(n, s.Area, 0, s.Usual)
		t.sure.add(s)
	} else {
		t.lossy.add(n, s.Area-s.Aged, s.Variance, s.Usual)
	}
	if exact || s.Open && !losses {
		t.ends.add(s)
		return
	}
	t.lossy.add(0, (a.Least+a.Most-b.Least-b.Most)/2, sq(a.Most-a.Least)/4+sq(b.Most-b.Least)/4, 0)
	t.lost += s.Gone[1]
}

func (x *span) add(packets, time, variance, usual float64) {
	x.packets += packets
	x.time += time
	x.variance += variance
	x.usual += usual
}

// of returns how long other packets took, given the mean of these: as much longer as packets of all flows did.
func (x *span) of(others *span, mean float64) float64 {
	if x.usual <= 0 {
		return others.packets * mean
	}
	return others.usual * mean * x.packets / x.usual
}

func (e *edges) add(s *areas.Span) {
	for i, b := range s.Ends {
		e[i].packets += b.Packets
		e[i].squares += sq(b.Packets)
		e[i].least += b.Least
		e[i].most += b.Most
	}
}

// delay says what is known of a flow. Packets of which nothing is known are taken to be like others, and those
// of lossy spans like exact ones, as far as these tell more.
func (t *total) delay(all *areas.Transit, scatter, length float64) Delay {
	d := Delay{Sent: t.sent, Received: t.received, Lost: max(t.sent, t.received) - t.received}
	x, n := &t.exact, float64(t.received)
	owed, unsure := t.sure.owed(x.time/x.packets, scatter, all)
	like := (x.time + owed) / x.packets
	mean := max(like, (x.time+owed+t.lossy.time)/(n-t.unknown.packets))
	var y, z span
	for range 2 { // lossy spans alone are no guide to the mean, and so to how sure others are
		y, z = t.lossy, t.unknown
		single := scatter * sq(mean) // variance of a packet's delay
		// A packet that takes longer is less often in an exact span, by what cells with as many packets lose in that
		// time: a bias. Exact spans of the same times may be the fast ones, as those of all times are.
		bias := min(t.lost*x.packets/n/length*single, math.Sqrt(single))
		doubt := single/x.packets + unsure/sq(x.packets) + sq(bias)
		for _, o := range [...]*span{&y, &z} {
			guess := x.of(o, like)
			variance := o.packets*single + sq(o.packets)*doubt + sq(guess-o.packets*like)
			if o.variance > 0 && variance < math.Inf(1) {
				part := 1 / (1 + variance/o.variance)
				o.time += part * (guess - o.time)
				o.variance = part * variance
			}
		}
		mean = (x.time + y.time + z.time) / n
	}
	time, low, high := x.time+y.time+z.time, math.Inf(-1), math.Inf(1)
	if x.packets == n {
		low, high = time+t.ends[0].least-t.ends[1].most, time+t.ends[0].most-t.ends[1].least
	}
	owed, _ = t.ends.owed(mean, scatter, all)
	time = min(max(time+owed, low), high)
	_, unsure = t.ends.owed(max(mean, time/n), scatter, all) // most of the time may be owed
	half := deviations * math.Sqrt(y.variance+z.variance+unsure)
	low, high = max(low, time-half), min(high, time+half)
	d.Mean = time / n
	d.MeanInterval95 = estimate.Interval{Low: low / n, High: high / n, Confidence: confidence}
	return d
}

// owed estimates by how much packets took longer in all than in the report, and the variance of that. A packet
// is seen on its way in proportion to its delay, and its age is uniform up to that: with moments m of delays the
// mean is m₂/2m₁, and the mean square m₃/3m₁. The third is at most the second times the greatest delay. Packets
// of one span may go together. A burst leaves its slow packets behind; only bounds say how slow.
func (e *edges) owed(mean, scatter float64, all *areas.Transit) (time, variance float64) {
	greatest := max(all.Greatest, mean)
	second := min((1+scatter)*sq(mean), mean*greatest) // as no delay is greater
	age := second / (2 * mean)
	for i, times := range [2]float64{1, -1} {
		if a := &e[i]; a.packets != 0 && mean > 0 && !all.Bursts {
			time += times * min(max(a.packets*age, a.least), a.most)
			variance += a.squares * (second*greatest/(3*mean) - sq(age))
		} else {
			time += times * (a.least + a.most) / 2
			variance += sq(a.most-a.least) / 4
		}
	}
	return time, variance
}

func sq(x float64) float64 { return x * x }
