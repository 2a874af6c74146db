package colate

import "math"

// A common is what typical cells say about the epochs in a table: how all packets fared.
//
// Which cells lose a packet in an epoch is chance, because hashes spread packets over them. So those that lose none stand for the others.
type common struct {
	mean  [room]float64 // delay, ns
	known [room]bool    // whether there is a settled cell
	gone  [room]float64 // part of the packets that is lost, or on its way at the end and not at the beginning
	cell  [room]float64 // packets that came in one cell, and that were sent
	sent  [room]float64
	usual float64 // delay over the epochs that count
	lost  float64 // part of the packets over all epochs

	full float64 // packets in a typical cell, in epochs that count

	// Of all tables so far.
	scatter       spread
	shown, varied float64 // packets in settled cells of the flows asked for, and Σ of these times their variance
	reference     float64 // the usual delay of the first table
	late          crossed
	begun         int64   // when the first began
	lasted        float64 // those that count, ns
	came          float64 // packets of epochs that count
	settled       float64 // packets of these that settled
	cells         float64 // in all tables
}

// learn learns from every stride-th cell from first on that has no more packets than typical; about delays from
// all, if these have next to none.
func (c *common) learn(t *cellTable, first, stride int) {
	if c.late.packets == 0 {
		c.begun = t.spans[0].start
	}
	t.totals, t.typical = t.totals[:0], t.typical[:0]
	for i := first; i*t.size < len(t.counts); i += stride {
		t.totals = append(t.totals, t.total(i))
	}
	for e := range t.counting() {
		c.lasted += float64(t.spans[e].end - t.spans[e].start)
	}
	c.full = middle(t.totals)
	limit, all, typical := c.full+margin(c.full), 0.0, 0.0
	for _, n := range t.totals {
		if all += n; n <= limit {
			typical += n
		}
	}
	few := 10*typical < all
	var came, sent, used, gone [room]float64
	for i := first; i*t.size < len(t.counts); i += stride {
		if !few && t.total(i) > limit {
			continue
		}
		t.typical = append(t.typical, i)
		for e := range t.epochs {
			n := t.sent(i, e)
			came[e] += t.packets(i, e)
			sent[e] += n
			if few { // cells count alike, of which one flow has most packets in some
				n = min(n, 1)
			}
			used[e] += n
			gone[e] += n * t.gone(i, e) / max(t.sent(i, e), 1)
		}
	}
	c.cell, c.sent = [room]float64{}, [room]float64{}
	left, arrived := 0.0, 0.0
	for e := range t.epochs {
		left += sent[e]
		arrived += came[e]
		if c.gone[e] = max(gone[e]/max(used[e], 1), 0); !few {
			c.cell[e], c.sent[e] = came[e]/float64(len(t.typical)), sent[e]/float64(len(t.typical))
		}
	}
	c.lost = max(1-arrived/max(left, 1), 0)
	c.means(t)
	c.cells += float64(len(t.typical))
	var s sight
	for _, i := range t.typical {
		t.read(i, &s)
		c.scatter.add(t, i, &s, t.live, c.reference)
		c.late.add(t, i, &s, c)
	}
}

// means learns delays from typical cells.
func (c *common) means(t *cellTable) {
	var area, count, all, cells [room]float64
	var s sight
	for _, i := range t.typical {
		t.read(i, &s)
		for e := range t.epochs {
			n := t.packets(i, e)
			if all[e] += n; s.has(e) {
				area[e] += s.areas[e]
				count[e] += n
				cells[e]++
			}
		}
	}
	total, counts := 0.0, 0.0
	for e := range t.epochs {
		if c.known[e] = count[e] > 0; !c.known[e] {
			continue
		}
		c.mean[e] = area[e] / count[e]
		if t.live>>e&1 != 0 { // what was before the window may be unlike it
			total += c.mean[e] * all[e]
			counts += all[e]
		}
	}
	if c.usual = total / max(counts, 1e-9); c.cells == 0 { // sums are of what is above it
		c.reference = c.usual
	}
	for e := range t.epochs {
		if !c.known[e] {
			c.mean[e] = c.usual
		}
		if t.live>>e&1 != 0 {
			c.settled += count[e]
			c.came += all[e]
			c.scatter.epoch(area[e]-count[e]*c.reference, count[e], max(cells[e], 1))
		}
	}
}

// settles reports whether most packets settle, apart from those that losses explain, each of which may spoil
// all that passes its cell in a table. Otherwise so many are on their way in each cell that only fast ones settle.
func (c *common) settles() bool {
	spoiled := max(c.late.sent-c.late.packets, 0) * c.came / max(c.cells, 1)
	return 2*(c.settled+spoiled) >= c.came
}

// beside returns the variance of a packet's delay within the other flows asked for. The fewer of their packets settled cells
// show beside those of this flow that they do not, the more it is that of all, where flows that wait alike look slow.
func (c *common) beside(own *tally) float64 {
	asked := max(c.varied-own.shown*own.variance(), 0)
	hidden := max(own.sampled, 1)
	return (asked + hidden*c.scatter.variance()) / (max(c.shown-own.shown, 0) + hidden)
}

// A spread is how much packets in settled cells vary, whenever they came. If x is the delays in a cell above the mean, Σx²
// less (Σx)²/n over an epoch's n cells is on average 1 - 1/n of the packets' squares, however many of them wait alike.
type spread struct {
	squares, both, counts       float64 // Σ (delays above the reference)², Σ these × packets, Σ packets²
	above, shown, cells, epochs float64 // Σ delays above the reference, packets, settled cells, and epochs
	seconds, fourths            float64 // Σ powers of the delays of each cell and set above the reference
}

func (s *spread) square(above, n, weight float64) {
	s.squares += weight * above * above
	s.both += weight * above * n
	s.counts += weight * n * n
}

// epoch adds what the settled cells of an epoch hold together.
func (s *spread) epoch(above, n, cells float64) {
	s.square(above, n, -1/cells)
	s.above += above
	s.shown += n
	s.cells += cells
	s.epochs++
}

// add adds one of these cells, in some epochs. A set answers for all of its epochs together.
func (s *spread) add(t *cellTable, i int, of *sight, epochs uint32, reference float64) {
	var sets [room]struct{ above, n float64 }
	for e := range t.epochs {
		if of.settled&epochs>>e&1 != 0 {
			n := t.packets(i, e)
			sets[of.set[e]].above += of.areas[e] - n*reference
			sets[of.set[e]].n += n
		}
	}
	for _, x := range sets {
		s.square(x.above, x.n, 1)
		s.seconds += x.above * x.above
		s.fourths += math.Pow(x.above, 4)
	}
}

// degrees returns the degrees of freedom.
func (s *spread) degrees() float64 { return min(s.cells-s.epochs, s.shown) }

// slow returns the square of what a packet takes that is slow, if most of the variance is of these.
func (s *spread) slow() float64 { return s.fourths / max(s.seconds, math.SmallestNonzeroFloat64) }

// variance returns the variance of a packet's delay.
func (s *spread) variance() float64 {
	n := max(s.shown, 1)
	mean := s.above / n
	return max(s.squares+mean*(mean*s.counts-2*s.both), 0) / n * s.cells / max(s.cells-s.epochs, 1)
}

// A crossed is about packets that came in epochs after they were sent, of which rises of counts tell: those that losses hide because no
// set explains them, or sets like those that do lost a packet; those in sets; and those from before the table, as nothing had left in it.
type crossed struct {
	crossings
	packets, clean float64 // all, and those in epochs before which nothing had left
	latest         float64 // of those from before the table: how long after the first epoch it came
	sent, missing  float64 // packets sent, and those of them that never came
}

type crossings struct{ hidden, shown, far crossing }

// A crossing is how many packets came late, Σ squares, and how long they may have taken in all.
type crossing struct{ n, squares, time float32 }

func (c *crossing) add(n, time float64) {
	c.merge(&crossing{float32(n), float32(n * n), float32(n * time)})
}

func (c *crossing) merge(o *crossing) {
	c.n += o.n
	c.squares += o.squares
	c.time += o.time
}

// add adds what a cell says: how many more packets came in an epoch than were sent, and not so early in it that any
// packet may have been on its way when it began.
func (l *crossed) add(t *cellTable, i int, s *sight, c *common) {
	from, missing := -1, 0.0
	for e := range t.epochs {
		gone, settled, live := t.gone(i, e), s.has(e), t.live>>e&1 != 0
		if from < 0 && gone > 0 && !settled {
			from = e
		}
		if !settled && (live || gone < 0) {
			missing = max(missing+gone, 0)
		}
		if !live {
			continue
		}
		l.sent += t.sent(i, e)
		l.packets += t.packets(i, e)
		if from < 0 {
			l.clean += t.packets(i, e)
		}
		if gone >= 0 || t.lone>>e&1 != 0 {
			continue
		}
		n := max(t.packets(i, e)+gone, 0) // of the others
		since := t.time(t.area(t.changes[i*t.size+e], t.spans[e].start))
		before, usual := !settled && from < 0, c.mean[e]
		more, copies := -gone, before && !math.IsInf(t.longest, 1)
		if copies || since < (5+n+4*math.Sqrt(n))*usual && !(before && e > 0) {
			continue
		}
		if before {
			l.far.add(more, 0)
			l.latest = max(l.latest, float64(t.spans[e].end-c.begun))
			continue
		}
		if !settled {
			l.hidden.add(more, min(float64(t.spans[e].end-t.spans[from].start), t.longest))
			continue
		}
		// Others like it lost a packet, so that their slow ones are hidden. It took no longer than all of its set did.
		sent, took := t.upTo(i, s, e, usual)
		took += more * max(usual, 0)
		as := math.Exp(min(c.lost*sent, 5))
		l.shown.add(more*as, took/more)
		l.hidden.add(more*(as-1), took/more)
	}
	l.missing += missing
}

// missed returns by how much the mean delay may be too low, because losses hide packets, which
// rises show, or they were sent before the table.
func (l *crossed) missed(all *crossed) float64 {
	const some = 5 // in sets tell how many there are, and how long they take
	late, long, beyond := l.hidden, &l.shown, l.farther(all)
	if late.n == 0 {
		return beyond
	}
	if long.n*long.n <= some*long.squares {
		long = &l.hidden
	}
	late.time = late.n * long.time / long.n
	return beyond + late.most(l.packets)
}

// farther returns what the packets add that were sent before the table. The latest of all came so long after the first epoch began,
// into which a packet's time is cut at any point of it: so they may take twice as long. No more of them come than are missing, in
// the flow's cells or all: other packets that nothing explains are copies, or came past the first point.
func (l *crossed) farther(all *crossed) float64 {
	n, missing := float64(l.far.n), (all.missing+2*math.Sqrt(all.missing+1))*max(all.packets/max(all.sent, 1), 1)
	part := missing / max(float64(all.far.n), missing)
	l.far.time = float32(2 * max(l.latest, all.latest) * max(part, l.missing/max(n, l.missing, 1)) * n)
	return l.far.most(l.clean)
}

// most returns the most that these may add to the mean of a number of packets.
func (c *crossing) most(packets float64) float64 {
	n := max(float64(c.n), math.SmallestNonzeroFloat64)
	return (n + 2*math.Sqrt(float64(c.squares))) / max(packets, n) * float64(c.time) / n
}
