package rli

// An order follows the numbers and times of one injector's references, so that
// a late, forged or broken one does no harm.
//
// Packets leave a queue in the order in which they came. So a reference with a
// later number that says it was sent earlier is wrong. Its delay can have
// grown by no more than the time since the reference before, so this rule
// bounds every delay from above. Earlier delays bound it from below: a delay
// is implausible if it is below the smallest of the latest ones by several
// times their range. A stepped clock looks the same. So implausible references
// are left out until a few in a row agree with each other. Tagged ones that
// were sent before others are left out for good, because somebody may replay
// old ones.
type order struct {
	begun bool
	top   uint64 // the largest number
	sent  int64  // when that was
	late  int    // references in a row with numbers up to top

	latest         int64  // when the latest believed one was sent
	recent, before extent // of delays
	suspect        reading
	suspects       int // in a row, that agree
}

// A reading is what a reference says.
type reading struct{ sent, delay int64 }

// An extent is the smallest and the largest of some delays.
type extent struct {
	low, high int64
	n         int
}

const (
	// If more references than this in a row are late or came before, the
	// injector restarted with its clock behind.
	patience = 64
	// This many references in a row that agree with each other are believed
	// against all earlier ones.
	agreement = 4
	// A delay may be below all others by this many times their range, and this
	// many times the tolerance.
	leeway = 4
	coarse = 1000
	// A delay is compared with at least this many others, and with at most
	// twice witnesses.
	acquainted = 16
	witnesses  = 256
)

// extent returns the extent of the latest delays.
func (o *order) extent() extent {
	switch {
	case o.before.n == 0:
		return o.recent
	case o.recent.n == 0:
		return o.before
	}
	return extent{min(o.recent.low, o.before.low), max(o.recent.high, o.before.high), o.recent.n + o.before.n}
}

// lowest returns the smallest plausible delay if the smallest seen is low.
func (o *order) lowest(low, tolerance int64) int64 {
	e := o.extent()
	return low - leeway*(e.high-e.low) - coarse*tolerance
}

// accept reports whether a reference is fit for interpolation, how many were
// lost before it, and whether it follows a step of a clock. References later
// than all others are fit, if they are plausible; so are those of an injector
// that restarted.
func (o *order) accept(number uint64, told reading, tolerance int64, tagged bool) (fit, stepped bool, lost uint64) {
	if o.begun && number <= o.top && told.sent <= o.sent {
		if o.late++; o.late <= patience || tagged {
			return false, false, 0
		}
		*o = order{}
		stepped = true
	} else {
		if fit, stepped = o.plausible(told, tolerance, tagged); !fit {
			return false, false, 0
		}
		if o.begun && number > o.top {
			lost = number - o.top - 1
		}
	}
	o.begun, o.top, o.sent, o.late = true, number, told.sent, 0
	o.learn(told)
	return true, stepped, lost
}

// plausible reports whether a reference with a new number may be believed, and
// whether that means that a clock was stepped.
func (o *order) plausible(p reading, tolerance int64, tagged bool) (believed, stepped bool) {
	e := o.extent()
	if e.n == 0 {
		return true, false
	}
	early := p.sent < o.latest-tolerance
	if !early && (e.n < acquainted || p.delay >= o.lowest(e.low, tolerance)) {
		o.suspects = 0
		return true, false
	}
	if o.suspects > 0 && p.sent >= o.suspect.sent-tolerance && p.delay >= o.lowest(o.suspect.delay, tolerance) {
		o.suspects++
	} else {
		o.suspects = 1
	}
	o.suspect = p
	if o.suspects < agreement || early && tagged {
		return false, false
	}
	o.recent, o.before, o.suspects = extent{}, extent{}, 0
	return true, true
}

// learn takes in a reference that is believed.
func (o *order) learn(p reading) {
	o.latest = p.sent
	if o.recent.n == 0 {
		o.recent = extent{p.delay, p.delay, 0}
	}
	o.recent.low, o.recent.high = min(o.recent.low, p.delay), max(o.recent.high, p.delay)
	if o.recent.n++; o.recent.n == witnesses {
		o.before, o.recent = o.recent, extent{}
	}
}

// believe reports whether a reference is fit for interpolation, and counts the
// reason if not.
func (r *Receiver) believe(p *ReferencePacket, received int64) bool {
	if p.Injector != r.config.Injector || p.Sent > latestTime || p.Sent < -latestTime {
		r.counts.Refused++
		return false
	}
	restarted := r.order.begun && p.Sequence <= r.order.top
	fit, stepped, lost := r.order.accept(p.Sequence, reading{p.Sent, received - p.Sent}, r.config.Tolerance, r.key.set)
	if !fit {
		r.counts.Refused++
		return false
	}
	if stepped {
		r.counts.Steps++
		r.stepped()
	}
	if restarted {
		r.account.begun = false
	}
	r.counts.Lost += lost
	r.skipped = min(float64(lost), lately)
	return true
}

// latestTime is the latest time of a stamp; the earliest is the same before 0.
const latestTime = 1 << 62

// stepped marks the packets that wait, and the flows that go on. No line goes
// from the left reference, which is of another clock, to the next.
func (r *Receiver) stepped() {
	r.forget()
	r.doubts |= stepped
	r.mark(r.gap)
}

// mark records a step in a gap.
func (r *Receiver) mark(gap uint32) {
	if r.stepFirst == 0 {
		r.stepFirst = gap
	}
	r.stepLast = gap
}

// forget forgets the references so far, and the base delay.
func (r *Receiver) forget() {
	r.left.seen, r.earlier.seen, r.leftHere = false, false, false
	r.probe, r.lessons, r.sample = probe{}, lessons{}, sample{}
	r.account.begun = false
	r.link.relax(r.slack)
}

// An account compares how many packets the injector saw between two references
// with how many departed between them. In a queue that is first come, first
// served, with one way to its end, all packets sent before a reference depart
// before it, or never. So the number missing can only grow. If it shrinks,
// packets departed after a reference that was sent after them, from another
// class or by another way, or the injector did not see them. References say
// nothing about those packets.
type account struct {
	told    uint32 // packets that departed
	begun   bool
	missing uint32  // sent less departed, as of the latest reference
	strays  float64 // overtaken lately, older ones fade
	packets float64 // all of that time
}

// settle takes in a reference that carries the number of packets sent, if not
// 0, and returns by how many more are missing now. It is negative if they were
// overtaken. The second result reports whether this is known.
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

const (
	// lately is for how many references overtaking is remembered.
	lately = 64
	// scarce is the number of packets to each overtaken one from which on they
	// are no sign of another class or another way.
	scarce = 1000
)

// astray reports whether packets overtook others lately, more than a few.
func (a *account) astray() bool { return a.strays*scarce > a.packets }
