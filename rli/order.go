package rli

import "cmp"

// An order follows the numbers and times of one injector's references, so that late, forged and broken ones do no harm: with a
// later number but sent earlier, or with a delay far below all others. A stepped clock looks the same, so these are left out
// until a few in a row agree. Tagged ones that were sent before others are left out for good, as somebody may replay old ones.
type order struct {
	begun          bool
	top            uint64 // the largest number
	sent           int64  // when that was
	late           int    // references in a row with numbers up to top
	recent, before extent // of delays
	suspect        reading
	suspects       int // in a row, that agree
}

// A reading is what a reference says.
type reading struct{ sent, delay int64 }

// An extent is the smallest and the largest of n delays.
type extent struct {
	low, high int64
	n         int
}

func (e extent) and(f extent) extent {
	if e.n == 0 || f.n == 0 {
		return cmp.Or(e, f)
	}
	return extent{min(e.low, f.low), max(e.high, f.high), e.n + f.n}
}

const (
	patience   = 64      // if more than this in a row are late, the injector restarted with its clock behind
	agreement  = 4       // so many in a row that agree are believed against all earlier ones
	leeway     = 4       // a delay may be below all others by this many times their range,
	coarse     = 2000    // and this many ns
	acquainted = 16      // it is compared with at least so many others
	witnesses  = 256     // and at most twice so many
	latest     = 1 << 62 // time of a stamp; the earliest is the same before 0
	lately     = 64      // references, for which overtaking is remembered
	stray      = 1000    // packets of which more than one overtook others: too many
)

func (o *order) extent() extent { return o.recent.and(o.before) }

// accept reports whether a reference is fit, follows a step of a clock, and how many were lost before.
func (o *order) accept(number uint64, told reading, tagged bool) (fit, stepped bool, lost uint64) {
	if o.begun && number <= o.top && told.sent <= o.sent {
		if o.late++; o.late <= patience || tagged {
			return false, false, 0
		}
		*o = order{}
		stepped = true
	} else if fit, stepped = o.plausible(told, tagged); !fit {
		return false, false, 0
	}
	if o.begun && number > o.top {
		lost = number - o.top - 1
	}
	o.begun, o.top, o.sent, o.late = true, number, told.sent, 0
	o.recent = o.recent.and(extent{told.delay, told.delay, 1})
	if o.recent.n == witnesses {
		o.before, o.recent = o.recent, extent{}
	}
	return true, stepped, lost
}

// plausible reports whether a reference with a new number is believed, and so a step of a clock.
func (o *order) plausible(p reading, tagged bool) (believed, stepped bool) {
	e := o.extent()
	far := leeway*(e.high-e.low) + coarse // below others
	early := p.sent < o.sent-tolerance
	if e.n == 0 || !early && (e.n < acquainted || p.delay >= e.low-far) {
		o.suspects = 0
		return true, false
	}
	if o.suspects == 0 || p.sent < o.suspect.sent-tolerance || p.delay < o.suspect.delay-far {
		o.suspects = 0
	}
	o.suspects++
	o.suspect = p
	if o.suspects < agreement || early && tagged {
		return false, false
	}
	o.recent, o.before, o.suspects = extent{}, extent{}, 0
	return true, true
}

// believe reports whether a reference is fit for interpolation, and counts the reason if not.
func (r *Receiver) believe(p *ReferencePacket, received int64) bool {
	fit, stepped, lost := false, false, uint64(0)
	restarted := r.order.begun && p.Sequence <= r.order.top
	if p.Injector == r.config.Injector && p.Sent <= latest && p.Sent >= -latest {
		fit, stepped, lost = r.order.accept(p.Sequence, reading{p.Sent, received - p.Sent}, r.key.set)
	}
	if !fit {
		r.counts.Refused++
		return false
	}
	if stepped {
		r.counts.Steps++
		r.forget() // no line goes from a reference of another clock to the next
		r.doubts |= stepOfClock
		r.stepFirst, r.stepLast = cmp.Or(r.stepFirst, r.stretch), r.stretch
	}
	r.account.begun = r.account.begun && !restarted
	r.counts.Lost += lost
	r.skipped = min(float64(lost), lately)
	return true
}

func (r *Receiver) forget() {
	r.left.seen, r.earlier.seen, r.leftHere, r.account.begun = false, false, false, false
	r.class = class{} // what was to be learned from the current period
	r.link.relax(r.slack)
}

// An account compares how many packets the injector saw with how many departed. Where the first come is the
// first served, the number missing can only grow. If it shrinks, packets were overtaken.
type account struct {
	told    uint32 // packets that departed
	begun   bool
	missing uint32  // sent less departed, as of the latest reference
	strays  float64 // overtaken lately, older ones fade
	packets float64 // all of that time
}

// settle takes in the packets sent, if not 0, and returns how many more are missing, if that is known.
func (a *account) settle(sent, gap uint32) (step int32, known bool) {
	if sent == 0 {
		return 0, false
	}
	missing := sent - a.told
	step, known = int32(missing-a.missing), a.begun
	a.missing, a.begun = missing, true
	if !known {
		return 0, false
	}
	a.strays -= a.strays/lately + float64(min(step, 0))
	a.packets += float64(gap) - a.packets/lately
	return step, true
}
