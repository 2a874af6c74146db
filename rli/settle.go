package rli

import (
	"math"

	"github.com/hoplag/hoplag/hashing"
)

// settle estimates the packets in the buffer, which it empties. right is the
// reference after them, and known the point that it makes known; nil if there
// is none yet.
func (r *Receiver) settle(right *mark, known *point) {
	waiting := r.buffer[:r.waiting]
	n := uint64(len(waiting))
	switch {
	case r.config.Method == BusyAware && r.link.trusted():
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
	}
	r.waiting = 0
	if r.current > 0 {
		r.periods[0] = r.periods[r.current]
		r.current, r.leftHere = 0, false
	}
}

// settleLinear is eq. (1).
func (r *Receiver) settleLinear(waiting []held, right *mark) {
	left := &r.left
	slope := 0.0
	if right.received != left.received {
		slope = float64(right.delay-left.delay) / float64(right.received-left.received)
	}
	for i := range waiting {
		h := &waiting[i]
		rise := float64(h.time-left.received)*slope + r.longer(h.bytes)
		r.record(h.flow, h.bytes, h.time, left.delay+round(rise))
	}
}

// settleFrom takes the delay of one reference.
func (r *Receiver) settleFrom(waiting []held, reference *mark) {
	for i := range waiting {
		h := &waiting[i]
		r.record(h.flow, h.bytes, h.time, reference.delay+round(r.longer(h.bytes)))
	}
}

// estimateLeft is the RLI-L estimator (section III-C).
func (r *Receiver) estimateLeft(f hashing.Flow, bytes int32, t int64) {
	if !r.left.seen {
		r.counts.Unestimated++
		return
	}
	r.counts.Left++
	r.record(f, bytes, t, r.left.delay+round(r.longer(bytes)))
}

// longer is how much longer than a reference the link takes to send a packet:
// the last term of eq. (1).
func (r *Receiver) longer(bytes int32) float64 {
	return float64(int(bytes)-r.config.ReferenceBytes) * r.perByte
}

// settleBusy estimates waiting times busy period by busy period. In each one
// there is a point from which they are known: its beginning, where nothing
// waits, or the left reference. If the new reference is in the same period,
// arrivals between the two are taken to be spread evenly over what was sent.
// Otherwise the period is over, and the waiting time returns to nothing at its
// end, by the learned shape.
func (r *Receiver) settleBusy(waiting []held, known *point) {
	base := r.link.base()
	var p *period
	var from point
	var between bool         // whether the period's later point is known
	var slope, until float64 // from there on; until is the place of the later point or the end
	for i := range waiting {
		h := &waiting[i]
		if q := &r.periods[h.period]; p != q {
			p = q
			from, _ = r.start(int(h.period))
			to := point{place: p.place(p.end, 0)}
			between = known != nil && int(h.period) == r.current
			if between {
				to = *known
			}
			slope, until = 0, to.place
			if to.place > from.place {
				slope = (to.wait - from.wait) / (to.place - from.place)
			}
		}
		size := float64(h.bytes) * r.perByte
		place := p.place(h.time, size)
		since := place - from.place
		wait := from.wait + slope*since
		if !between {
			wait += r.shape.rise(since, until-place)
		}
		// A packet waits no longer than the link has been busy, and did not
		// arrive before the known point.
		wait = max(min(wait, from.wait+since), 0)
		if place <= 0 {
			r.counts.Idle++
		} else {
			r.counts.Busy++
		}
		r.record(h.flow, h.bytes, h.time, round(base+size+wait))
	}
}

// record adds one packet's delay to its flow and the total.
func (r *Receiver) record(f hashing.Flow, bytes int32, t, delay int64) {
	r.total.add(delay, bytes, t)
	bucket := 0
	if len(r.histogram) > 0 {
		bucket = bucketOf(r.origin+delay, r.config.Floor, len(r.histogram))
		r.histogram[bucket]++
	}
	i := r.flows.find(f)
	flow := &r.flows.records[i]
	if flow.count == 0 {
		if !r.drawn(f) {
			r.counts.Unheld++
			return
		}
		if !r.flows.claim(i, f) {
			r.counts.Shed++
			return
		}
	}
	flow.add(delay, bytes, t)
	if len(r.histogram) > 0 {
		r.flows.histogram(i)[bucket]++
	}
}

// drawn decides whether a packet begins a record.
func (r *Receiver) drawn(f hashing.Flow) bool {
	if r.hold == 1<<32 {
		return true
	}
	r.draws++
	return hashing.Sampled(uint64(hashing.Word(r.config.Seed, r.draws)), r.hold) == 1
}

func round(x float64) int64 { return int64(math.Floor(x + 0.5)) }
