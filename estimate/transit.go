package estimate

import (
	"errors"
	"fmt"
	"math"
)

// ErrClocks says that a clock was set, so that delays have become negative or were
// so before, or that the points' cuts are so far apart that packets come before
// they are sent.
var ErrClocks = errors.New("the clocks do not agree")

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

	Scatter  float64 // variance of the time of one packet
	Received float64 // packets, in all cells
	Left     float64 // of these, in cells of which nothing is known
	Exact    float64 // of these, in spans without losses of groups that are used
	Negative float64 // share of the exact spans whose areas are negative

	steady bool // the number of packets on their way varies by chance only
	early  bool // most packets that cross cuts come before they are sent
}

// OnWay is about the packets that are on their way at a cut.
type OnWay struct {
	Packets  float64
	Ages     float64 // the sum of their ages, as estimated
	Known    float64 // of these, the ages that are known,
	Seen     float64 // of so many packets that were alone
	Variance float64 // of Ages
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
//
// If no packet was received, or nothing is known of any, the error is
// ErrNoSamples. If many delays are negative and hardly any were in the report
// before, or the reverse, it wraps [ErrClocks]. A clock that is set the other way, or
// by less, looks like delays that change. It also wraps ErrClocks if packets were lost
// and most that cross cuts come before they are sent: nothing tells those that are
// lost from those that come.
func (a *Areas) Transit(from, to int, alone func(Alone)) (Transit, error) {
	from, to = from-a.before, to-a.before
	a.observe(from, to)
	t, err := a.pool(from, to).combine()
	if err != nil {
		return t, err
	}
	var first, last ages
	a.single(from, to, &first, &last)
	if was := a.patience; len(a.alone) < fewAlone && longTail*math.Abs(t.Mean) > a.greatest {
		// In cells that always have packets on their way, fast ones are alone.
		a.greatest = longTail * math.Abs(t.Mean)
		a.patience = max(was, patienceFactor*a.greatest)
		if a.patience > 1.3*was {
			return a.Transit(from+a.before, to+a.before, alone)
		}
	}
	a.center, a.seen = t.Mean, -1
	if t.Degrees >= manyCells {
		a.seen = t.Negative
	}
	if less := min(a.seen, a.negative); less >= 0 && less < hardly && max(a.seen, a.negative) > many {
		return t, fmt.Errorf("%w: one was set", ErrClocks)
	}
	if t.early && t.Exact < 0.999*t.Received {
		return t, fmt.Errorf("%w: packets come before they are sent", ErrClocks)
	}
	for i := range a.alone {
		if alone != nil {
			alone(a.alone[i])
		}
	}
	a.age(&t, &first, &last)
	return t, nil
}

const (
	// fewAlone is how many packets that were alone do not show how long packets
	// take. Then they may take longTail times as long as the mean: one in
	// e^(1.5·5) of exponential delays takes longer than the patience.
	fewAlone, longTail = 30, 5

	// Where hardly any areas were negative and many are, or the reverse, a clock
	// was set.
	hardly, many = 0.02, 0.2
)

// observe learns of losses, and of the greatest delay.
func (a *Areas) observe(from, to int) {
	for {
		a.losses.observe(a, from, to)
		if a.losses.longest <= a.greatest {
			return
		}
		a.greatest = a.losses.longest
		was := a.patience
		if p := patienceFactor * a.greatest; p > was || math.IsInf(was, 1) {
			a.patience = p
			a.past.sent, a.past.lost = 0, 0 // by a shorter patience
		}
		if a.patience < 1.3*was && !math.IsInf(was, 1) {
			return
		}
	}
}

// ages adds up ages, each with a weight.
type ages struct{ n, sum, weights, squares, first, second float64 }

func (a *ages) add(age, weight float64) {
	a.n++
	a.sum += age
	a.weights += weight
	a.squares += weight * weight
	a.first += weight * age
	a.second += weight * age * age
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
			first.add(float64(SignExtend(uint64(a.ends[from])-x.sentSum, a.bits)), weight)
		}
		if x.to > to && x.from < to {
			last.add(float64(SignExtend(uint64(a.ends[to])-x.sentSum, a.bits)), weight)
		}
		if x.to <= to {
			a.alone = append(a.alone, Alone{x.group, SignExtend(x.sentSum, a.bits), x.sum, weight})
		}
	})
}

// age estimates the ages of the packets on their way at both ends. A packet is seen
// on its way in proportion to its delay, and its age is uniform up to that. So with
// moments m of the delays the mean age is m₂/2m₁, and the mean square m₃/3m₁. The
// third is known from packets that were alone if they vary as all do. Else it is at
// least m₂²/m₁, and at most m₂ times the greatest delay. Where the number of packets
// on their way varies more than by chance, delays change, and those that are alone
// at an end tell their ages better.
func (a *Areas) age(t *Transit, first, last *ages) {
	mean := math.Abs(t.Mean)
	if mean == 0 {
		return
	}
	var m struct{ weights, second, third float64 }
	for i := range a.alone {
		w, d := a.alone[i].Weight, math.Abs(float64(a.alone[i].Delay))
		m.weights += w
		m.second += w * d * d
		m.third += w * d * d * d
	}
	second := t.Scatter + mean*mean
	third := second * second / mean
	if len(a.alone) >= 100 && m.second > 0.7*second*m.weights {
		third = max(third, m.third/m.weights)
	} else {
		third = max(third, second*a.greatest)
	}
	global := second / (2 * mean)
	for _, of := range []struct {
		end  *OnWay
		seen *ages
	}{{&t.First, first}, {&t.Last, last}} {
		end, seen := of.end, of.seen
		n, age, spread, doubt := max(end.Packets, 0), global, max(third/(3*mean)-global*global, 0), 0.0
		typical := math.Abs(seen.first-global*seen.weights) <= 4*math.Sqrt(spread*seen.squares)
		if !t.steady || !typical { // such as while a host is stalled
			doubt = global * global
			if seen.n > 2 {
				age = seen.first / seen.weights
				spread = max(0, seen.second/seen.weights-age*age)
				doubt = (spread+sq(global/seen.n))*seen.squares/sq(seen.weights) + sq(age/4)
			}
		}
		rest := max(0, n-seen.n) // they take longer than those that were alone
		end.Known, end.Seen, end.Ages, end.Variance = seen.sum, seen.n, seen.sum+rest*age, 2*rest*spread+rest*rest*doubt
	}
}
