package rli

import "math"

// A period is a busy period of the link, from a packet that finds it idle until all are sent.
type period struct {
	first int64   // departure of its first packet
	lead  float64 // ns that its first packet took: the period began at first − lead
	end   int64   // departure of its last packet so far, while packets are estimated
	whole bool    // whether its beginning was seen
	held  int32   // number of packets before it in the buffer
}

const periodSize = 32

// place returns how long the link was busy when it began to send a packet of size ns that departed at t.
func (p *period) place(t int64, size float64) float64 { return float64(t-p.first) + (p.lead - size) }

// A point is a packet whose waiting time is known.
type point struct {
	place float64 // in its period
	wait  float64
	lean  float64 // ns that a typical packet takes longer to send
}

// bounds is the interval that references allow for the base delay, relative to the origin: propagation and offset.
type bounds struct{ low, high float64 }

var unbounded = bounds{math.Inf(-1), math.Inf(1)}

func (b bounds) and(c bounds) bounds   { return bounds{max(b.low, c.low), min(b.high, c.high)} }
func (b bounds) plus(x float64) bounds { return bounds{b.low + x, b.high + x} }
func (b bounds) width() float64        { return b.high - b.low }
func (b bounds) middle() float64       { return b.low + b.width()/2 }

const (
	proof   = 16   // references in a row without a contradiction after which the link is trusted
	memory  = 16   // references after which older bounds are dropped if the newer suffice
	fastest = 1e-3 // no clock drifts by more
)

// A link is what the receiver believes about the link.
type link struct {
	tolerance      float64
	recent, before bounds
	age            int  // references in recent
	agreed         int  // references in a row without contradiction
	fitted         bool // whether the latest named packet fitted
	// If a clock runs faster, the base delay changes by slope ns per ns. References that found the link idle show it.
	slope float64
	since int64
	exact int
	sure  int64       // when the latest was, or the base delay was not pinned yet
	bases [3]struct { // every fourth exact one, the latest last
		time int64
		base float64
	}
}

// relax sets how far stamps may be off, two of which make a delay, and forgets the base delay.
func (l *link) relax(slack float64) {
	*l = link{tolerance: 2 * slack, recent: unbounded, before: unbounded, slope: l.slope, since: l.since}
}

func (l *link) drift(t int64) float64 { return l.slope * float64(t-l.since) }

// follow takes in bounds of time t. If exact ones are on another line than earlier, the slope changes.
func (l *link) follow(t int64, b bounds) {
	if !(b.width() <= l.tolerance) {
		return
	}
	l.sure = t
	if l.exact++; l.exact%4 != 0 {
		return
	}
	k := &l.bases
	k[0], k[1] = k[1], k[2]
	k[2].time, k[2].base = t, b.middle()
	if l.exact < 4*len(k) || t <= k[0].time {
		return
	}
	span, half := float64(t-k[0].time), float64(k[1].time-k[0].time)
	slope := (k[2].base - k[0].base) / span
	bend := k[1].base - k[0].base - slope*half
	if math.Abs(bend) > l.tolerance || math.Abs(slope) > fastest || math.Abs(slope-l.slope)*span <= l.tolerance {
		return
	}
	l.slope, l.since = slope, t
	base := k[2].base + bend/3 // on the line at a mean distance from all three
	l.recent, l.before, l.age = bounds{base - l.tolerance/2, base + l.tolerance/2}, unbounded, 0
}

func (l *link) bounds() bounds { return l.recent.and(l.before) }

func (l *link) fits(t int64, b bounds) bool {
	return l.bounds().and(b.plus(-l.drift(t))).width() >= -l.tolerance
}

// learn takes in the bounds of a reference. If they do not fit, it forgets all others.
func (l *link) learn(t int64, b bounds) bool {
	fits := l.fits(t, b)
	if !fits {
		l.recent, l.before, l.age, l.agreed = unbounded, unbounded, 0, -1
	}
	l.recent = l.recent.and(b.plus(-l.drift(t)))
	l.age++
	if l.age >= memory && l.recent.width() <= l.tolerance {
		l.before, l.recent, l.age = l.recent, unbounded, 0
	}
	if !l.pinned() {
		l.sure = t
	}
	l.agreed++
	return fits
}

func (l *link) pinned() bool { return l.bounds().width() <= l.tolerance }

// trusted reports whether the link may be taken to be work-conserving at the configured rate.
func (l *link) trusted() bool { return l.agreed >= proof && l.pinned() }

// base returns the base delay at time t, if pinned.
func (l *link) base(t int64) float64 { return l.bounds().middle() + l.drift(t) }
