package rli

// A guard remembers what references said, so that a forged or broken one does
// no harm.
//
// Packets leave a queue in the order in which they came. So a reference with a
// later number that says it was sent earlier is wrong. Its delay can have
// grown by no more than the time since the reference before, so this rule
// bounds every delay from above. Earlier delays bound it from below: a delay
// is implausible if it is below the smallest of the latest ones by several
// times their range. A stepped clock looks the same. So the guard leaves out
// implausible references until a few in a row agree with each other. It never
// gives in if they are tagged and were sent before others, because somebody
// may replay old ones.
type guard struct {
	sent           int64 // by the latest reference that was believed
	recent, before extent
	suspect        reading // the latest that was not
	suspects       int     // in a row, that agree
}

// A reading is what a reference says.
type reading struct{ sent, delay int64 }

// An extent is the smallest and the largest of some delays.
type extent struct {
	low, high int64
	n         int
}

const (
	// This many references in a row that agree with each other are believed
	// against all earlier ones.
	agreement = 4
	// A delay may be below all others by this many times their range, and this
	// many times the tolerance.
	leeway = 4
	grain  = 1000
	// A delay is compared with at least this many others, and with at most
	// twice witnesses.
	acquainted = 16
	witnesses  = 256
)

// extent returns the extent of the latest delays.
func (g *guard) extent() extent {
	if g.before.n == 0 {
		return g.recent
	}
	if g.recent.n == 0 {
		return g.before
	}
	return extent{min(g.recent.low, g.before.low), max(g.recent.high, g.before.high), g.recent.n + g.before.n}
}

// lowest returns the smallest plausible delay if the smallest seen is low.
func (g *guard) lowest(low, tolerance int64) int64 {
	e := g.extent()
	return low - leeway*(e.high-e.low) - grain*tolerance
}

// plausible reports whether a reference with a new number may be believed, and
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

// forget prepares for a reference that is believed against all earlier ones.
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

// believe reports whether a reference is fit for interpolation, and counts the
// reason if not.
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
		// It came late or twice, or the injector restarted with its clock
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
