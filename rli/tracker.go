package rli

import (
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

type held struct { // a packet in the interpolation buffer
	flow    hashing.Flow
	time    int64
	delay   int64   // from the tracker's origin, once estimated
	error   float32 // ns, predicted
	bytes   int32
	at      int32 // where its flow's record should be
	mix     mix
	stretch uint32
}

const heldSize = 48

type departure struct { // of the latest packet
	time   int64
	bytes  int32
	packet bool         // not a reference
	flow   hashing.Flow // its own, or 0 if it was reported with Pass
}

const never = math.MinInt64 / 2 // when the latest packet departed, before there is one

// mark is what a reference says: the delay of a packet of its size at a time.
type mark struct {
	seen     bool
	departed int64
	behind   int64        // when the reference itself departed,
	took     float64      // and ns to send it, or 0 if it was not sent with the packet that it names
	delay    int64        // from the origin
	number   uint32       // of packets sent so far
	told     uint32       // of those that departed
	packets  uint32       // it stands for: those since the reference before
	bytes    int64        // of the packet whose delay it is
	flow     hashing.Flow // of the packet it names, or 0
}

// A tracker carries over from one interval to the next. The receivers of a rotation share it.
type tracker struct {
	config Config
	busy   bool // whether busy periods are followed: the link's rate is known
	pace
	key                key
	order              order
	account            account
	buffer             []held
	waiting            int // number of packets in it
	latest             departure
	passed, references uint64
	left, earlier      mark    // the two latest references
	gap, stretch       uint32  // their numbers, from 1: see record
	usual              float64 // packets between references, at most, lately
	doubts             doubts  // about the packets that wait
	skipped, vanished  float64 // references lost since the one before; while no packet was, of the latest 16 or so
	twins              [twins]twin
	after, pause       trend            // how long after its packet a reference was sent, and how uncertain that is
	beyond, apart      trend            // delays beyond the least, and times between references
	load, number, cut  trend            // ns that the link sends in between, packets, and ns that periods cut short add to the mean
	gaps               estimate.Moments // behind references: see held
	lineError, fourths trend            // mean square, and that of those squares
	lines              ratios           // of lines' mean squares, by how far apart delays at their ends are and the longer one
	bySize             cell             // of lines' errors: products with, and squares of, differences of sizes
	origin             int64            // delays are relative to that of a reference
	link               link
	away               float64 // ns from the base delay to those of the latest 16 references or so
	lostBase           float64 // the base delay when trust was lost in stretch lostAt, if not 0,
	lostTime           int64   // and when it was last known
	lostAt             uint32
	spread             *spread
	periods            []period // of the packets in the buffer; the last is under way
	current            int      // the last
	turns              turns    // in it
	leftHere           bool     // whether the left reference is in periods[0]
	leftAt             point    // if so, where
	class              class
}

func newTracker(c Config) *tracker {
	t := &tracker{config: c, buffer: make([]held, max(c.Buffer, 1)), latest: departure{time: never}, gap: 1, stretch: 1}
	if c.Rate > 0 {
		t.perByte, t.busy = 8e9/float64(c.Rate), c.Method == Auto
	}
	t.lines, t.slack = newRatios(1, 1, 32, most*most, true), t.leastSlack()
	t.link.relax(t.slack)
	if c.Method == Auto {
		t.periods, t.spread = make([]period, c.Buffer+1), newSpread()
	}
	return t
}

// depart takes in the departure of a packet that is not measured, and reports whether it found the link idle.
func (r *Receiver) depart(bytes int32, t int64) (idle bool) {
	if r.busy && math.Abs(r.excess(bytes, t)) > r.slack {
		idle = r.interrupt(bytes, t)
	}
	r.latest = departure{time: t, bytes: bytes}
	return idle
}

func (t *tracker) excess(bytes int32, now int64) float64 {
	return float64(now-t.latest.time) - t.sending(bytes)
}

// interrupt closes the period, unless the packet departed too soon, and reports whether it found the link idle.
func (r *Receiver) interrupt(bytes int32, t int64) (idle bool) {
	if r.excess(bytes, t) < 0 {
		r.counts.Conflicts++
		r.link.agreed = 0
		return false
	}
	p := &r.periods[r.current]
	p.end = r.latest.time
	r.class.end(r.spread, p.place(p.end, 0))
	if r.waiting > int(p.held) {
		r.current++
	} else if r.current == 0 {
		r.leftHere = false
	}
	idle = r.latest.time != never
	r.stretch++
	r.periods[r.current] = period{first: t, lead: r.sending(bytes), whole: idle, held: int32(r.waiting)}
	r.turns = turns{}
	return idle
}

// start returns where a period's waiting times begin: at the left reference, or its beginning.
func (r *Receiver) start(period int) end {
	if period == 0 && r.leftHere {
		return end{r.leftAt, true}
	}
	return end{}
}
