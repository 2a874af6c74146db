package rli

// A guard keeps what references have told, so that one that is forged or broken
// does no harm.
//
// Packets of one queue leave in the order in which they came. So a reference
// of a later number that says it was sent earlier is wrong; and as its delay
// can only have grown by the time since the reference before, that one sentence
// bounds every delay from above. From below a delay is bounded by those that
// there were: one that is less than the least of the latest ones by several times
// their range is implausible. A clock that was stepped is, too. So a reference
// that is implausible is left out, until some in a row agree with each other; but
// never if they are tagged and were sent before others, as somebody may send old
// ones again.
type guard struct {
	sent           int64 // by the latest reference that was believed
	recent, before extent
	suspect        reading // the latest that was not
	suspects       int     // in a row, that agree
}

// A reading is what a reference tells.
type reading struct{ sent, delay int64 }

// An extent is the least and greatest of some delays.
type extent struct {
	low, high int64
	n         int
}

const (
	// So many references in a row that agree with each other are believed
	// against all before.
	agreement = 4
	// A delay may be below all others by this many times their range, and so many
	// times the tolerance.
	leeway = 4
	grain  = 1000
	// A delay is compared with as many others at least, and with up to twice
	// witnesses.
	acquainted = 16
	witnesses  = 256
)

// extent is that of the latest delays.
func (g *guard) extent() extent {
	if g.before.n == 0 {
		return g.recent
	}
	if g.recent.n == 0 {
		return g.before
	}
	return extent{min(g.recent.low, g.before.low), max(g.recent.high, g.before.high), g.recent.n + g.before.n}
}

// lowest is the least plausible delay where the least seen is low.
func (g *guard) lowest(low, tolerance int64) int64 {
	e := g.extent()
	return low - leeway*(e.high-e.low) - grain*tolerance
}

// plausible reports whether a reference of a new number may be believed, and
// whether that means that a clock was stepped.
func (g *guard) plausible(p reading, tolerance int64, tagged bool) (believed, stepped bool) {
	e := g.extent()
	if e.n == 0 {
		return true, false
	}
	early := p.sent < g.sent-tolerance
	if !early && (e.n < acquainted || p.delay >= g.lowest(e.low, tolerance)) {
		g.suspects = 0
		return true, false
	}
	if g.suspects > 0 && p.sent >= g.suspect.sent-tolerance && p.delay >= g.lowest(g.suspect.delay, tolerance) {
		g.suspects++
	} else {
		g.suspects = 1
	}
	g.suspect = p
	if g.suspects < agreement || early && tagged {
		return false, false
	}
	g.forget()
	return true, early
}

// forget is for a reference that is believed against all before.
func (g *guard) forget() { *g = guard{} }

// learn takes in a reference that is believed.
func (g *guard) learn(p reading) {
	g.sent = p.sent
	if g.recent.n == 0 {
		g.recent = extent{p.delay, p.delay, 0}
	}
	g.recent.low, g.recent.high = min(g.recent.low, p.delay), max(g.recent.high, p.delay)
	if g.recent.n++; g.recent.n == witnesses {
		g.before, g.recent = g.recent, extent{}
	}
}

// believe decides whether a reference is fit for interpolation, and counts why
// not.
func (r *Receiver) believe(p *ReferencePacket, received int64) bool {
	if p.Injector != r.config.Injector {
		r.counts.Foreign++
		return false
	}
	told := reading{p.Sent, received - p.Sent}
	if p.Sent > maxTimeout || p.Sent < -maxTimeout {
		r.counts.Implausible++
		return false
	}
	s, restarts := &r.sequence, r.counts.Restarts
	if s.begun && p.Sequence <= s.top && p.Sent <= s.sent {
		// It came late or again, or the injector began anew with its clock
		// behind.
		if !s.accept(p.Sequence, p.Sent, r.key.set, &r.counts) {
			return false
		}
		r.guard.forget()
		r.stepped()
	} else {
		believed, stepped := r.guard.plausible(told, r.config.Tolerance, r.key.set)
		if !believed {
			r.counts.Implausible++
			return false
		}
		if stepped {
			r.stepped()
		}
		s.accept(p.Sequence, p.Sent, r.key.set, &r.counts)
	}
	r.guard.learn(told)
	if r.counts.Restarts != restarts {
		r.account.begun = false
	}
	return true
}

// stepped forgets the left reference, which is of another clock: no line goes
// from it to the next.
func (r *Receiver) stepped() {
	r.left.seen, r.earlier.seen, r.leftHere = false, false, false
	r.probe.given = false
	r.lessons, r.sample = lessons{}, sample{}
	r.account.begun = false
}
