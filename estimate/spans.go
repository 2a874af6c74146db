package estimate

import (
	"math"
	"sort"
)

// A Span is the part within a window of the time between two cuts at which a cell
// was settled, or since the last such cut.
type Span struct {
	Cell           int
	Sent, Received uint32
	Area           float64 // time that packets sent and not known to be lost before spent outstanding
	Aged           float64 // part of Area, for which packets aged that were lost, as expected
	Variance       float64 // of Aged: 0 where nothing was lost, infinite where nothing is known

	// Lost is how many packets the whole span lost, told where it ends; fewer than none
	// came after they had been told. While the span is open, as many are outstanding, lost
	// or on their way.
	Lost int
	Open bool // the cell had not settled by the window's end
	Late bool // began before the window
}

// Spans calls visit for the spans of all cells, one cell after another, after
// cut number from and up to cut number to. Call [Areas.Transit] first. Unlike that,
// Spans does not take the cells of a group for alike, so it serves cells of flows.
func (a *Areas) Spans(from, to int, visit func(Span)) {
	from, to = from-a.before, to-a.before
	a.follower.usual, a.follower.stay = a.usual()
	a.profile()
	calm := func(c *areaCell, cut int, e *areaEvent, area float64, _ bool) {
		if cut <= to {
			visit(Span{Cell: int(c.number), Sent: e.sent, Received: e.received, Area: area})
		}
	}
	a.walk(from, calm, func(x *span) {
		if x.from >= to {
			return
		}
		begin, end := max(x.from, from), min(x.to, to)
		s := Span{Cell: x.cell, Open: x.open || x.to > to && !x.exact, Late: x.from < from || x.before > 0}
		for k := begin - x.from; k < end-x.from; k++ {
			s.Area += x.area[k]
			s.Sent += x.out[k]
			s.Received += x.in[k]
		}
		if s.Open {
			s.Lost = int(x.on[end-1-x.from])
		} else if x.to <= to {
			s.Lost = x.lost
		}
		switch {
		case x.unknown:
			s.Variance = math.Inf(1)
		case x.late > 0 && x.to <= to:
			s.Area += x.owed
		case !x.exact:
			s.Aged, s.Variance = a.aged(x, begin, end)
		}
		visit(s)
	})
}

// A follower follows how many packets of a span may have been lost, from cut to cut.
// What is outstanding is lost or on its way,
//
//	outstanding(k) = lost(k) + way(k),
//
// where lost never falls and way is never negative. Packets are lost like those sent,
// as often as all cells lost packets in that cut. As many are on their way as were sent
// lately, times how long they take; of that it tries some, and weighs each by how well it
// explains the span. Digests tell more: levels that are equal at two cuts mean that
// nothing was lost in between and hardly anything was on its way. Levels that differ,
// with as many outstanding, and later never fewer, mean that one was on its way; that is
// used where packets are slow, and elsewhere adds more bias than it takes away.
type follower struct {
	steps     []followed // by cut
	open      bool
	lost      int     // at the end, in units, or at most if open
	unit      int     // packets lost are counted in units
	before    float64 // expected losses before the first cut
	usual     float64 // time for which packets are on their way
	stay      float64 // time for which a packet that is on its way will still be
	alike     float64 // so many cuts tell as much as one, because the same packets are on their way
	now, next []guess
	told      bool      // cells tell what share of packets is lost
	share     float64   // of packets lost
	rates     []float64 // likewise, by cut
	sent, on  []float64 // by cut: packets of all cells sent, and outstanding
	crowd     float64
	tried     []trial
	kept      []trial
}

// A followed is a cut of a span.
type followed struct {
	length, sent float64
	losses       float64 // expected
	age          float64 // of packets sent in the interval, at its end
	outstanding  int
	most         int     // packets lost
	again        float64 // time until the same level is there again, or 0
	counts       bool    // in the window
}

// A guess is that so many packets are lost by a cut: how likely, and for how long they have
// aged within the window, with the mean of its square.
type guess struct{ weight, aged, squares float64 }

// A trial is what follows if packets take e^(at/64) times as long as usual.
type trial struct {
	at            int
	evidence      float64 // logarithm
	aged, squares float64
}

const (
	mostUnits = 64   // of packets lost
	nextAgain = 8    // cuts within which a level may come again
	slow      = 4    // intervals for which a packet that is slow is on its way
	enough    = 1e3  // packets that settled tell what share is lost
	seldom    = 1e-3 // share of packets that may be lost where none is known to be
)

// crowds are shapes of the number of packets on their way, whose variance is n + n²/shape:
// they come by chance, or crowd.
var crowds = []float64{1000, 4}

// aged returns for how long packets that were lost in a span aged between two cuts, and
// the variance of that.
func (a *Areas) aged(x *span, from, to int) (aged, variance float64) {
	f := &a.follower
	f.alike = 1 / math.Tanh(a.step/(2*f.stay))
	f.prepare(a, x, from, to)
	f.kept = f.kept[:0]
	for _, f.crowd = range crowds {
		f.search()
	}
	weights, squares, best := 0.0, 0.0, math.Inf(-1)
	for _, t := range f.kept {
		best = max(best, t.evidence)
	}
	for _, t := range f.kept {
		if p := math.Exp(t.evidence - best); p > 0 {
			weights += p
			aged += p * t.aged
			squares += p * t.squares
		}
	}
	if weights == 0 {
		return 0, math.Inf(1)
	}
	aged /= weights
	variance = max(0, squares/weights-aged*aged)
	if x.open && !f.told { // all that is outstanding may be lost, and may have been for long
		variance += sq(f.longest()) / 12
	}
	if x.lost == 0 && !x.open || x.joined > 0 { // one was lost, and another one joined
		variance += (1 + float64(x.joined)) * sq(float64(a.ends[to]-a.ends[from])) / 6
	}
	return aged, variance
}

// usual returns for how long packets are on their way, and for how long one that is will
// still be: with moments m of the delays m₂/2m₁.
func (a *Areas) usual() (mean, stay float64) {
	mean = max(math.Abs(a.center), 1)
	if a.center == 0 { // nothing was exact yet
		area, received := 0.0, 1.0
		calm := func(_ *areaCell, _ int, e *areaEvent, each float64, _ bool) {
			area += each
			received += float64(e.received)
		}
		a.walk(0, calm, func(x *span) {
			area += sum(x.area)
			received += float64(x.received)
		})
		mean = max(area/received, 1)
	}
	return mean, (a.scatter + mean*mean) / (2 * mean)
}

// profile fills in which share of the packets sent in each interval was lost, halfway
// between what two things tell that err to both sides. Settled spans tell how many they
// lost, spread evenly. And all cells together have as many outstanding as are lost and on
// their way, so the least from then on rises by what is lost, or before; the more are on
// their way, the less that tells.
func (a *Areas) profile() {
	f, l, n := &a.follower, &a.losses, len(a.ends)
	if f.share = (l.total + 0.5) / (l.of + 1); l.total < 0.5 {
		f.share = min(f.share, seldom)
	}
	f.rates, f.sent, f.on = resize(f.rates, n), resize(f.sent, n), resize(f.on, n)
	clear(f.sent)
	clear(f.on)
	for j := range a.cells {
		for at := a.cells[j].first; at != 0; at = a.events[at].next {
			if e := &a.events[at]; int(e.cut) > a.before {
				f.sent[int(e.cut)-a.before] += float64(e.sent)
				f.on[int(e.cut)-a.before] += float64(e.sent) - float64(e.received)
			}
		}
	}
	for k := 1; k < n; k++ {
		f.on[k] += f.on[k-1]
	}
	way := 0.0
	for k := n - 2; k >= 0; k-- {
		least := min(f.on[k], f.on[k+1])
		way += f.on[k] - least
		f.on[k] = least
	}
	lost := max(f.on[n-1]-f.on[0], 0) / float64(n)
	vague := math.Sqrt(way/float64(n)+1) / (lost + 1)
	// As many are said to be lost as settled spans tell: what has risen tells only when.
	much := min(1, f.share*sum(f.sent)/max(f.on[n-1]-f.on[0], 1))
	f.told = l.of > enough
	for k := range f.rates {
		f.rates[k] = f.share
		f.told = f.told || k > 0 && a.old(k) && a.filled(k)
		if k > 0 && f.sent[k] > 0 && a.old(k) && a.filled(k) {
			risen := (much*max(f.on[k]-f.on[k-1], 0) + vague*f.share*f.sent[k]) / (f.sent[k] * (1 + vague))
			f.rates[k] = (risen + (l.lost[k]+1)/(l.sent[k]+1/f.share)) / 2
		}
	}
}

// filled reports whether as many packets are on their way at cut k as ever: at first,
// more are because they begin.
func (a *Areas) filled(k int) bool {
	return float64(a.ends[k-1]-a.begun) >= a.patience
}

// longest returns for how long packets that were lost may have aged at most.
func (f *follower) longest() (aged float64) {
	for _, s := range f.steps {
		if s.counts {
			aged += float64(max(s.most, 0)) * s.length
		}
	}
	return aged
}

// prepare reads a span.
func (f *follower) prepare(a *Areas, x *span, from, to int) {
	n := len(x.on)
	f.open, f.before, f.steps = x.open, f.share*x.before, resize(f.steps, n)
	at := sort.Search(len(a.passed), func(i int) bool { return int(a.passed[i].cut)-a.before > x.from })
	least, level, apart := math.MaxInt, uint64(0), 0
	for k := range n {
		cut := x.from + 1 + k
		s := followed{length: a.length(cut), sent: float64(x.out[k]), outstanding: int(x.on[k]), counts: cut > from && cut <= to}
		s.losses, s.age = s.sent*f.rates[cut], s.length/2
		if at < len(a.passed) && int(a.passed[at].cut)-a.before == cut {
			if e := &a.passed[at]; e.sent > 0 {
				s.age = float64(SignExtend(uint64(a.ends[cut])*uint64(e.sent)-e.sentSum, a.bits)) / s.sent
			}
			at++
		}
		f.steps[k] = s
	}
	for k := range f.steps {
		for j := k + 1; j < min(n, k+1+nextAgain); j++ {
			if x.levels[j] != x.levels[k] {
				continue
			}
			f.steps[k].again = float64(a.ends[x.from+1+j] - a.ends[x.from+1+k])
			for i := k + 1; i <= j; i++ {
				f.steps[i].losses = 0
			}
			break
		}
	}
	for k := n - 1; k >= 0; k-- {
		switch on := f.steps[k].outstanding; {
		case on < least:
			least, level, apart = on, x.levels[k], 0
		case on == least && x.levels[k] != level && a.greatest > slow*a.step:
			apart = 1
		}
		f.steps[k].most = least - apart
	}
	last := max(0, x.lost)
	if x.open {
		last = max(0, f.steps[n-1].most)
	}
	f.unit = 1 + last/mostUnits
	f.lost = (last + f.unit - 1) / f.unit
}

// search tries how long packets take, until the best is known to within what the
// evidence tells, and keeps some around it.
func (f *follower) search() {
	const far = 300
	f.tried = f.tried[:0]
	at, step := 0, 90
	for {
		here, shorter, longer := f.try(at), f.try(at-step), f.try(at+step)
		switch {
		case shorter > here && shorter >= longer && at > -far:
			at -= step
			continue
		case longer > here && at < far:
			at += step
			continue
		case step > 1 && here-min(shorter, longer) > 1.5:
			step = (step + 1) / 2
			continue
		}
		break
	}
	f.try(at - 2*step)
	f.try(at + 2*step)
	for _, t := range f.tried {
		if d := t.at - at; d%step == 0 && max(d, -d) <= 2*step {
			f.kept = append(f.kept, t)
		}
	}
}

// try returns the evidence if packets take e^(at/64) times as long as usual. How long
// cells' packets take is spread about that by a factor of e.
func (f *follower) try(at int) float64 {
	for _, t := range f.tried {
		if t.at == at {
			return t.evidence
		}
	}
	x := float64(at) / 64
	t := f.follow(f.usual * math.Exp(x))
	t.at = at
	t.evidence -= sq(x+0.5) / 2
	f.tried = append(f.tried, t)
	return t.evidence
}

// follow goes through the cuts of the span, if packets take so long.
func (f *follower) follow(mean float64) (t trial) {
	f.now, f.next = resize(f.now, f.lost+1), resize(f.next, f.lost+1)
	p, unit := 1.0, float64(f.unit)
	for i := range f.now {
		f.now[i] = guess{weight: p}
		p *= f.before / unit / float64(i+1)
	}
	way := 0.0
	for k := range f.steps {
		s := &f.steps[k]
		stay := math.Exp(-s.length / f.stay)
		if way = way*stay + s.sent; s.length > 0 {
			way += s.sent * (mean/s.length*(1-stay) - 1)
		}
		way = max(way, 1e-3)
		total := 0.0
		for j := range f.next {
			f.next[j] = guess{}
			likely := 0.0
			if k == len(f.steps)-1 && !f.open {
				if j == f.lost {
					likely = 1
				}
			} else if (j-1)*f.unit < max(s.most, 0) || j == 0 {
				likely = f.likely(max(0, s.outstanding-j*f.unit), way, s.again)
			}
			if likely > 0 {
				f.next[j] = f.step(s, j, likely)
				total += f.next[j].weight
			}
		}
		if total == 0 {
			return trial{evidence: math.Inf(-1)}
		}
		for j := range f.next {
			f.next[j].weight /= total
		}
		t.evidence += math.Log(total)
		f.now, f.next = f.next, f.now
	}
	for _, g := range f.now {
		t.aged += g.weight * g.aged
		t.squares += g.weight * g.squares
	}
	return t
}

// likely returns how likely it is that n packets are on their way where so many are
// expected, and still are when the same level is there again.
func (f *follower) likely(n int, expected, again float64) float64 {
	x := float64(n)
	all, _ := math.Lgamma(x + f.crowd)
	none, _ := math.Lgamma(f.crowd)
	some, _ := math.Lgamma(x + 1)
	p := all - none - some + x*math.Log(expected/(f.crowd+expected)) - f.crowd*math.Log1p(expected/f.crowd)
	return math.Exp(p/f.alike - x*again/f.stay)
}

// step adds up all ways by which the number of units lost becomes n in an interval.
func (f *follower) step(s *followed, n int, likely float64) (g guess) {
	unit := float64(f.unit)
	for i := n; i >= 0; i-- {
		if d := n - i; d > 0 {
			likely *= s.losses / unit / float64(d)
		}
		if likely == 0 {
			break
		}
		was := &f.now[i]
		if was.weight == 0 {
			continue
		}
		p := likely * was.weight
		g.weight += p
		if s.counts {
			lost := float64(n-i) * unit
			more := float64(i)*unit*s.length + lost*s.age
			g.aged += p * (was.aged + more)
			g.squares += p * (was.squares + 2*was.aged*more + more*more + lost*unit*s.length*s.length/12)
		} else {
			g.aged += p * was.aged
			g.squares += p * was.squares
		}
	}
	if g.weight > 0 {
		g.aged /= g.weight
		g.squares /= g.weight
	}
	return g
}
