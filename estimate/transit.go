package estimate

import "math"

// A Transit says how long packets were on their way between two cuts.
type Transit struct {
	// Mean is the time that packets spent on their way between the cuts, for
	// each that was received there, in nanoseconds. Error is its standard error,
	// for all packets received, not just those in cells.
	Mean, Error float64
	Degrees     uint64 // of freedom of Error

	// First and Last are about the packets that were on their way at the first
	// and at the last cut.
	First, Last OnWay

	Greatest float64 // delay seen lately, fading

	Scatter  float64 // variance of the time of one packet
	Received float64 // packets, in all cells
	Left     float64 // of these, in cells of which nothing is known
	Exact    float64 // of these, in spans without losses of groups that are used
	Negative float64 // share of the exact spans whose areas are negative
	Groups   uint64  // those that are used, a bit each
}

// OnWay is about the packets that are on their way at a cut.
type OnWay struct {
	Packets float64

	// Age is the mean of the ages of those that are alone in their cell, and
	// AgeError its standard error, 0 if there are fewer than three.
	Age, AgeError float64
}

// An Alone is a packet that was alone in its cell, so that its delay is known.
type Alone struct {
	Group  int
	Sent   int64   // sign-extended from the width of sums
	Delay  int64   // in nanoseconds
	Weight float64 // the packets of its group that it stands for
}

// Transit returns how long packets were on their way after cut number from and
// up to cut number to, by what is known by the latest cut. It is best a patience
// later: until then, cells whose packets are slow have not settled. It calls
// alone, if not nil, for packets that were alone in their cell when they came.
// If no packet was received, or nothing is known of any, it returns
// ErrNoSamples.
func (a *Areas) Transit(from, to int, alone func(Alone)) (Transit, error) {
	l := &a.losses
	from, to = from-a.before, to-a.before
	for {
		l.observe(a, from, to)
		if l.longest <= a.greatest {
			break
		}
		a.greatest = l.longest
		was := a.patience
		if p := patienceFactor * a.greatest; p > was || math.IsInf(was, 1) {
			a.patience = p
			a.past.sent, a.past.lost = 0, 0 // by a shorter patience
		}
		if a.patience < 1.3*was && !math.IsInf(was, 1) {
			break
		}
	}
	t, err := a.pool(from, to).combine()
	if err != nil {
		return t, err
	}
	var first, last ages
	a.single(from, to, &first, &last)
	if len(a.alone) < fewAlone && longTail*math.Abs(t.Mean) > a.greatest {
		// In cells that always have packets on their way, fast ones are alone.
		was := a.patience
		a.greatest = longTail * math.Abs(t.Mean)
		a.patience = max(a.patience, patienceFactor*a.greatest)
		if a.patience > 1.3*was {
			return a.Transit(from+a.before, to+a.before, alone)
		}
	}
	if alone != nil {
		for _, one := range a.alone {
			alone(one)
		}
	}
	a.center, t.Greatest = t.Mean, a.greatest
	t.First.Age, t.First.AgeError = first.mean()
	t.Last.Age, t.Last.AgeError = last.mean()
	return t, nil
}

// fewAlone is how many packets that were alone do not show how long packets
// take. Then they may take as many times as long as the mean: one in e^(1.5·5)
// of exponential delays takes longer than the patience.
const fewAlone, longTail = 30, 5

// ages adds up ages, each with a weight.
type ages struct{ n, weights, squares, first, second float64 }

func (a *ages) add(age, weight float64) {
	a.n++
	a.weights += weight
	a.squares += weight * weight
	a.first += weight * age
	a.second += weight * age * age
}

// mean returns the mean and its standard error, 0 if that is not known.
func (a *ages) mean() (mean, err float64) {
	if a.weights == 0 {
		return 0, 0
	}
	mean = a.first / a.weights
	if a.n > 2 {
		err = math.Sqrt(max(0, a.second/a.weights-mean*mean) * a.squares / (a.weights * a.weights))
	}
	return mean, err
}

// single collects the packets that were alone in their cell and came in the
// window, and adds up the ages of those on their way at its ends. The chance to
// be alone falls with the packets that were sent in the meantime.
func (a *Areas) single(from, to int, first, last *ages) {
	a.alone = a.alone[:0]
	a.walk(from, func(x *span) {
		if !x.alone() {
			return
		}
		others, cuts := 0.0, a.losses.groups[x.group].cuts
		for k := x.from + 1; k <= x.to; k++ {
			others += cuts[k].all
		}
		weight := math.Exp(min(others/float64(a.size(x.group)), 30))
		if x.from < from {
			first.add(float64(SignExtend(uint64(a.cuts[from].end)-x.sentSum, a.bits)), weight)
		}
		if x.to > to && x.from < to {
			last.add(float64(SignExtend(uint64(a.cuts[to].end)-x.sentSum, a.bits)), weight)
		}
		if x.to <= to {
			a.alone = append(a.alone, Alone{x.group, SignExtend(x.sentSum, a.bits), x.sum, weight})
		}
	})
}

// A window is what the groups know of the packets between two cuts.
type window struct {
	groups  []groupWindow
	lossy   bool
	scatter float64 // variance of the time of one packet
}

type groupWindow struct {
	area, variance  float64 // of all
	first, last     float64 // area in the first and last cut
	received        float64
	left            float64 // received, of which nothing is known
	exact           float64 // received in exact spans
	cells           float64
	negative        float64    // exact spans with a negative area
	each            share      // areas of whole cells
	cellN, cellArea float64    // of the one at hand
	scatter         float64    // variance of the time of one packet
	noise           float64    // variance of what is known of single cells
	clear           bool       // most of the scatter is that of packets
	squares         float64    // scatter, added up over packets
	cuts            []cutShare // exact spans, and those that lost one packet
	whole           cutShare
}

// A cutShare is what spans hold in a cut, by class.
type cutShare struct {
	exact [spanClasses]share
	lossy [spanClasses]share
}

// pool adds up the spans of the window by group.
func (a *Areas) pool(from, to int) *window {
	l := &a.losses
	w := &window{lossy: l.total > 0, groups: make([]groupWindow, len(a.groups)-1)}
	for g := range w.groups {
		w.groups[g].cuts = make([]cutShare, to-from)
	}
	at := -1
	a.walk(from, func(x *span) {
		if x.from >= to {
			return
		}
		r := &w.groups[x.group]
		if x.cell != at {
			at = x.cell
			r.next()
		}
		if x.late > 0 && x.to <= to {
			r.comeLate(x, l.believed())
		}
		r.add(x, l.resolve(x), l.burst, from, to)
	})
	for g := range w.groups {
		r := &w.groups[g]
		r.next()
		r.variance += l.variance(g)
		r.finish(l.burst)
	}
	return w
}

// comeLate allows for the ages of packets that had been taken for lost.
func (r *groupWindow) comeLate(x *span, believed bool) {
	if believed {
		r.area += x.owed
	} else {
		r.variance += sq(x.owed)
	}
}

// next ends a cell.
func (r *groupWindow) next() {
	r.each.add(r.cellN, r.cellArea)
	r.cellN, r.cellArea = 0, 0
}

// add adds a span, whose areas have the given variance.
func (r *groupWindow) add(x *span, variance, burst float64, from, to int) {
	sure := x.exact || x.open && x.sure >= to || x.received == 0 && !x.open && x.joined == 0
	single := !sure && !x.open && x.lost == 1 && x.joined == 0
	r.noise += variance
	if !single {
		r.variance += variance * burst
	}
	class, total := spanClass(x.to-x.from), 0.0
	for k := max(x.from, from); k < min(x.to, to); k++ {
		if x.unknown {
			r.left += float64(x.in[k-x.from])
			continue
		}
		area, in := x.area[k-x.from], float64(x.in[k-x.from])
		total += area
		r.received += in
		r.cellN += in
		r.cellArea += area
		of := &r.cuts[k-from]
		switch {
		case sure && (area != 0 || in > 0):
			of.exact[class].add(in, area)
		case single:
			of.lossy[class].add(in, area)
			of.lossy[class].variance += variance
			variance = 0
		default:
			r.area += area
		}
	}
	if x.from < from && x.to > from {
		r.first += x.way[from-1-x.from]
	}
	if x.to > to || x.open {
		r.last += x.way[to-1-x.from]
	}
	if sure {
		r.cells++
		if total < 0 {
			r.negative++
		}
	}
}

// finish adds up the cuts. What spans hold that lost one packet is known from
// themselves, and from exact spans of the same class and cut, whichever is
// better.
func (r *groupWindow) finish(burst float64) {
	for k := range r.cuts {
		for c := range spanClasses {
			r.whole.exact[c].merge(&r.cuts[k].exact[c])
			r.whole.lossy[c].merge(&r.cuts[k].lossy[c])
		}
	}
	for c := range spanClasses {
		all, lossy := &r.whole.exact[c], &r.whole.lossy[c]
		r.area += all.a
		r.exact += all.n
		if lossy.cells == 0 {
			continue
		}
		area, variance := lossy.a, lossy.variance*burst
		if all.cells >= manyCells {
			like, spread := 0.0, 0.0
			for k := range r.cuts {
				one, of := &r.cuts[k].lossy[c], &r.cuts[k].exact[c]
				if one.cells == 0 {
					continue
				}
				if of.cells < manyCells {
					of = all
				}
				a, v := of.predict(one.cells, one.n)
				like += a
				spread += v
			}
			if spread < variance {
				area, variance = like, spread
			}
		}
		r.area += area
		r.variance += variance
	}
	if r.received > 0 {
		squares := r.each.squares()
		r.scatter = max(squares-r.noise, 0) / r.received
		r.clear = r.noise < squares/2 && r.exact > r.received/2
	}
}

// manyCells is how many cells a line takes.
const manyCells = 30

// combine adds up the groups, and leaves out those that add more variance than
// knowledge, the densest first: what they hold is known from the others.
func (w *window) combine() (Transit, error) {
	total, counted, left := 0.0, 0.0, 0.0
	var squares, of [2]float64 // of all groups, and of the clear ones
	for g := range w.groups {
		r := &w.groups[g]
		total += r.received + r.left
		left += r.left
		counted += r.exact
		squares[0] += r.scatter * r.received
		of[0] += r.received
		if r.clear {
			squares[1] += r.scatter * r.received
			of[1] += r.received
		}
	}
	if counted == 0 || 4*left > total {
		return Transit{Received: total, Left: left}, ErrNoSamples
	}
	w.scatter = squares[0] / total
	if of[1] > 0 {
		w.scatter = squares[1] / of[1]
	}
	best := Transit{Error: math.Inf(1)}
	var rest groupWindow
	groups := uint64(0)
	for g := len(w.groups) - 1; g >= 0; g-- {
		r := &w.groups[g]
		w.doubt(r, &rest)
		rest.merge(r)
		groups |= 1 << g
		if rest.exact == 0 {
			continue
		}
		out, one := total-rest.received, max(w.scatter, rest.squares/rest.received)
		t := Transit{
			Mean:     rest.area / rest.received,
			Error:    math.Sqrt(rest.variance*sq(total/rest.received)+one*out*(1+out/rest.received)) / total,
			Degrees:  uint64(max(1, rest.cells-1)),
			First:    OnWay{Packets: rest.first * total / rest.received},
			Last:     OnWay{Packets: rest.last * total / rest.received},
			Scatter:  one,
			Left:     left,
			Received: total,
			Exact:    rest.exact,
			Negative: rest.negative / rest.cells,
			Groups:   groups,
		}
		if t.Error <= best.Error || g == 0 && !w.lossy {
			best = t
		}
	}
	return best, nil
}

// doubt adds to the variance of a group what it differs from sparser ones
// beyond chance. They are samples of the same packets.
func (w *window) doubt(r, rest *groupWindow) {
	if r.received == 0 || rest.cells < manyCells || rest.exact < manyCells {
		return
	}
	one := max(w.scatter, rest.squares/rest.received)
	apart := r.area/r.received - rest.area/rest.received
	chance := one*(1/r.received+1/rest.received) + r.variance/sq(r.received) + rest.variance/sq(rest.received)
	if apart*apart > 6.25*chance {
		r.variance += (apart*apart - chance) * sq(r.received)
	}
}

// merge adds up what two groups know.
func (r *groupWindow) merge(o *groupWindow) {
	r.area += o.area
	r.variance += o.variance
	r.first += o.first
	r.last += o.last
	r.received += o.received
	r.exact += o.exact
	r.cells += o.cells
	r.negative += o.negative
	r.squares += o.scatter * o.received
}
