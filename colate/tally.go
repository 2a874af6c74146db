package colate

import "math"

// A tally adds up what a flow's cells say, epoch by epoch: the delays of its
// packets above the reference, including the noise of others, which falls in
// the cells of absent flows alike.
type tally struct {
	sum     float64 // delays above the reference
	counted float64 // the flow's packets, less what a typical cell has
	stands  float64 // how many each of those counted stands for, less 1
	passed  float64 // the same at the first point, with what was lost
	sampled float64 // Σ packets × how many each of them stands for, less 1
	chance  float64 // of that, what their number adds, where it is not known better
	extra   float64 // by how many packets settled cells have more than all suggest, where that is known
	shown   float64 // the packets counted in settled cells, scaled to all
	told    float64 // and all the packets counted in those epochs
	usual   float64 // Σ packets × how much longer than the reference all packets took in these epochs
	cells   int     // settled cells and epochs
	large   int     // of these, with areas near the modulus

	// Epochs on which the flow's cells are silent: like all others, which lost
	// much, or unlike them.
	filled, filling float64 // packets, and how much longer all took in these epochs
	dark            float64 // packets
	darkEpochs      int
	darkFrom        int64
	darkTo          int64
	low, high       float64 // of all packets' means, over the epochs

	spread
	squares, fourth, degrees float64 // see freedom
}

// An absentTally is the tally of an absent flow. Its cells take the places of
// the flow's, with the same weights.
type absentTally struct{ sum, counted float64 }

// A flowCell is one of a flow's cells in the current table.
type flowCell struct {
	sight
	count    float64 // part of the flow's packets in it; 0 if the cell is not used
	part     float64 // the same; 0 if its areas are not used
	expected float64 // packets of the flow, per packet counted
	areas    [room]float64
	weights  [room]float64 // by which an epoch's excess adds to the flow's
}

// tally adds the epochs of the table to flow f, and to its absent flows.
//
// With p the part of the flow's packets in a cell, and y the delays in it above
// the reference, a cell says that the flow has p·x + noise = y: the noise is
// alike in all cells. So x is Σ p·y / Σ p² over the cells that are settled,
// which leaves thin cells out of it but where no other speaks.
func (a *accumulator) tally(f int) {
	t, own := a.table, &a.own[f]
	first := f * a.config.PerFlow
	for j := range a.cells {
		a.cells[j].sight = t.read(first+j, a.cells[j].areas[:])
		a.cells[j].count = a.parts[first+j]
	}
	limit := a.use(first, a.flows[f].Packets)
	a.weigh(first)
	kept := 0.0
	for j := range a.cells {
		kept += a.cells[j].count * a.cells[j].count
	}
	stands := -1.0
	for j := range a.cells {
		c := &a.cells[j]
		c.expected = c.count / max(kept, 1e-12)
		stands += c.expected * c.expected * c.count
	}
	own.stands = max(own.stands, stands)
	for e := range t.epochs {
		if t.live>>e&1 != 0 {
			a.tallyEpoch(own, first, e)
			own.low, own.high = min(own.low, a.common.mean[e]-a.reference), max(own.high, a.common.mean[e]-a.reference)
		} else {
			for j := range a.cells {
				a.cells[j].weights[e] = 0
			}
		}
	}
	a.tallyAbsent(f, limit)
}

// use leaves out the cells of a flow that are too full, of other packets or for
// their width. It returns how many packets more than typical a cell may have.
func (a *accumulator) use(first int, record float64) float64 {
	t, full := a.table, a.config.full()
	totals := a.scratch[:len(a.cells)]
	for j := range a.cells {
		totals[j] = t.total(first + j)
	}
	median := middle(totals[:full], a.scratch[len(a.cells):len(a.cells)])
	room := margin(median)
	own := max(median-a.common.full, 0) / a.config.part(0)
	most := math.Ldexp(1, int(a.config.CountBits)-1) * float64(max(a.epochs+a.missing, 1))
	for j := range a.cells {
		c := &a.cells[j]
		expected := a.common.full + own*c.count
		if totals[j] > expected+margin(expected) || record*c.count > most {
			c.count = 0
		}
		c.part = c.count
	}
	// Thinner cells tell whether the sums of others can hold their areas.
	area, part, packets := 0.0, 0.0, 0.0
	for j := len(a.cells) - 1; j >= full; j-- {
		if c := &a.cells[j]; c.part > 0 {
			sum, wrapped := a.wraps(first, j, j+1)
			if wrapped || packets > 10 && area/part*c.part > a.largest() {
				c.part = 0
				continue
			}
			area, part, packets = area+sum, part+c.part, packets+totals[j]
		}
	}
	each := a.config.part(0)
	if _, wrapped := a.wraps(first, 0, full); wrapped || packets > 10 && area/part*each > a.largest() {
		a.own[first/len(a.cells)].large++
		for j := range full {
			a.cells[j].part = 0
		}
	}
	return a.common.full + room
}

// wraps returns the mean area of some of a flow's cells in an epoch, and whether
// more than one in twenty are near what their sums can hold.
func (a *accumulator) wraps(first, from, to int) (mean float64, wrapped bool) {
	large, settled := 0, 0
	for j := from; j < to; j++ {
		c := &a.cells[j]
		for e := range a.table.epochs {
			if c.part > 0 && c.settled>>e&1 != 0 {
				settled++
				mean += math.Abs(c.areas[e])
				if math.Abs(c.areas[e]) > a.largest() {
					large++
				}
			}
		}
	}
	return mean / max(float64(settled), 1), 20*large > settled
}

// largest returns the area of an epoch beyond which it may have wrapped.
func (a *accumulator) largest() float64 {
	return math.Ldexp(a.config.Unit(), int(a.config.sumBits())-2)
}

// weigh sets the weights of the cells: the inverse of their chances to be
// settled, by what full cells lose and, in proportion, thin ones.
func (a *accumulator) weigh(first int) {
	var full, thin [room]float64
	cells := 0.0
	for j := range a.config.full() {
		if a.cells[j].part > 0 {
			cells++
			a.table.losses(first+j, a.cells[j].sight, &full)
		}
	}
	for e := range a.table.epochs {
		full[e] /= max(cells, 1)
	}
	for j := range a.cells {
		c := &a.cells[j]
		if j < a.config.full() {
			c.sight.weigh(&full, c.weights[:a.table.epochs])
			continue
		}
		for e := range a.table.epochs {
			thin[e] = a.common.lost[e] + max(full[e]-a.common.lost[e], 0)*c.part/a.config.part(0)
		}
		c.sight.weigh(&thin, c.weights[:a.table.epochs])
	}
}

// tallyEpoch turns the weights of an epoch's cells, the inverse of their
// chances, into what makes their excess the flow's, and adds it.
func (a *accumulator) tallyEpoch(own *tally, first, e int) {
	t, typical := a.table, a.common.cell[e]
	counted, passed, all, shown := 0.0, 0.0, 0.0, 0.0
	settled, parts, lost, expected := 0.0, 0.0, 0.0, 0.0
	for j := range a.cells {
		c := &a.cells[j]
		if c.count == 0 {
			continue
		}
		n, sent := t.packets(first+j, e), t.sent(first+j, e)
		counted += c.expected * (n - typical)
		passed += c.expected * (sent - typical*math.Exp(a.common.loss[e]))
	}
	for j := range a.cells {
		c := &a.cells[j]
		if c.part == 0 || j >= a.config.full() && counted*c.part < leastThin {
			c.weights[e] = 0
			continue
		}
		n, sent := t.packets(first+j, e), t.sent(first+j, e)
		all += c.part * n
		parts += c.part * c.part
		settled += c.weights[e] * c.part * c.part
		shown += c.weights[e] * c.part * n
		lost += max(sent-n, 0)
		expected += a.common.gone[e] * sent
	}
	own.counted += counted
	own.passed += passed
	if settled == 0 {
		a.silent(own, e, counted, passed, lost <= 2*expected+5*math.Sqrt(expected)+5)
		return
	}
	own.told += all
	own.usual += counted * (a.common.mean[e] - a.reference)
	own.shown += shown * parts / settled
	stands, noise, found := -1.0, 0.0, 0.0
	for j := range a.cells {
		c := &a.cells[j]
		if c.weights[e] *= c.part / settled; c.weights[e] == 0 {
			continue
		}
		own.cells++
		own.sum += c.weights[e] * (c.areas[e] - t.packets(first+j, e)*a.reference)
		stands += c.weights[e] * c.weights[e] * c.part
		noise += c.weights[e] * c.weights[e] * typical
		found += c.weights[e] * (t.packets(first+j, e) - typical)
	}
	own.sampled += max(counted, 0) * max(stands, 0)
	// If the packets in settled cells are nearly all the flow's, their number
	// tells by how much too many or few of it they have.
	known := max(1-4*noise/max(counted*(1+stands), 1), 0)
	own.extra += known * (found - counted)
	own.chance += (1-known)*(1-known)*max(counted, 0)*max(stands, 0) + known*known*noise
	own.addEpoch(a, first, e, max(counted, 0)+float64(a.config.full())*typical)
}

// leastThin is the smallest number of a flow's packets expected in a thin cell
// and epoch: fewer would stand for too many.
const leastThin = 4

// silent adds an epoch in which the flow has no settled cell. If its packets
// were lost like those of others, they waited like them.
func (a *accumulator) silent(own *tally, e int, counted, passed float64, alike bool) {
	noise := 3*math.Sqrt(a.common.cell[e]*float64(a.config.full())) + 3
	if a.common.known[e] && (alike || passed < noise) {
		own.filled += max(counted, 0)
		own.filling += max(counted, 0) * (a.common.mean[e] - a.reference)
		return
	}
	if passed < noise {
		return
	}
	if own.darkEpochs++; own.darkEpochs == 1 {
		own.darkFrom = a.table.starts[e]
	}
	own.darkTo = a.table.ends[e]
	own.dark += max(passed, 0)
}

// tallyAbsent adds what the flow's weights make of the cells of absent flows.
func (a *accumulator) tallyAbsent(f int, limit float64) {
	m, t := len(a.cells), a.table
	parts := 0.0
	for j := range a.cells {
		parts += a.cells[j].count
	}
	for i := range absentFlows {
		to, sum, counted, kept := &a.absent[f*absentFlows+i], 0.0, 0.0, 0.0
		for j := range a.cells {
			c, k := &a.cells[j], i*m+j
			if c.count == 0 || a.totals[k] > limit {
				continue
			}
			kept += c.count
			counted += c.expected * (a.totals[k] - a.usualTotal())
			noise := a.noise[k*room:][:t.epochs]
			for e, w := range c.weights[:t.epochs] {
				sum += w * float64(noise[e])
			}
		}
		scale := parts / max(kept, 1e-9)
		to.sum += scale * sum
		to.counted += scale * counted
	}
}

// usualTotal returns how many packets a typical cell has in epochs that count.
func (a *accumulator) usualTotal() (n float64) {
	for e := range a.table.epochs {
		if a.table.live>>e&1 != 0 {
			n += a.common.cell[e]
		}
	}
	return n
}
