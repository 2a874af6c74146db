package areas

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A Transit says how long packets were on their way between two cuts.
type Transit struct {
	// Mean is the time that packets spent on their way between the cuts, for each that was received there, in
	// nanoseconds. Error is its standard error, for all packets received, not just those in cells.
	Mean, Error float64
	degrees     uint64 // of freedom of Error

	// Late is by how much the mean may be greater because those that count as lost may still come: 0 once it is known how long packets take.
	Late float64

	// First and Last describe the packets that were on their way at the first and at the last cut.
	First, Last OnWay

	// Delay is the mean delay in nanoseconds of the packets that were received, by levels, whatever became of the others, and
	// DelayError its standard error, or +Inf if levels do not tell. By areas it is (Mean·Received + First.Ages − Last.Ages)/Received.
	Delay, DelayError float64

	Greatest float64 // delay seen lately
	Bursts   bool    // the rate of what was sent varies by more than itself
	Scatter  float64 // variance of the time of one packet
	Received float64 // packets, in all cells
	Joined   float64 // of these, those that came without being sent: copies, or taken for lost
	Alike    float64 // of these, those that look like others on their way, so that no hash lets them be alone
	Hidden   float64 // time for each received that those may have taken from areas which do not show
	Exact    float64 // of these, in spans without losses of groups that are used
	negative float64 // share of the exact spans whose areas are negative

	uneven float64 // relative variance of the number on their way from cut to cut, beyond chance
	change float64 // variance of by how many more are on their way at one end than at the other, of which Packets tell
	along  float64 // covariance of that with the time on the way
	early  float64 // share of those that cross cuts that come before they are sent

	crossed float64 // packets, cut by cut
	off     float64 // time of packets on their way at the last cut, of which exact spans do not tell
	scale   float64 // packets received for each in the groups that are used
}

// An OnWay describes the packets that are on their way at a cut.
type OnWay struct {
	Packets  float64
	Ages     float64 // the sum of their ages, as estimated
	Variance float64 // of Ages
	Shared   float64 // a standard error of Ages, beside, that both ends share
	Pending  float64 // packets of which it is not known that they have come since
}

// An Alone is a packet that was alone in its cell, so that its delay is known.
type Alone struct {
	Delay  int64   // in nanoseconds
	Weight float64 // the packets that it stands for, of all groups that count

	from, to uint32 // the cuts before it was sent and after it came
}

// Transit returns how long packets were on their way after cut number from and up to cut number to, by what is known at the latest cut.
// It is at its best a patience later: until then, cells with slow packets have not settled. It calls alone, if not nil, with the packets
// that were alone in their cell when they arrived; these are valid until the next call.
//
// If no packet was received, or nothing is known of any, the error is estimate.ErrNoSamples. It wraps
// [estimate.ErrClocks] if many delays are negative and hardly any were in the report before, or the reverse,
// and if most that cross cuts arrive before they are sent where packets were lost, or some do and it is not known
// yet whether any was: nothing tells the two apart. A clock that is set by less looks like delays that change.
func (a *Areas) Transit(from, to int, alone func([]Alone)) (Transit, error) {
	from, to = from-a.before, to-a.before
	a.observe(from, to)
	a.bursts = a.uneven()
	t, err := a.pool(from, to).combine()
	if err == nil && a.learn(min(a.tail(&t), float64(a.ends[a.latest()]-a.begun))) {
		a.observe(from, to)
		t, err = a.pool(from, to).combine()
	}
	if t.Greatest, t.Bursts = a.greatest, a.bursts; err != nil {
		return t, err
	}
	if a.weigh(); a.joining(t.Received / a.between(from, to)) { // what was learned from them is not true
		a.proven, a.greatest, a.patience = -1, 0, math.Inf(1)
		return a.Transit(from+a.before, to+a.before, alone)
	}
	a.center, a.seen = t.Mean, -1
	for i := 0; i < len(a.calm) && a.bits < 64; i++ { // narrow sums are read about another mean
		a.calm[i].area = a.near(uint64(int64(a.calm[i].area)), a.calm[i].packets)
	}
	if t.degrees >= manyCells {
		a.seen = t.negative
	}
	if less := min(a.seen, a.negative); less >= 0 && less < hardly && max(a.seen, a.negative) > many {
		return t, fmt.Errorf("%w: one was set", estimate.ErrClocks)
	}
	why, apart := "packets come before they are sent", a.cutApart(&t)
	if apart {
		why = "the points cut at other times"
	}
	if t.early > 0.5 && t.Exact < 0.999*t.Received || !apart && t.early > hardly && a.losses.of < hardly*t.Received {
		return t, fmt.Errorf("%w: %s", estimate.ErrClocks, why)
	}
	if alone != nil {
		alone(a.alone)
	}
	mean := min(max(a.age(&t), t.Mean+(t.First.Ages-t.Last.Ages)/t.Received), a.greatest)
	if mean > mostDelay*a.step { // where most count as lost before they come, areas are too small: those that were alone tell
		return t, fmt.Errorf("%w: packets take %.0f intervals on average, want at most %g: take longer ones", estimate.ErrNoSamples,
			mean/a.step, float64(mostDelay))
	}
	if t.Joined > 0 { // of packets of which copies came it is known to within an interval
		t.Greatest += a.step
	}
	if a.watched < knowsTail*a.step && t.Received > 0 {
		t.Late = a.losses.coming() / t.Received
	}
	t.Delay, t.DelayError = a.delay(&t)
	t.Mean += t.off / t.Received
	t.Last.Ages += t.off
	return t, nil
}

// mostDelay is how many intervals packets may take on average. Callers wait for at most 90, so that of
// slower ones neither the ages at the end of a report nor the losses are known in time.
const mostDelay = 90 / patienceFactor

// joining reports, while the beginning is kept, whether packets join that no point sent: they came longer after the
// beginning than any sent since has taken, and are more than can have been on their way then at today's rate, or, as
// the lost hide them, two came later than any packet is waited for.
func (a *Areas) joining(received float64) bool {
	long := patienceFactor * a.losses.longest
	late := long > 0 && a.another > max(long, patienceFactor*mostDelay*a.step)
	usual := received * a.taking.first / (a.taking.weights + 1)
	return a.beginning() && a.proven > long && (late || float64(a.surplus) > usual+3*math.Sqrt(usual)+1)
}

// knowsTail is for how many intervals packets have to be seen to know how long the
// slowest take: what comes once in 15 is missed once in e³. What was not seen by then is not expected.
const knowsTail = 45

// fewAlone is how many packets that were alone do not show how long packets take. Then they may take longTail times as long as the
// mean: one in e^(1.5·5) of exponential delays takes longer than the patience.
const fewAlone, longTail = 30, 5

// Where hardly any areas were negative and many are, or the reverse, a clock was set.
const hardly, many = 0.02, 0.2

// tail returns how long packets may take if those that were alone do not show it, or 0: there were few, lately,
// or they are few of those received. In cells that always have packets on their way, fast ones are alone.
func (a *Areas) tail(t *Transit) float64 {
	n := &a.now
	n.received, n.way, n.alone, n.took = t.Received, math.Abs(t.Mean)*t.Received, float64(len(a.alone)), a.window.took
	switch lately := n.alone + a.past.alone; {
	case n.alone < fewAlone && lately < (n.received+a.past.received)/2:
		// Those on their way at the end took part of the time, and after a burst nearly all of it.
		return longTail * max(n.way/(n.received+t.Last.Packets),
			(n.way+a.past.way)/(n.received+a.past.received+t.Last.Packets))
	case lately < fewAlone:
		return longTail * (n.took + a.past.took) / max(lately, 1)
	}
	return 0
}

// observe learns of losses, and of the greatest delay.
func (a *Areas) observe(from, to int) {
	for a.losses.observe(a, from, to); a.learn(max(a.losses.longest, a.Before())); a.losses.observe(a, from, to) {
	}
}

// learn takes packets to take so long, and reports whether that may change what is lost.
func (a *Areas) learn(greatest float64) bool {
	if greatest <= a.greatest {
		return false
	}
	was, first := a.patience, math.IsInf(a.patience, 1)
	a.greatest = greatest
	if p := patienceFactor * greatest; p > was || first {
		a.patience = p // what was lost by a shorter one still tells the share that is lost
	}
	return first || a.patience >= 1.3*was
}

// weigh weighs the packets that were alone.
func (a *Areas) weigh() {
	for i := range a.crossing {
		for _, x := range a.crossing[i] {
			age, of, others := float64(x.Delay), &a.onWay[i], a.weight(int(x.from), int(x.to))-1
			of.seen.add(1, age)
			of.alone.add(others, shareOf(1, age))
		}
	}
	m := &a.taking
	*m = struct{ weights, first, second, third, apart float64 }{}
	for i, last := 0, (Alone{}); i < len(a.alone); i++ { // most follow others of the same cut
		x := &a.alone[i]
		if x.from != last.from || x.to != last.to {
			last = Alone{0, a.weight(int(x.from), int(x.to)), x.from, x.to}
		}
		x.Weight = last.Weight
		d := math.Abs(float64(x.Delay))
		w, wd, wdd := last.Weight, last.Weight*d, last.Weight*d*d
		m.weights, m.first, m.second, m.third = m.weights+w, m.first+wd, m.second+wdd, m.third+wdd*d
		m.apart += (w - 1) * wdd * d
	}
}

// Weights appends what packets would stand for that were alone and came at the end of the latest Transit, by
// how long they took at least, in intervals, up to the greatest delay seen lately.
func (a *Areas) Weights(to []Alone) []Alone {
	last := a.window.to
	for from := last - 1; from >= 0 && a.between(from+1, last-1) <= a.greatest; from-- {
		to = append(to, Alone{a.ends[last-1] - a.ends[from+1], a.weight(from, last), uint32(from), uint32(last)})
	}
	return to
}

// weight returns for how many packets one stands that was alone from one cut to another, whichever group it was
// in: one over the chance to have been so in that which its hash chose, in a cell that was settled, with nothing
// else sent. In dense groups hardly any slow packet is alone, and these few would stand for too many.
func (a *Areas) weight(from, to int) float64 {
	w, l, chance, all, kept := &a.window, &a.losses, 0.0, 0.0, a.losses.chances(0, from, to)
	if kept.alone > 0 {
		return kept.alone
	}
	for g := range w.groups {
		size, others := float64(a.size(g)), 0.0
		for k := from + 1; k <= to; k++ {
			others += l.groups[g].cuts[k].all - max(0, l.groups[g].cuts[k].others)
		}
		settled := min(1, (1-l.groups[g].cuts[from].unsettled/size)/l.free(g, from, from)) // but for losses
		chance += w.groups[g].sent * settled * math.Exp(-others/size) * l.free(g, from, to)
		all += w.groups[g].sent
	}
	kept.alone = all / max(chance, all*1e-13)
	return kept.alone
}
