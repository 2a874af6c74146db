package rli

import (
	"math"
	"math/bits"
)

// settle estimates and removes the packets in the buffer. right is the
// reference after them, and known the point that it makes known; both are nil
// if there is none yet.
func (r *Receiver) settle(right *mark, known *point) {
	waiting := r.buffer[:r.waiting]
	n := uint64(len(waiting))
	if right == nil {
		r.recentre()
	}
	why := r.doubts
	if right == nil && r.adrift() {
		why |= unfollowed
		r.counts.Unfollowed += n
	}
	switch {
	case n == 0:
	case r.bridging():
		r.settleBusy(waiting, known)
		r.record(waiting, why)
	case r.left.seen || right != nil:
		r.settleLine(waiting, right)
		r.record(waiting, why)
		r.counts.Linear += n
	default:
		r.counts.Unestimated += n
		for i := range waiting {
			if flow := &r.flows.records[r.flows.find(waiting[i].flow)]; flow.tally > 0 {
				flow.doubt(why|unfollowed, 1)
			}
		}
	}
	r.waiting = 0
	if r.current > 0 {
		r.periods[0] = r.periods[r.current]
		r.periods[0].held = 0
		r.current, r.leftHere = 0, false
	}
}

// bridging reports whether packets are estimated within busy periods: the link
// is trusted and, with Auto, straight lines are no closer.
func (r *Receiver) bridging() bool {
	return r.method == BusyAware && r.link.trusted() && (r.config.Method != Auto || !r.contest.lines())
}

// adrift reports whether far more packets came since the latest reference than
// lately did.
func (r *Receiver) adrift() bool {
	return float64(r.account.told-r.left.told) > 2*r.usual+fewest
}

// fewest is a number of packets without a reference that is never too many.
const fewest = 256

// A line is the delay of a packet of a reference's size by eq. (1), relative
// to the origin. Between references that departed at the same instant, as
// packets do that are stamped together, it is level.
type line struct {
	begin, end   int64 // departures of the references
	delay, slope float64
}

func (l *line) at(t int64) float64 { return l.delay + float64(min(t, l.end)-l.begin)*l.slope }

// lineBetween returns the line from one reference to another.
func (r *Receiver) lineBetween(from, to *mark) line {
	if to.departed <= from.departed {
		return line{begin: to.departed, end: to.departed, delay: float64(from.delay+to.delay) / 2}
	}
	return line{from.departed, to.departed, float64(from.delay), float64(to.delay-from.delay) / float64(to.departed-from.departed)}
}

// lineTo returns the line from the left reference to the right one. If one of
// them is missing, it is level: the RLI-L estimator (section III-C) if it is the
// right one.
func (r *Receiver) lineTo(right *mark) line {
	switch {
	case right == nil:
		return line{begin: r.left.departed, end: r.left.departed, delay: float64(r.left.delay)}
	case !r.left.seen:
		return line{begin: right.departed, end: right.departed, delay: float64(right.delay)}
	}
	return r.lineBetween(&r.left, right)
}

// settleLine applies eq. (1).
func (r *Receiver) settleLine(waiting []held, right *mark) {
	l, perByte, own, error := r.lineTo(right), r.perLineByte(), r.config.ReferenceBytes, float32(r.lineSpread(right))
	for i := range waiting {
		h := &waiting[i]
		h.delay = round(l.at(h.time) + longer(h.bytes, own, perByte))
		h.error = error
	}
}

// longer returns how much longer the link takes to send a packet than a
// reference: the last term of eq. (1).
func longer(bytes int32, reference int, perByte float64) float64 {
	return float64(int(bytes)-reference) * perByte
}

// settleBusy estimates waiting times one busy period after another. In each
// period the waiting time is known from some point on: its beginning, where
// nothing waits, or the left reference. It is known again at the new reference
// if that is in the same period, and otherwise at the period's end, where
// nothing waits. In between it follows a bridge. If the period is not over and
// no reference has come, because the buffer is full or was flushed, level
// takes over.
func (r *Receiver) settleBusy(waiting []held, known *point) {
	r.periods[r.current].end = r.latest.time
	idle := 0
	for index := range r.periods[:r.current+1] {
		p := &r.periods[index]
		packets := waiting[p.held:]
		if index < r.current {
			packets = waiting[p.held:r.periods[index+1].held]
		}
		if len(packets) == 0 {
			continue
		}
		from, _ := r.start(index)
		base := r.link.base(p.end)
		if h := &packets[0]; p.place(h.time, r.sending(h.bytes)) <= 0 {
			idle++ // the first of the period, the only one that did not wait
			if !from.known {
				h.delay, h.error = round(base+r.sending(h.bytes)), 0
				packets = packets[1:]
			}
		}
		to := end{point: point{place: p.place(p.end, 0)}}
		switch {
		case index == r.current && known == nil:
			r.level(packets, p, from.point, base)
			continue
		case index == r.current:
			to = end{*known, true}
		case !from.known:
			r.settleAlone(packets, p, to.place, base)
			continue
		}
		if len(packets) == 0 {
			continue
		}
		course := r.spread.bridge(from, to)
		r.compare(&course, packets, p)
		for i := range packets {
			h := &packets[i]
			size := r.sending(h.bytes)
			wait, error := course.at(p.place(h.time, size), size)
			h.delay, h.error = round(base+size+wait), float32(error)
		}
	}
	r.counts.Busy += uint64(len(waiting) - idle)
	r.counts.Idle += uint64(idle)
}

// settleAlone estimates the packets of a period without any known waiting
// time.
func (r *Receiver) settleAlone(packets []held, p *period, end, base float64) {
	s, perByte, extra := r.spread, r.perByte, r.extra
	for i := range packets {
		h := &packets[i]
		size := float64(h.bytes)*perByte + extra
		since, wait := p.place(h.time, size), 0.0
		if left := end - since; since > 0 && left > 0 {
			rest := left - size
			if rest < 0 {
				rest = 0
			}
			if wait = s.expect(since, rest); wait > since {
				wait = since // the link had not been busy for longer
			}
		}
		h.delay, h.error = round(base+size+wait), float32(predict(alone*wait*wait, since))
	}
}

// level estimates the packets of an unfinished period from its last known
// point on. It holds the waiting time of that point, or takes that of a
// Brownian motion from zero that has stayed positive so far, a meander,
// whichever is longer.
func (r *Receiver) level(packets []held, p *period, from point, base float64) {
	for i := range packets {
		h := &packets[i]
		size := r.sending(h.bytes)
		since := max(p.place(h.time, size)-from.place, 0)
		moved := r.spread.expect(since, 1e9)
		wait := max(from.wait, math.Pi/4*moved)
		h.delay, h.error = round(base+size+min(wait, from.wait+since)), float32(moved)
	}
}

// record adds the packets' delays to their flows and the total.
func (r *Receiver) record(packets []held, why doubts) {
	shift, gap := r.origin-r.centre, r.gap
	r.flows.fetch(packets)
	r.sumUp(packets, shift, why)
	records := r.flows.records
	for i := range packets {
		h := &packets[i]
		flow := &records[h.at]
		if flow.flow != h.flow || flow.tally == 0 {
			if flow = r.locate(h); flow == nil {
				continue
			}
		}
		flow.enter(1, gap, h.error)
		if why != 0 && (h.error > 0 || why != unfollowed) {
			flow.doubt(why, 1)
		}
		delay := h.delay + shift
		flow.sum += delay
		flow.squares.add(square(delay))
	}
	if r.config.Buckets > 0 {
		r.distribute(packets)
	}
}

// sumUp adds the packets' delays to the total.
func (r *Receiver) sumUp(packets []held, shift int64, why doubts) {
	t := &r.total
	if t.tally == 0 {
		t.first = r.gap
	}
	sum, squares, sizes, errors, exact := int64(0), uint64(0), uint64(0), float32(0), 0
	for i := range packets {
		h := &packets[i]
		delay := h.delay + shift
		sum += delay
		squares += uint64(delay * delay)
		sizes |= magnitude(delay)
		errors += h.error
		if h.error == 0 {
			exact++
		}
	}
	t.enter(uint64(len(packets)), r.gap, errors)
	if why != unfollowed {
		exact = 0
	}
	if why != 0 {
		t.doubt(why, uint64(len(packets)-exact))
	}
	t.sum += sum
	if 2*bits.Len64(sizes)+bits.Len(uint(len(packets))) <= 64 {
		t.squares.add(wide{0, squares})
		return
	}
	for i := range packets {
		t.squares.add(square(packets[i].delay + shift))
	}
}

// locate returns the record of a packet of the buffer if the record is not
// where it should be, or nil if the packet gets none.
func (r *Receiver) locate(h *held) *record {
	h.at = int32(r.flows.find(h.flow))
	flow := &r.flows.records[h.at]
	if flow.tally > 0 {
		return flow
	}
	if !r.flows.claim(int(h.at), h.flow) && !r.evict(h) {
		r.counts.Shed++
		h.at = -1
		return nil
	}
	flow = &r.flows.records[h.at]
	flow.first = r.gap
	return flow
}

// distribute adds the packets' delays to the histograms.
func (r *Receiver) distribute(packets []held) {
	for i := range packets {
		h := &packets[i]
		bucket := bucketOf(r.origin+h.delay, r.config.Floor, r.config.Buckets)
		if h.at < 0 {
			continue
		}
		if flow := &r.flows.records[h.at]; flow.flow != h.flow || flow.count() == 0 {
			// Another record was evicted since, and this one moved or
			// disappeared.
			if h.at = int32(r.flows.find(h.flow)); r.flows.records[h.at].count() == 0 {
				continue
			}
		}
		bump(&r.flows.histogram(int(h.at))[bucket])
	}
}

// round returns the nearest whole number. The conversion rounds towards zero,
// so it needs a positive number; 2^41 ns are 36 minutes.
func round(x float64) int64 {
	const up = 1 << 41
	return int64(x+(up+0.5)) - up
}
