package rli

import (
	"math"
	"math/bits"

	"github.com/hoplag/hoplag/hashing"
)

// settle estimates and removes the packets in the buffer. right is the
// reference after them, and known the point that it makes known; both are nil
// if there is none yet.
func (r *Receiver) settle(right *mark, known *point) {
	waiting := r.buffer[:r.waiting]
	if right == nil {
		r.recentre()
	}
	n := uint64(len(waiting))
	estimated := true
	if r.offsets != nil {
		clear(r.offsets[:n])
	}
	switch {
	case r.method == BusyAware && r.link.trusted():
		r.settleBusy(waiting, known)
	case r.left.seen && right != nil:
		r.settleLinear(waiting, right)
		r.counts.Linear += n
	case r.left.seen:
		r.settleFrom(waiting, &r.left)
		r.counts.Left += n
	case right != nil:
		r.settleFrom(waiting, right)
		r.counts.Right += n
	default:
		r.counts.Unestimated += n
		estimated = false
	}
	if estimated {
		r.record(waiting)
	}
	r.waiting = 0
	if r.current > 0 {
		r.periods[0] = r.periods[r.current]
		r.periods[0].held = 0
		r.current, r.leftHere = 0, false
	}
}

// A line is the delay of a packet of a reference's size by eq. (1), relative
// to the origin.
type line struct {
	begin        int64 // departure of the left reference
	delay, slope float64
}

func (l *line) at(t int64) float64 { return l.delay + float64(t-l.begin)*l.slope }

// paperLine returns the line from the left reference to the right one. It is
// level if there is no right one, or if both departed at the same instant.
func (r *Receiver) paperLine(right *mark) line {
	l := line{begin: r.left.departed, delay: float64(r.left.delay)}
	if right != nil && right.departed != r.left.departed {
		l.slope = float64(right.delay-r.left.delay) / float64(right.departed-r.left.departed)
	}
	return l
}

// settleLinear applies eq. (1).
func (r *Receiver) settleLinear(waiting []held, right *mark) {
	if right.departed == r.left.departed {
		r.settleInOrder(waiting, right)
		return
	}
	line, perByte, own := r.paperLine(right), r.linePerByte, r.config.ReferenceBytes
	for i := range waiting {
		h := &waiting[i]
		h.delay = round(line.at(h.time) + longer(h.bytes, own, perByte))
	}
}

// settleInOrder interpolates between references that departed at one instant, as
// packets do that are stamped together: by their order.
func (r *Receiver) settleInOrder(waiting []held, right *mark) {
	step := float64(right.delay-r.left.delay) / float64(len(waiting))
	for i := range waiting {
		h := &waiting[i]
		h.delay = r.left.delay + round(step*float64(i+1)+longer(h.bytes, r.config.ReferenceBytes, r.linePerByte))
	}
}

// settleFrom applies the delay of one reference: the RLI-L estimator (section
// III-C) if it is the left one.
func (r *Receiver) settleFrom(waiting []held, reference *mark) {
	for i := range waiting {
		h := &waiting[i]
		h.delay = reference.delay + round(longer(h.bytes, r.config.ReferenceBytes, r.linePerByte))
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
				h.delay = round(base + r.sending(h.bytes))
				if packets = packets[1:]; len(packets) == 0 {
					continue
				}
			}
		}
		to := end{point: point{place: p.place(p.end, 0)}}
		if index == r.current {
			if known == nil {
				r.level(packets, p, from.point, base)
				continue
			}
			to = end{*known, true}
		}
		if !from.known && !to.known {
			r.settleAlone(packets, p, to.place, base)
			if r.offsets != nil {
				alone := r.spread.bridge(from, to)
				r.scatter(packets, p, &alone)
			}
			continue
		}
		course := r.spread.bridge(from, to)
		if r.offsets != nil {
			r.scatter(packets, p, &course)
		}
		r.compare(&course, packets, p)
		for i := range packets {
			h := &packets[i]
			size := r.sending(h.bytes)
			h.delay = round(base + size + course.at(p.place(h.time, size), size))
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
		h.delay = round(base + size + wait)
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
		wait := max(from.wait, math.Pi/4*r.spread.expect(since, 1e9))
		h.delay = round(base + size + min(wait, from.wait+since))
	}
}

// record adds the packets' delays to their flows and the total.
func (r *Receiver) record(packets []held) {
	if len(packets) == 0 {
		return
	}
	left := r.left.departed
	shift := r.origin - r.centre
	r.flows.fetch(packets)
	r.sumUp(packets, shift, left)
	records := r.flows.records
	for i := range packets {
		h := &packets[i]
		flow := &records[h.at]
		if flow.flow != h.flow || flow.tally == 0 {
			if flow = r.locate(i); flow == nil {
				continue
			}
		}
		flow.enter(left)
		flow.last = h.time
		flow.bytes += uint64(h.bytes)
		delay := h.delay + shift
		flow.sum += delay
		flow.squares.add(square(delay))
	}
	if r.config.Buckets > 0 {
		r.distribute(packets)
	}
}

// sumUp adds the packets' delays to the total.
func (r *Receiver) sumUp(packets []held, shift, left int64) {
	t := &r.total
	if t.tally == 0 {
		t.first, t.last = packets[0].time, left
	}
	t.enter(left)
	t.tally += uint64(len(packets) - 1)
	t.last = packets[len(packets)-1].time
	sum, squares, bytes, sizes := int64(0), uint64(0), uint64(0), uint64(0)
	for i := range packets {
		h := &packets[i]
		delay := h.delay + shift
		sum += delay
		squares += uint64(delay * delay)
		sizes |= magnitude(delay)
		bytes += uint64(h.bytes)
	}
	t.sum += sum
	t.bytes += bytes
	if 2*bits.Len64(sizes)+bits.Len(uint(len(packets))) <= 64 {
		t.squares.add(wide{0, squares})
		return
	}
	for i := range packets {
		t.squares.add(square(packets[i].delay + shift))
	}
}

// locate returns the record of packet i of the buffer if the record is not
// where it should be, or nil if the packet gets none.
func (r *Receiver) locate(i int) *record {
	h := &r.buffer[i]
	h.at = int32(r.flows.find(h.flow))
	if r.flows.records[h.at].tally == 0 && !r.admit(i) {
		return nil
	}
	return &r.flows.records[h.at]
}

// distribute adds the packets' delays to the histograms.
func (r *Receiver) distribute(packets []held) {
	for i := range packets {
		h := &packets[i]
		delay := r.origin + h.delay
		if r.offsets != nil {
			delay += int64(r.offsets[i])
		}
		bucket := bucketOf(delay, r.config.Floor, r.config.Buckets)
		r.histogram[bucket]++
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
		if r.config.Histograms > 0 {
			r.draws++
			r.shared.add(h.flow, bucket, uint64(hashing.Word(r.config.Identity, r.draws)))
			continue
		}
		bump(&r.flows.histogram(int(h.at))[bucket])
	}
}

// admit starts the record of packet i of the buffer at its place, if the draw
// says so and there is room. Otherwise the packet is nowhere.
func (r *Receiver) admit(i int) bool {
	h := &r.buffer[i]
	switch {
	case r.config.Hold < 1 && !r.drawn(r.hold):
		r.counts.Unheld++
	case !r.flows.claim(int(h.at), h.flow) && !r.evict(h):
		r.counts.Shed++
	default:
		flow := &r.flows.records[h.at]
		flow.first, flow.last = h.time, r.left.departed
		if r.tuples != nil {
			r.flows.tuples[h.at] = r.tuples[i]
		}
		return true
	}
	h.at = -1
	return false
}

// drawn reports whether a packet may start a record.
func (r *Receiver) drawn(threshold uint64) bool {
	r.draws++
	return hashing.Sampled(uint64(hashing.Word(r.config.Identity, r.draws)), threshold) == 1
}

// round returns the nearest whole number. The conversion rounds towards zero,
// so it needs a positive number; 2^40 ns are 18 minutes.
func round(x float64) int64 {
	const up = 1 << 40
	return int64(x+(up+0.5)) - up
}
