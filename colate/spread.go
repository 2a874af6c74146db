package colate

import "math"

// A spread is how delays vary, within epochs and from one epoch to the next.
// Within an epoch, packets are in cells by chance. But all cells of an epoch
// may have been slow.
type spread struct {
	weight, within          float64 // Σ of epochs of two cells or more
	epochs, first, second   float64 // Σ weight × mean^k, k = 0, 1, 2
	uncertain, uncertainOwn float64 // Σ weight/packets, Σ weight²/packets: what within adds to these
}

// An epochSpread is how the cells of one epoch differ: Σ 1, Σ packets, Σ delays
// and Σ delays²/packets.
type epochSpread struct{ cells, packets, excess, squares float64 }

func (s *epochSpread) add(packets, excess float64) {
	s.cells++
	s.packets += packets
	s.excess += excess
	s.squares += excess * excess / packets
}

// add adds an epoch, which stands for so many packets.
func (s *spread) add(e *epochSpread, stands float64) {
	if e.packets == 0 {
		return
	}
	mean := e.excess / e.packets
	if e.cells >= 2 {
		s.weight += stands
		s.within += stands * max(e.squares-e.excess*mean, 0) / (e.cells - 1)
	}
	s.epochs += stands
	s.first += stands * mean
	s.second += stands * mean * mean
	s.uncertain += stands / e.packets
	s.uncertainOwn += stands * stands / e.packets
}

// variance returns the variance of a packet's delay, and the part of it within
// epochs.
func (s *spread) variance() (all, within float64) {
	if s.weight == 0 {
		return 0, 0
	}
	within = s.within / s.weight
	mean := s.first / s.epochs
	between := s.second/s.epochs - mean*mean
	between -= within * (s.uncertain - s.uncertainOwn/s.epochs) / s.epochs
	return within + max(between, 0), within
}

// addEpoch adds the flow's cells of an epoch.
func (t *tally) addEpoch(a *accumulator, first, e int, stands float64) {
	var s epochSpread
	for j := range a.cells {
		if n := a.table.packets(first+j, e); n > 0 && a.cells[j].weights[e] != 0 && a.cells[j].whole(e) {
			s.add(n, a.cells[j].areas[e]-n*a.reference)
		}
	}
	t.spread.add(&s, stands)
	if s.cells < 2 {
		return
	}
	mean := s.excess / s.packets
	for j := range a.cells {
		if n := a.table.packets(first+j, e); n > 0 && a.cells[j].weights[e] != 0 && a.cells[j].whole(e) {
			x := a.cells[j].areas[e] - n*(a.reference+mean)
			z := x * x / n * s.cells / (s.cells - 1)
			t.squares += z
			t.fourth += z * z
			t.degrees += 1 - 1/s.cells
		}
	}
}

// freedom returns Satterthwaite's degrees of freedom of the variance within
// epochs.
func (t *tally) freedom() float64 {
	if t.degrees < 1 || t.squares == 0 {
		return 0
	}
	n := t.degrees
	average := t.squares / n
	variance := max(t.fourth/n-average*average, 0) / n
	if variance == 0 {
		return n
	}
	return min(2*average*average/variance, n)
}

// spreadNoise turns the areas of absent flows' cells into what they add to a
// sum of delays above the reference, and adds to their spreads. A cell that is
// not settled is taken to be like all; the others stand for its noise.
func (a *accumulator) spreadNoise() {
	t, m, k := a.table, a.config.PerFlow, &a.common
	for i := range a.sights {
		for e := range t.epochs {
			n := t.packets(len(a.flows)*m+i, e)
			y := n * (k.mean[e] - a.reference)
			if a.sights[i].settled>>e&1 != 0 {
				y += (a.areas[i*room+e] - n*k.mean[e]) / math.Sqrt(max(k.seen[e], 0.01))
			}
			a.noise[i*room+e] = float32(y)
		}
	}
	limit := k.full + margin(k.full)
	for i := range absentFlows {
		for e := range t.epochs {
			var s epochSpread
			for c := i * m; t.live>>e&1 != 0 && c < (i+1)*m; c++ {
				if n := t.packets(len(a.flows)*m+c, e); n > 0 && a.totals[c] <= limit && a.sights[c].whole(e) {
					s.add(n, a.areas[c*room+e]-n*a.reference)
				}
			}
			a.spreads[i].add(&s, float64(a.config.full())*k.cell[e])
		}
	}
}

// A trend is how all packets' delays change from epoch to epoch: Σ, of times and
// means, both less the first.
type trend struct {
	n, t, tt, x, xx, tx float64
	start               int64
	period              float64
}

func (r *trend) add(t *cellTable, c *common) {
	for e := range t.epochs {
		if t.live>>e&1 == 0 || !c.known[e] {
			continue
		}
		if r.n == 0 {
			r.start = t.starts[e]
		}
		at, x := float64(t.starts[e]-r.start), c.mean[e]
		r.n++
		r.t += at
		r.tt += at * at
		r.x += x
		r.xx += x * x
		r.tx += at * x
		r.period = max(r.period, float64(t.ends[e]-t.starts[e]))
	}
}

// variance returns what a steady drift of the clocks would add to the variance
// of delays, if the means of all packets look like one: a line explains nine
// tenths of how they differ.
func (r *trend) variance() float64 {
	if r.n < 4 {
		return 0
	}
	tt, tx, xx := r.tt-r.t*r.t/r.n, r.tx-r.t*r.x/r.n, r.xx-r.x*r.x/r.n
	if tt <= 0 || tx*tx < 0.9*tt*xx {
		return 0
	}
	slope := tx / tt
	return slope * slope * (tt/r.n + r.period*r.period/12)
}
