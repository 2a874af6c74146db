package rli

import "math"

// settle estimates and removes the packets in the buffer, with the reference after them, if any.
func (r *Receiver) settle(right *mark, known *point) {
	waiting, why := r.buffer[:r.waiting], r.doubts
	n := uint64(len(waiting))
	if right == nil && (len(waiting) == r.config.Buffer || float64(r.account.told-r.left.told) > 2*r.usual+fewest) { // far more than lately
		why |= unfollowed
	}
	switch {
	case n == 0:
	case r.bridging():
		r.settleBusy(waiting, known)
		r.record(waiting, why)
	case r.left.seen || right != nil:
		// Where few references wait, the first may find no queue. A mean square that few errors decide is off by one in √few.
		if e := r.lineError.mean; !(float64(r.lineError.n)*e*e > acquainted*r.fourths.mean) {
			why |= untested
		}
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
		r.periods[0].held, r.current, r.leftHere = 0, 0, false
	}
}

// bridging reports whether busy periods are bridged: the link is trusted, and pauses at references hardly ever end them.
func (r *Receiver) bridging() bool {
	return r.busy && r.link.trusted() && r.cut.mean <= mostOff*r.beyond.mean
}

// A line is the delay of a packet of a reference's size by eq. (1), relative to the origin.
type line struct {
	begin, end   int64 // departures of the references
	delay, slope float64
}

func (l *line) at(t int64) float64 { return l.delay + float64(min(t, l.end)-l.begin)*l.slope }

// lineBetween is level if a reference is missing (RLI-L, if the right one) or both departed at once.
func lineBetween(from, to *mark) line {
	switch {
	case to == nil:
		return line{begin: from.departed, end: from.departed, delay: float64(from.delay)}
	case !from.seen:
		return line{begin: to.departed, end: to.departed, delay: float64(to.delay)}
	case to.departed <= from.departed:
		return line{begin: to.departed, end: to.departed, delay: float64(from.delay+to.delay) / 2}
	}
	return line{from.departed, to.departed, float64(from.delay), float64(to.delay-from.delay) / float64(to.departed-from.departed)}
}

// expect returns the predicted error of a line, and the cell that corrected it.
func (r *Receiver) expect(l *line) (error float64, cell int) {
	from, to, least := l.delay, l.at(l.end), float64(r.order.extent().low-r.origin)
	cell = cellOf(0, math.Abs(to-from), max(from-least, to-least, 0))
	return math.Sqrt(r.lineError.mean) * r.lines.at(cell), cell
}

// settleLine applies eq. (1). The predicted error is that of similar lines, and the time of the reference ahead, which
// all that departs back to back behind it has waited for: the line ends at the packet before that.
func (r *Receiver) settleLine(waiting []held, right *mark) {
	l, perByte, own, last, took := lineBetween(&r.left, right), r.perLineByte(), r.config.ReferenceBytes, r.left.behind, r.left.took
	typical, _ := r.expect(&l)
	perSize, chain := (took+1)/float64(own), took > 0 // whole ns are up to one less
	for i := range waiting {
		h, error := &waiting[i], typical
		if chain = chain && float64(h.time-last) <= perSize*float64(h.bytes)+r.slack; chain {
			r.quality.behind += took
			error = math.Hypot(error, took)
		}
		last = h.time
		h.delay, h.error = round(l.at(h.time)+float64(int(h.bytes)-own)*perByte), float32(error)
		h.stretch = r.stretch // whatever periods are seen in between
	}
}

// settleBusy estimates waiting times by busy periods, from the beginning or the left reference to the new one
// or the end. If neither has come, the latest packet is taken to wait as long as the left reference.
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
		from, base := r.start(index), r.link.base(p.end)
		if h := &packets[0]; p.place(h.time, r.sending(h.bytes)) <= 0 { // the first of the period
			idle++
			if !from.known {
				h.delay, h.error = round(base+r.sending(h.bytes)), 0
				packets = packets[1:]
			}
		}
		to := end{point: point{place: p.place(p.end, 0)}}
		if index == r.current && known != nil {
			to = end{*known, true}
		} else if index == r.current {
			to = end{point{place: to.place, wait: from.wait}, from.known}
		}
		r.settlePeriod(packets, p, from, to, base)
	}
	r.counts.Busy += uint64(len(waiting) - idle)
	r.counts.Idle += uint64(idle)
}

// settlePeriod estimates packets of a period.
func (r *Receiver) settlePeriod(packets []held, p *period, from, to end, base float64) {
	course := r.spread.bridge(from, to)
	own, behind := r.own(), 0.0
	r.compare(&course, packets, p, own)
	if from.known && !to.known {
		behind = own * own / 4 // they waited for the reference, or for part of it
		r.quality.behind += own / 2 * float64(len(packets))
	}
	for i := range packets {
		h := &packets[i]
		size := r.sending(h.bytes)
		wait, error, _ := course.at(h.mix, p.place(h.time, size), r.lean(size))
		if h.delay = round(base + size + wait); error > 0 {
			error = math.Sqrt(error*error + behind)
		}
		h.error = float32(error)
		r.spread.sizes.add(size) // for later ones
	}
}

// record adds the packets' delays to their flows and the total.
func (r *Receiver) record(packets []held, why doubts) {
	origin, records := r.origin, r.flows.records
	r.flows.fetch(packets)
	total := &r.total
	if total.tally == 0 {
		total.first, total.base = packets[0].stretch, origin+packets[0].delay
	}
	errors, doubtful := float32(0), uint64(0)
	for i := range packets {
		h := &packets[i]
		delay := origin + h.delay
		total.add(delay)
		errors += h.error
		doubted := why != 0 && (h.error > 0 || why != unfollowed)
		if doubted && why != untested { // references tell how far off all packets are
			doubtful++
		}
		flow := &records[h.at]
		if flow.flow != h.flow || flow.tally == 0 {
			if flow = r.locate(h, delay); flow == nil {
				continue
			}
		}
		flow.enter(1, h.stretch, h.error)
		flow.add(delay)
		if doubted {
			flow.doubt(why, 1)
		}
	}
	total.enter(uint64(len(packets)), r.stretch, errors)
	total.doubt(why&^untested, doubtful)
}

// locate returns the record of a packet if it is not where it should be, or nil if it gets none.
func (r *Receiver) locate(h *held, delay int64) *record {
	at := r.flows.find(h.flow)
	flow := &r.flows.records[at]
	if flow.tally == 0 {
		if !r.flows.claim(at, h.flow) {
			if at = r.evict(h.flow); at < 0 {
				r.counts.Shed++
				return nil
			}
			flow = &r.flows.records[at]
		}
		flow.first, flow.base = h.stretch, delay
	}
	return flow
}

// round returns the nearest whole number. Conversion rounds towards zero; 2^41 ns are 36 minutes.
func round(x float64) int64 {
	return int64(x+(1<<41+0.5)) - 1<<41
}
