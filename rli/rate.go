package rli

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A meter learns the rate of the link. A reference joins the queue when it is
// sent, or later by at most the least delay seen. From then until it departs,
// packets depart back to back:
//
//	time = time of a byte · bytes + overhead · packets
//
// Least squares over several of these spans give both. If any span is off that
// line by more than time stamps are, the link is not of this kind, or it sent
// packets that were not reported to the receiver, and nothing is learned.
type meter struct {
	spans [64]span
	n     int

	// What was counted up to the reference before.
	told               uint32
	passed, references uint64
}

// A span is the time in which packets departed back to back.
type span struct{ time, bytes, packets float64 }

// add takes in a span, and reports whether there are enough for a rate.
func (m *meter) add(s span) bool {
	m.spans[m.n] = s
	m.n++
	return m.n == len(m.spans)
}

// rate returns how many ns a byte takes and a packet takes beside its bytes,
// the greatest error of a span, and the mean length of spans. Then it begins
// anew.
func (m *meter) rate(overhead float64) (perByte, extra, worst, mean float64) {
	var bb, bp, pp, bt, pt float64
	for _, s := range m.spans {
		bb, bp, pp = bb+s.bytes*s.bytes, bp+s.bytes*s.packets, pp+s.packets*s.packets
		bt, pt = bt+s.bytes*s.time, pt+s.packets*s.time
		mean += s.time / float64(len(m.spans))
	}
	if d := bb*pp - bp*bp; d > 1e-6*bb*pp {
		perByte, extra = (bt*pp-pt*bp)/d, (pt*bb-bt*bp)/d
		if extra < 1 {
			perByte, extra = bt/bb, 0
		}
	} else {
		perByte = (bt + overhead*pt) / (bb + 2*overhead*bp + overhead*overhead*pp)
		extra = overhead * perByte
	}
	for _, s := range m.spans {
		worst = max(worst, math.Abs(s.time-perByte*s.bytes-extra*s.packets))
	}
	m.n = 0
	return perByte, extra, worst, mean
}

// measure takes in what a reference reveals about the link's rate, before the
// packets in the buffer are estimated: all packets since the one before must
// wait there. It reports whether it is time for learnRate.
func (r *Receiver) measure(p *ReferencePacket, received int64, before departure, named bool) bool {
	m := &r.meter
	whole := r.account.told-m.told == uint32(r.waiting) && r.counts.Passed == m.passed && r.counts.References == m.references+1
	m.told, m.passed, m.references = r.account.told, r.counts.Passed, r.counts.References
	if !whole || r.method == BusyAware && r.link.trusted() {
		return false
	}
	s, own := span{}, float64(r.config.ReferenceBytes)
	joined, bytes := p.Sent+r.guard.extent().low, own
	for i := r.waiting - 1; i >= 0 && r.buffer[i].time >= joined; i-- {
		s = span{float64(received - r.buffer[i].time), bytes, s.packets + 1}
		bytes += float64(r.buffer[i].bytes)
	}
	if s.packets == 0 {
		return false
	}
	return m.add(s) || named && s.packets > 1 && m.add(span{float64(received - before.time), own, 1})
}

// learnRate switches to the rate of the meter, unless the link is trusted at
// another one. The buffer must be empty.
func (r *Receiver) learnRate(received int64) {
	perByte, extra, worst, mean := r.meter.rate(float64(r.config.Overhead))
	known := r.perByte > 0
	if worst > max(2*r.slack, mean/100) || perByte <= 0 || known && r.method == BusyAware && r.link.trusted() {
		return
	}
	const large = 1500 // bytes
	if known && math.Abs(perByte-r.perByte)*large+math.Abs(extra-r.extra) <= r.slack {
		return
	}
	r.perByte, r.extra = perByte, extra
	if r.config.Rate > 0 {
		r.linePerByte = perByte
	}
	r.counts.Rates++
	r.method = BusyAware
	r.pace = estimate.Moments{}
	r.link.relax(r.slack)
	r.current, r.leftHere = 0, false
	r.periods[0] = period{first: received, lead: r.sending(int32(r.config.ReferenceBytes))}
	r.probe.given, r.sample.given = false, false
	r.lessons = lessons{}
}

// Rate returns the rate of the link in bits per second: Config.Rate or, if
// that is 0 or wrong, what references have shown; see Counts.Rates. It is 0 if
// unknown. BusyAware and Auto learn it if Config.Sample is 1.
func (r *Receiver) Rate() float64 {
	if r.perByte == 0 {
		return 0
	}
	return 8e9 / r.perByte
}
