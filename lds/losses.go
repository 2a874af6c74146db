package lds

import (
	"math"

	"github.com/hoplag/hoplag/hashing"
)

// patience is the number of intervals that a packet may be on its way before
// it counts as lost.
const patience = 8

// With digests of at least this many bits, levels count as equal only if the
// same packets are outstanding.
const digestsTell = 16

// A loss is what an Accumulator knows about the losses of a cell since it
// began to follow the cell, at a Reset or after a gap. There may always be
// packets on their way. Those on their way at the beginning may have come
// since, and hide others that are lost; those on their way now may still come.
type loss struct {
	base   uint64 // level at which the cell began
	sent   uint32 // packets sent up to the latest mark
	passed uint32 // packets received
	early  uint32 // of these, those that may have been sent before the cell began
	carry  uint32 // upper bound of packets on their way when the cell began
	known  int32  // packets lost for certain
	closed bool   // packets that come from now on were not on their way when the cell began

	before lossRange // what was lost before the latest gap
}

// A lossRange holds a lower and an upper bound of the packets lost.
type lossRange struct{ least, most uint32 }

const lossSize = 40

// pass counts packets received.
func (l *loss) pass(received uint32, early bool) {
	l.passed += received
	if early && !l.closed {
		l.early += received
	}
}

// close takes in a group of packets that came and went. Only those received
// before it may have been sent before the cell began.
func (l *loss) close(group uint32) {
	l.early = min(l.early, l.passed-group)
	l.closed = true
}

// outstanding returns how many more packets of a cell were sent than received
// since it began.
func (a *Accumulator) outstanding(i int) int32 {
	return a.levels.Outstanding(i) - int32(uint32(a.losses[i].base))
}

// mark is called every patience intervals. What had been sent by the last mark
// and has not been received is lost.
func (a *Accumulator) mark() {
	for i := range a.losses {
		l := &a.losses[i]
		l.known = max(a.knownLost(i), int32(l.sent-l.passed))
		l.sent = l.passed + uint32(a.outstanding(i))
	}
}

// knownLost returns how many packets of a cell are certainly lost since it
// began: those outstanding at two cuts so far apart that no packet was on its
// way at both, and those found by marks.
func (a *Accumulator) knownLost(i int) int32 {
	l := &a.losses[i]
	if overdue, ok := a.levels.Overdue(i, patience); ok && a.config.DigestBits >= digestsTell {
		return max(l.known, overdue-int32(uint32(l.base)))
	}
	return l.known
}

// lossSince returns the range of packets of a cell lost since it began.
func (a *Accumulator) lossSince(i int) lossRange {
	l := &a.losses[i]
	carry := int32(min(l.carry, l.early, math.MaxInt32))
	least := a.knownLost(i)
	return lossRange{uint32(least), uint32(max(least, a.outstanding(i)+carry))}
}

// plus returns the sum of both ranges.
func (r lossRange) plus(more lossRange) lossRange {
	return lossRange{r.least + more.least, r.most + more.most}
}

// split makes all cells begin anew at the current cut, after which intervals
// are missing: what is on its way at the next cut is unknown.
func (a *Accumulator) split() {
	for i := range a.losses {
		before := a.losses[i].before.plus(a.lossSince(i))
		a.losses[i] = loss{base: a.levels.Level(i), carry: math.MaxUint32, before: before}
	}
	a.began = a.levels.Cuts()
}

// settle makes all cells begin anew at the current cut, from which levels are
// counted. What may be lost, but not for certain, may be on its way.
func (a *Accumulator) settle() {
	short := a.levels.Cuts()-a.began < patience
	for i := range a.losses {
		l, since := &a.losses[i], a.lossSince(i)
		carry := uint64(since.most - since.least)
		if short {
			carry += uint64(l.carry)
		}
		*l = loss{carry: uint32(min(carry, math.MaxUint32))}
	}
	a.began = 0
}

// lostOf returns the range of packets that flow f's cells lost, including
// those of others, from the row that lost the fewest of those that see every
// packet.
func (a *Accumulator) lostOf(f hashing.Flow) (least, most uint64) {
	c := &a.config
	all, sampled := math.Inf(1), math.Inf(1)
	for r := range c.Rows {
		var row lossRange
		for offset := range c.Spread {
			at := c.at(r, f, offset)
			row = row.plus(a.losses[at].before).plus(a.lossSince(at))
		}
		if bound := float64(row.most); c.Rates[r] < 1 {
			sampled = min(sampled, atMost(bound, c.Rates[r]))
		} else if bound < all {
			all, least = bound, uint64(row.least)
		}
	}
	if math.IsInf(all, 1) {
		all = sampled
	}
	return least, uint64(math.Round(all))
}
