package rli

import "math"

// Reference records a reference packet whose last bit departed at time
// received, and estimates all packets that wait for it. A reference that came
// twice, or after a later one, or from another injector, or that contradicts
// all others, only counts as a departure: see Counts.
func (r *Receiver) Reference(p ReferencePacket, received int64) {
	before := r.latest
	found := false
	if r.method == BusyAware {
		found = r.depart(r.config.ReferenceBytes, received, true)
	} else {
		r.latest = departure{time: received, bytes: int32(r.config.ReferenceBytes), reference: true}
	}
	r.counts.References++
	if !r.believe(&p, received) {
		return
	}
	r.recentre()
	if !r.hasOrigin {
		r.origin, r.hasOrigin = received-p.Sent, true
		if r.total.count() == 0 {
			r.centre = r.origin
		}
	}
	r.account.settle(p.Packets, &r.counts)
	own := mark{seen: true, departed: received, delay: received - p.Sent - r.origin, number: r.account.told}
	if p.Packets != 0 {
		own.number = p.Packets
	}
	own.packets = own.number - r.left.number
	if own.packets-1 >= farthest { // the first, or of an injector that restarted
		own.packets = 1
	}
	right := own
	named := r.follows(&p, received, before)
	if named {
		right.departed = before.time
		right.delay += before.time - received - round(longer(before.bytes, r.config.ReferenceBytes, r.linePerByte))
	}
	due := r.config.mayBelieve() && r.measure(&p, received, before, named)
	if r.method == BusyAware {
		if !named || found {
			before = departure{}
		}
		r.learn(own, right, before)
	} else {
		r.test(right)
		r.settle(&right, nil)
		r.earlier, r.left = r.left, right
	}
	if due {
		r.learnRate(received)
	}
}

// farthest is the largest number of packets that one reference may stand for.
const farthest = 1 << 20

// learn takes in what a reference reveals about busy periods, and estimates
// the packets before it.
func (r *Receiver) learn(own, right mark, before departure) {
	itself, known := r.place(&own, before)
	if r.link.trusted() {
		r.probe.end(&r.residuals, r.spread, end{known, true})
	} else {
		r.test(right)
	}
	r.settle(&right, &known)
	size := r.sending(int32(r.config.ReferenceBytes))
	named := 0.0 // ns that the packet it names takes
	if known != itself {
		named = r.sending(before.bytes)
	}
	from, ok := r.start(r.current)
	r.probe = probe{ok && r.link.trusted(), from, known, named, size, right.packets}
	if named == 0 {
		r.probe.size, r.probe.own = size, 0
	}
	if before.bytes > 0 {
		r.spread.meet(r.sending(before.bytes))
	}
	if r.periods[r.current].whole && r.link.pinned() {
		r.lessons.offer(lesson{known, itself.place + size - known.place, float64(right.packets)})
	}
	r.earlier, r.left = r.left, right
	r.leftHere, r.leftAt = true, known
	if named > 0 { // the reference came at the same instant and took no time of its own
		r.leftAt = point{known.place + size, known.wait + size}
	}
}

// follows reports whether the packet before a reference is the one that it was
// sent with, at one instant: the size matches, and the reference departed
// right after the packet. How soon that is follows from the rate, or is
// learned if the rate is unknown.
func (r *Receiver) follows(p *ReferencePacket, received int64, before departure) bool {
	if p.Behind == 0 || before.reference || before.bytes != int32(p.Behind) || received < before.time {
		return false
	}
	gap := received - before.time
	alone := float64(r.config.ReferenceBytes) * r.perByte
	near := r.perByte > 0 && float64(gap) <= alone+r.extra+r.slack
	learned := r.nearest < math.MaxInt64 && gap <= 2*r.nearest
	r.nearest = min(r.nearest, gap)
	if !near && !learned {
		return false
	}
	if r.perByte > 0 {
		r.keepPace(float64(gap) - alone)
	}
	return true
}

// rounding is the variance of the difference of two whole nanoseconds.
const rounding = 1.0 / 6

// keepPace takes in how much later a reference departed after its packet than
// its bytes take. The average is what the link spends on a packet beside its
// bytes, such as a preamble or a checksum that sizes leave out. The deviation
// beyond that of whole nanoseconds is how far off time stamps are: none of a
// million packets by more than six times that. What is learned is used after 16
// references, and again each time that their number has doubled.
func (r *Receiver) keepPace(late float64) {
	r.pace.Add(late)
	n := r.pace.N()
	if n < acquainted || n&(n-1) != 0 {
		return
	}
	extra, slack := 0.0, max(float64(r.config.Tolerance), 6*math.Sqrt(max(r.pace.PopulationVariance()-rounding, 0)))
	if mean := r.pace.Mean(); mean > 1 {
		extra = mean
	}
	if math.Abs(extra-r.extra) > 0.5 || math.Abs(slack-r.slack) > 0.1*r.slack {
		r.extra, r.slack = extra, slack
		r.link.relax(slack)
	}
}

// sending returns how long the link takes to send a packet.
func (t *tracker) sending(bytes int32) float64 { return float64(bytes)*t.perByte + t.extra }

// place confronts the link with a reference. It returns the reference as a
// point of its busy period, and the point that becomes known: the reference
// itself, or the packet before it if that was sent at the same instant and is
// given.
func (r *Receiver) place(own *mark, before departure) (itself, known point) {
	size := r.sending(int32(r.config.ReferenceBytes))
	here := &r.periods[r.current]
	behind := before.bytes > 0
	// The base delay is subtracted from the waiting times only at the end.
	itself = point{here.place(own.departed, size), float64(own.delay) - size}
	known = itself
	if behind {
		place := here.place(before.time, r.sending(before.bytes))
		known = point{place, itself.wait - (itself.place - place)}
	}
	b := bounds{math.Inf(-1), known.wait}
	if here.whole {
		b.low = known.wait - known.place
	}
	r.link.follow(own.departed, b)
	if behind && !r.link.fits(own.departed, b) {
		// Perhaps another packet of that size was meant.
		known, b.high = itself, itself.wait
	}
	r.verify(own.departed, b)
	if r.link.pinned() {
		base := r.link.base(own.departed)
		known.wait = max(known.wait-base, 0)
		itself.wait = max(itself.wait-base, 0)
	}
	return itself, known
}

// verify confronts the link with the bounds of one more reference.
func (r *Receiver) verify(t int64, b bounds) {
	trusted := r.link.trusted()
	if !r.link.learn(t, b) {
		r.counts.Conflicts++
	}
	if trusted && !r.link.trusted() {
		r.counts.Fallbacks++
	}
}
