package rli

import (
	"cmp"
	"math"
)

// Reference records a reference packet whose last bit departed at time received, in nanoseconds, and estimates
// all packets that wait for it. One that Counts.Refused counts is only a departure.
func (r *Receiver) Reference(p ReferencePacket, received int64) {
	made(r.tracker != nil, "Receiver")
	before, size := r.latest, int32(r.config.ReferenceBytes)
	r.counts.References++
	r.references++
	if r.config.Method == Left { // the packets before it are estimated already
		r.doubts = 0
	}
	if !r.believe(&p, received) {
		r.depart(size, received)
		return
	}
	r.grind(received)
	if delay := received - p.Sent; r.gap == 1 || max(delay-r.origin, r.origin-delay) >= roomiest {
		r.forget()
		r.origin = delay
	}
	own, right, named := r.read(&p, received, before)
	// The packet that it names may be in the period before.
	apart := named && p.After > 0 && r.busy && r.excess(size, received) > r.slack
	found := !apart && r.depart(size, received)
	due := r.config.Method == Auto && r.measure(&p, received, before, named)
	if !r.busy {
		r.test(right)
		r.settle(&right, nil)
	} else {
		if !named || found {
			before = departure{}
		}
		r.learn(own, right, before, float64(p.After), apart)
		if apart {
			r.depart(size, received)
		}
	}
	r.earlier, r.left = r.left, right
	r.gap++
	r.stretch++
	r.usual = max(float64(right.packets), r.usual*(1-1.0/lately))
	if r.config.Method != Left {
		r.doubts = 0
	}
	if due {
		r.learnRate(received)
	}
}

const (
	roomiest       = 1 << 40  // ns from the origin to a delay, so that floating-point numbers are exact
	farthest       = 1 << 20  // packets that one reference stands for
	mostVanished   = 1.0 / 16 // references lost while packets are not; more may be so when packets wait
	vanishedLately = 1.0 / 4  // so many of the latest 16 are more by four standard deviations
	mostOff        = 0.2      // that pauses of software may make delays, of the mean delay beyond the least
	pauseErrors    = 5        // standard errors that are not chance, however often one looks
	fewest         = 256      // packets without a reference are never too many
)

// read returns what a reference says of itself and of the packet before it, if it names that.
func (r *Receiver) read(p *ReferencePacket, received int64, before departure) (own, right mark, named bool) {
	own = mark{seen: true, departed: received, behind: received, delay: received - p.Sent - r.origin, told: r.account.told,
		number: cmp.Or(p.Packets, r.account.told), bytes: int64(r.config.ReferenceBytes)}
	// It stands for packets that are not measured here, too.
	own.packets = own.number - r.left.number
	if own.packets-1 >= farthest { // the first, or of an injector that restarted
		own.packets = 1
	}
	missing, known := r.account.settle(p.Packets, own.packets)
	if missing > 0 {
		r.counts.Missing += uint64(missing)
		r.skipped = 0
	} else {
		r.counts.Overtaken += uint64(-int64(missing))
	}
	if missing < 0 || r.account.strays*stray > r.account.packets {
		r.doubts |= overtaken
	}
	right = own
	named = r.follows(p, received, before, missing, known)
	r.quality.gone += r.skipped
	if r.vanished += (r.skipped - r.vanished) / acquainted; r.vanished > vanishedLately {
		r.doubts |= skipped
	}
	if named {
		if p.After == 0 {
			right.took = float64(received - before.time)
		}
		right.departed, right.bytes = before.time, int64(before.bytes)
		right.delay += int64(p.After) + before.time - received - round(float64(int(before.bytes)-r.config.ReferenceBytes)*r.perLineByte())
		right.flow = before.flow
	} else if !r.bridging() { // it waited for the packet before it, unless that was lost before the link
		half := float64(p.Behind) * r.perLineByte() / 2
		right.delay -= round(half)
		r.quality.behind += half * float64(right.packets)
	}
	r.pauses(p, &right, received, named)
	return own, right, named
}

// pauses takes in how long after its packet a reference was sent, and how many packets passed since the one before.
// Software that pauses there also pauses between other stamps and departures (METHODS.md, section 4).
func (r *Receiver) pauses(p *ReferencePacket, right *mark, received int64, named bool) {
	after, n := float64(p.After), float64(right.packets)
	r.after.add(after)
	r.pause.add(math.Abs(after - r.after.mean))
	r.beyond.add(max(float64(right.delay+r.origin-r.order.extent().low), 0))
	if r.left.seen {
		r.apart.add(float64(received - r.left.behind))
		r.number.add(n)
		r.load.add(n*r.sending(int32(right.bytes)) + r.own())
		if uint32(r.waiting) == right.packets && n > 1 { // all of them
			r.gaps.Add(float64(2*r.buffer[0].time - r.left.behind - r.buffer[1].time))
		}
	}
	held, most, apart := r.held(), mostOff*r.beyond.mean, max(r.apart.mean, 1)
	share, load := min(held/apart, 1), min(r.load.mean/apart, 1-1.0/acquainted)
	r.quality.late += n * held * min(share*max(load/(1-load)/2, 1), 1)
	r.quality.held = max(r.quality.held, held)
	if r.pause.mean > most || r.perByte == 0 && (!named && after > most || share > mostDoubtful && share*held > most) {
		r.doubts |= unsteady
	}
}

// held returns for how long the sender holds packets up at a reference: until it is sent, and perhaps longer. If so, the
// first packet departs later behind it than the second behind the first (METHODS.md, section 4).
func (r *Receiver) held() float64 {
	held, d, chance := r.after.mean, r.gaps.Mean(), math.Sqrt(r.gaps.PopulationVariance()/float64(r.gaps.N()))
	if r.gaps.N() >= acquainted && d > pauseErrors*chance {
		held += d + math.Sqrt(2*d*(r.beyond.mean+r.apart.mean/max(r.number.mean, 1)))
	}
	return held
}

// learn takes in what a reference reveals about busy periods, and estimates the packets before it. It was sent
// so long after the packet before, if given, and apart if the link was idle in between.
func (r *Receiver) learn(own, right mark, before departure, after float64, apart bool) {
	itself, known := r.place(&own, before, after, apart)
	if r.link.trusted() {
		r.class.probe.end(r.spread, end{known, true})
	}
	r.test(right)
	r.settle(&right, &known)
	from := r.start(r.current)
	r.leftHere, r.leftAt = true, itself
	x := witness{r.periods[r.current].whole && r.link.trusted(), known, r.turns.mix(), float64(right.packets)}
	if own := r.own(); known != itself { // the reference is behind the known packet, as if that were larger
		x.lean -= own
		if after <= r.sending(before.bytes) { // it came while that was being sent, as if at the same instant
			r.leftAt = point{known.place + own, known.wait + own, 0}
		}
	}
	r.class.probe = probe{witness: x, from: from}
	if c := &r.class; r.periods[r.current].whole && r.link.pinned() {
		if c.offers++; r.random()%c.offers == 0 { // as likely as all before
			c.lesson = x
		}
		// If all that waits is sent before the pause ends, so does the period: too early, and what is learned is too long.
		z, shift := known.wait+max(r.sending(before.bytes), r.own()), 0.0
		if z < r.held() {
			shift = -known.wait * math.Expm1(-z*r.number.mean/max(r.apart.mean, 1))
		}
		if r.cut.add(shift); r.bridging() {
			r.quality.behind += x.packets * shift
		}
	}
}

// place confronts the link with a reference. It returns it as a point of its busy period, and the point that
// becomes known: the reference itself, or the packet before it if that is given.
func (r *Receiver) place(own *mark, before departure, after float64, apart bool) (itself, known point) {
	l, t, here, behind := &r.link, own.departed, &r.periods[r.current], before.bytes > 0
	// The base delay is subtracted from the waiting times only at the end.
	itself = point{here.place(t, r.own()), float64(own.delay) - r.own(), r.lean(r.own())}
	known = itself
	if behind {
		place := here.place(before.time, r.sending(before.bytes))
		known = point{place, itself.wait - (itself.place - place) + after, r.lean(r.sending(before.bytes))}
	}
	b := bounds{math.Inf(-1), known.wait}
	if here.whole {
		b.low = known.wait - known.place
	}
	sure := l.sure
	l.follow(t, b)
	switch {
	case apart:
		itself = known
	case behind && l.fitted && !l.fits(t, b): // perhaps another packet of that size was meant, but hardly twice in a row
		known, b.high = itself, itself.wait
		l.fitted = false
	case behind:
		l.fitted = true
	}
	if trusted, base := l.trusted(), l.base(t); !l.learn(t, b) {
		if r.counts.Conflicts++; trusted {
			r.lostBase, r.lostTime, r.lostAt = base, sure, r.stretch
		}
	}
	if l.pinned() {
		base := l.base(t)
		if b.width() <= l.tolerance { // where clocks drift, the base may be off by more than stamps
			r.away += (b.middle() - base - r.away) / acquainted
			r.quality.slack = max(r.quality.slack, tolerance+2*math.Abs(r.away)-float64(r.grain)/2)
		}
		if r.lostAt > 0 && l.trusted() { // with a base that no drift explains, a step looked like other waits
			if math.Abs(base-r.lostBase) > leeway*l.tolerance+wander*float64(t-r.lostTime) {
				r.counts.Steps++
				r.stepFirst, r.stepLast = cmp.Or(r.stepFirst, r.lostAt), r.lostAt
			}
			r.lostAt = 0
		}
		known.wait, itself.wait = max(known.wait-base, 0), max(itself.wait-base, 0)
	}
	return itself, known
}
