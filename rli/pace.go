package rli

import (
	"cmp"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A pace is what the receiver knows about the time that packets take to send, and about stamps.
type pace struct {
	perByte float64          // ns that a byte takes; 0 if not known
	extra   float64          // ns that a packet takes beside its bytes
	slack   float64          // ns that time stamps may be off
	late    estimate.Moments // how much later references depart after their packets than their bytes take
	least   float64          // ns that references take that depart directly behind their packets
	grain   int64            // of departures' stamps: the largest power of ten that divides them all
	seen    int              // references
	meter   meter            // learns the rate
}

const (
	tolerance    = 2       // ns that time stamps may be off if nothing is known
	coarsest     = 1e6     // ns: the largest grain of time stamps
	rounding     = 1.0 / 6 // variance of the difference of two whole nanoseconds
	mostExtra    = 64      // bytes more than its size that a packet takes at most
	bySizeErrors = 4       // standard errors that are more than chance
	wander       = 1e-4    // no clock drifts by more in the time to send the largest packet,
	largest      = 9000    // of so many bytes
	large        = 1500    // bytes of most large ones
)

// sending returns how long the link takes to send a packet, and own a reference.
func (p *pace) sending(bytes int32) float64 { return float64(bytes)*p.perByte + p.extra }
func (r *tracker) own() float64             { return r.sending(int32(r.config.ReferenceBytes)) }

// lean returns how much longer than this a typical packet takes to send.
func (r *tracker) lean(size float64) float64 { return cmp.Or(r.spread.sizes.mean, size) - size }

// perLineByte returns the ns of a byte on straight lines: without a rate, what references show beyond chance.
func (r *tracker) perLineByte() float64 {
	switch c := &r.bySize; {
	case r.config.Rate > 0:
		return r.perByte
	case c.seen > 0 && c.seen*c.seen > bySizeErrors*bySizeErrors*c.expected*r.lineError.mean:
		return c.seen / c.expected
	}
	return 0
}

// follows reports whether the packet before a reference is the one that it names: the size matches, and no
// packet was lost since the reference before, or it departed directly behind it. If another receiver may measure
// it, the reference was sent at once: nothing came in between.
func (r *Receiver) follows(p *ReferencePacket, received int64, before departure, missing int32, known bool) bool {
	between := before.flow == 0 && float64(p.After) > r.slack
	if p.Behind == 0 || between || !before.packet || before.bytes != int32(p.Behind) || received < before.time {
		return false
	}
	took, own, whole := float64(received-before.time), float64(r.config.ReferenceBytes)*r.perByte, known && missing == 0 && before.flow != 0
	if whole && p.After == 0 { // nothing came in between
		r.least = min(took, cmp.Or(r.least, took))
	}
	late, directly := took-own, cmp.Or(own+r.extra, r.least)
	near := directly > 0 && took <= directly+r.slack+float64(p.After)
	// If it came while that was being sent, it departed directly behind it.
	if missing == 0 && r.perByte > 0 && float64(p.After) <= r.sending(before.bytes) && late <= mostExtra*r.perByte+r.slack {
		r.late.Add(late)
		r.keepPace()
	}
	return near || whole
}

// keepPace sets, whenever references have doubled in number, what the link spends on a packet besides its bytes, such
// as a preamble, and how far off stamps are: hardly any by six deviations.
func (r *tracker) keepPace() {
	n := r.late.N()
	if n < acquainted || n&(n-1) != 0 {
		return
	}
	extra, slack := r.late.Mean(), max(r.leastSlack(), 6*math.Sqrt(max(r.late.PopulationVariance()-rounding, 0)))
	if extra <= 1 {
		extra = 0
	}
	if math.Abs(extra-r.extra) > 0.5 || math.Abs(slack-r.slack) > 0.1*r.slack {
		r.extra, r.slack = extra, slack
		r.link.relax(slack)
	}
}

// leastSlack is how far off stamps may be by whole grains, and clocks that drift.
func (r *tracker) leastSlack() float64 {
	slack := max(tolerance, wander*largest*r.perByte)
	if r.seen >= acquainted {
		slack = max(slack, float64(r.grain))
	}
	return slack
}

// grind takes in the stamp of a reference's departure: all may be whole microseconds.
func (r *tracker) grind(received int64) {
	if r.seen++; r.seen == 1 {
		r.grain = coarsest
	}
	for received%r.grain != 0 {
		r.grain /= 10
	}
	if least := r.leastSlack(); least > r.slack {
		r.slack = least
		r.link.relax(least)
	}
}

// A meter learns the rate of the link. Once a reference has joined the queue, at the latest the least delay after it
// was sent, packets depart back to back until it does. They take the time of their bytes, and an overhead each.
type meter struct {
	spans              [64]span
	n                  int
	told               uint32 // by the reference before, as the others
	passed, references uint64
}

// A span is the time in which packets departed back to back.
type span struct{ time, bytes, packets float64 }

// add reports whether there are enough spans for a rate.
func (m *meter) add(s span) bool {
	m.spans[m.n] = s
	m.n++
	return m.n == len(m.spans)
}

// rate returns the ns of a byte and of a packet beside, the greatest error and mean length of spans.
func (m *meter) rate() (perByte, extra, worst, mean float64) {
	var bb, bp, pp, bt, pt, longest float64
	for _, s := range m.spans {
		longest = max(longest, s.bytes)
		bb, bp, pp = bb+s.bytes*s.bytes, bp+s.bytes*s.packets, pp+s.packets*s.packets
		bt, pt = bt+s.bytes*s.time, pt+s.packets*s.time
		mean += s.time / float64(len(m.spans))
	}
	if d := bb*pp - bp*bp; d > 1e-6*bb*pp {
		perByte, extra = (bt*pp-pt*bp)/d, (pt*bb-bt*bp)/d
	}
	if extra < 1 || perByte <= 0 {
		perByte, extra = bt/bb, 0
	}
	for _, s := range m.spans {
		worst = max(worst, math.Abs(s.time-perByte*s.bytes-extra*s.packets))
	}
	m.n = 0
	if longest < large { // whole nanoseconds of shorter ones do not tell what a large packet takes
		perByte = 0
	}
	return perByte, extra, worst, mean
}

// measure takes in what a reference tells of the rate, and reports whether it is time for learnRate.
func (r *Receiver) measure(p *ReferencePacket, received int64, before departure, named bool) bool {
	m := &r.meter
	whole := r.account.told-m.told == uint32(r.waiting) && r.passed == m.passed && r.references == m.references+1
	m.told, m.passed, m.references = r.account.told, r.passed, r.references
	if !whole || r.busy && r.link.trusted() {
		return false
	}
	s, own := span{}, float64(r.config.ReferenceBytes)
	joined, bytes := p.Sent+r.order.extent().low, own
	for i := r.waiting - 1; i >= 0 && r.buffer[i].time >= joined; i-- {
		s = span{float64(received - r.buffer[i].time), bytes, s.packets + 1}
		bytes += float64(r.buffer[i].bytes)
	}
	if s.packets == 0 {
		return false
	}
	return m.add(s) || named && s.packets > 1 && m.add(span{float64(received - before.time), own, 1})
}

// learnRate switches to the meter's rate, unless the link is trusted at another. The buffer is empty.
func (r *Receiver) learnRate(received int64) {
	perByte, extra, worst, mean := r.meter.rate()
	known := r.perByte > 0
	same := math.Abs(perByte-r.perByte)*large+math.Abs(extra-r.extra) <= r.slack
	if worst > max(2*r.slack, mean/100) || perByte <= 0 || known && (same || r.busy && r.link.trusted()) {
		return
	}
	r.perByte, r.extra, r.busy, r.late = perByte, extra, true, estimate.Moments{}
	r.slack = r.leastSlack()
	r.class, *r.spread = class{}, *newSpread() // at another rate, packets wait otherwise
	r.link.relax(r.slack)
	r.current, r.leftHere, r.turns = 0, false, turns{}
	r.periods[0] = period{first: received, lead: r.own()}
}

// Rate returns the link's rate in bits per second: Config.Rate or, if that is 0 or wrong, what Auto learned, if any.
func (r *Receiver) Rate() float64 { return 8e9 / cmp.Or(r.perByte, math.Inf(1)) }
