package lda

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// An Accumulator adds up what two points saw over many intervals. Compare often,
// so that a loss, a lost report or a refused interval costs little. Report
// seldom: after as many intervals as a good answer takes.
//
//	total, err := lda.NewAccumulator(config)
//	for each interval, in order {
//		err = total.Add(interval, up, down)
//	}
//	result, err := total.Estimate()
//	p99, err := total.Distribution().Quantile(0.99, 0.95)
//	total.Reset()
//
// Clocks may cut the intervals: a packet that passes the points in different
// intervals spoils nothing. The accumulator follows the level of each cell, the
// packets counted upstream minus those counted downstream since the beginning
// (see [estimate.Levels]). Between two cuts of equal level a cell holds the same
// packets at both points, and its delays add up exactly. Without losses every
// packet ends up in the sample, whatever its delay. A loss costs one cell the
// packets between the cuts around it.
//
// Memory is fixed, and Add allocates nothing. An Accumulator is not safe for
// concurrent use.
type Accumulator struct {
	config   Config
	levels   *estimate.Levels
	groups   []group // room for those of one interval, to avoid copies
	whole    []estimate.Group
	baseline []int32 // by cell, what was outstanding at the last gap
	last     uint64  // interval
	started  bool
	blind    bool // there was a gap, and something may have been on its way

	outstanding [maxSpan]int64  // by cut: packets sent less received since the beginning
	passed      [maxSpan]uint64 // by cut: packets received since the beginning

	net     int64   // packets sent less received since the beginning
	load    float64 // packets sent in an interval, averaged over the latest
	counts  Result  // Sent, Received, Lost and Extra up to the last gap, Cells
	rest    int64   // packets sent less received, of those that no bank samples
	changed uint64  // differences between the points' counts, by cell and interval
	sample  sample  // of whole strata
	open    stratum // the one being filled
	alone   reservoir

	suspect  [MaxBanks]bool // some cell of the bank is repeated
	repeated []repeated     // by cell
	copied   copies         // of these cells
}

// patience is the number of intervals that a packet may be outstanding before
// it counts as lost, if nothing passes its cell. If it still comes, it no
// longer counts as lost.
const patience = 8

// NewAccumulator returns an empty accumulator for aggregators of one Config, whose
// shifts a [Tuner] may change. The error wraps [estimate.ErrConfig].
func NewAccumulator(c Config) (*Accumulator, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	a := &Accumulator{
		config:   c,
		levels:   estimate.NewLevels(c.cells(), c.SumBits, c.DigestBits),
		groups:   make([]group, 0, c.cells()),
		whole:    make([]estimate.Group, 0, c.cells()),
		baseline: make([]int32, c.cells()),
		alone:    newReservoir(),
		repeated: make([]repeated, c.cells()),
	}
	return a, nil
}

// MemorySize returns the number of bytes that the accumulator takes: about 260 for
// each cell.
func (a *Accumulator) MemorySize() int {
	return a.levels.MemorySize() + (32+32)*cap(a.groups) + 28*len(a.baseline) + 24*cap(a.alone.samples) + 16*maxSpan
}

// Reset begins the next report. It keeps following every cell: packets on their
// way belong to the report in which their cell returns to its level.
func (a *Accumulator) Reset() {
	for i := range a.baseline {
		a.baseline[i] = a.levels.Lost(i, patience)
	}
	a.counts, a.rest, a.changed, a.sample, a.open = Result{}, 0, 0, sample{}, stratum{from: a.levels.Cuts()}
	a.alone.reset()
	if a.suspect != none {
		clear(a.repeated)
	}
	a.suspect, a.copied = none, copies{}
}

// Gap says that the next interval does not follow the last one, whatever its
// number: a point was restarted, or its clock was set. The accumulator leaves out
// the packets that were on their way, and from then on does not know the delays
// of cells that hold copies of one packet: it cannot tell a copy that was on its
// way from one that came after. One that begins while packets are on their way
// begins with a Gap.
func (a *Accumulator) Gap() {
	a.blind = true
	a.close()
	for i := range a.baseline {
		a.counts.addNet(int64(a.levels.Lost(i, patience)) - int64(a.baseline[i]))
		a.baseline[i] = a.levels.Outstanding(i)
	}
	a.levels.Gap()
	a.started = false
}

// Add adds what both points saw of an interval. Intervals come by ascending
// number; if one is missing, the packets that were on their way around it are left
// out. The error wraps [estimate.ErrMismatch] if a Config differs in more than
// shifts, and [estimate.ErrOrder] if the interval does not come after the last.
// After an error nothing has changed, except for one: an interval whose cells
// contradict each other is left out, and the error wraps [ErrContradiction].
func (a *Accumulator) Add(interval uint64, up, down *Aggregator) error {
	if err := sameConfig(up, down); err != nil {
		return err
	}
	if !a.config.sameButShifts(&up.config) {
		return fmt.Errorf("lda: %w: %+v and %+v", estimate.ErrMismatch, up.config, a.config)
	}
	if a.started && interval <= a.last {
		return fmt.Errorf("lda: %w: %d after %d", estimate.ErrOrder, interval, a.last)
	}
	if a.started && interval != a.last+1 || a.config != up.config {
		a.Gap()
	}
	a.config, a.last, a.started = up.config, interval, true
	received := a.cut(up, down)
	a.levels.Next()
	return a.settle(received)
}

// sameButShifts reports whether two Configs have the same cells.
func (c *Config) sameButShifts(o *Config) bool {
	x := *c
	for j := range x.Banks {
		x.Banks[j].Shift = o.Banks[j].Shift
	}
	return x == *o
}

// addNet accounts for lost packets or, if lost is negative, for extra ones.
func (r *Result) addNet(lost int64) {
	if lost > 0 {
		r.Lost += uint64(lost)
	} else {
		r.Extra += uint64(-lost)
	}
}

// Groups returns the packets that the interval added last has shown to be
// whole, in the order of cells. They are valid until the next Add. Group.From
// and Group.To count the intervals added since NewAccumulator.
func (a *Accumulator) Groups() []estimate.Group { return a.whole }

// cut compares the cells at the end of an interval and collects the groups of
// packets that are whole. It returns how many packets were received.
func (a *Accumulator) cut(up, down *Aggregator) (received uint64) {
	a.groups, a.whole = a.groups[:0], a.whole[:0]
	limits := [2]limits{up.limits(), down.limits()}
	restSent, restReceived := up.unsampledCount(), down.unsampledCount()
	if n := float64(limits[0].packets + restSent); a.load == 0 {
		a.load = n
	} else {
		a.load += (n - a.load) / 8
	}
	first := 0
	for bank, b := range a.config.Banks[:a.config.banks()] {
		end := first + b.Rows
		received += a.cutBank(bank, first, up.cells[first:end], down.cells[first:end], &limits)
		first = end
	}
	a.counts.Sent += restSent
	a.net += int64(restSent)
	a.rest += int64(restSent - restReceived)
	received += restReceived
	a.counts.Received += received
	a.net -= int64(received)
	cut := a.levels.Cuts()
	a.outstanding[(cut+1)%maxSpan] = a.net
	a.passed[(cut+1)%maxSpan] = a.passed[cut%maxSpan] + received
	return received
}

// cutBank is cut for the cells of a bank, which begins with cell first. It
// returns how many packets were received, except those of cells that hold
// copies.
func (a *Accumulator) cutBank(bank, first int, sent, got []cell, limits *[2]limits) (received uint64) {
	if limits[0].beyond[bank] || limits[1].beyond[bank] {
		a.suspect[bank] = true
	}
	suspect := a.suspect[bank]
	density := a.config.rate(bank) * a.load / float64(len(sent))
	cells, packets := 0, uint64(0)
	for i := range sent {
		s, d := &sent[i], &got[i]
		if s.sum|s.tally|d.sum|d.tally == 0 {
			continue
		}
		out, in := uint64(s.count()), uint64(d.count())
		if out|in != 0 {
			cells++
		}
		packets += out
		a.changed += max(out, in) - min(out, in)
		repeated := suspect && a.repeats(first+i, bank, s.count(), d.count(), limits)
		if repeated {
			a.copied.received += in
			a.counts.Received += in
			a.net -= int64(in)
		} else {
			received += in
		}
		g, ok := a.levels.Cut(first+i, estimate.CellPair{SentSum: s.sum, SentTally: s.tally, ReceivedSum: d.sum, ReceivedTally: d.tally})
		if !ok {
			continue
		}
		a.whole = append(a.whole, g)
		if repeated {
			a.tellCopies(first+i, &g)
			continue
		}
		of := group{packets: g.Packets, sum: uint64(g.Sum), copies: a.copies(bank, g.From, g.To), from: g.From}
		if of.packets == 1 {
			of.alone = float64(of.copies) * rarity(density, g.To-g.From)
		}
		a.groups = append(a.groups, of)
	}
	a.counts.Cells += cells
	a.counts.Sent += packets
	a.net += int64(packets)
	return received
}

// maxSpan is the number of cuts over which losses are remembered.
const maxSpan = 1024

// copies returns how often a group counts. A loss in its cell would have
// spoilt it. So groups of slow packets, which span many intervals, survive
// less often than others: with λ losses per cell in the intervals that a group
// spans beyond one, with probability e^−λ. The group counts e^λ times, rounded
// up or down at random.
func (a *Accumulator) copies(bank int, from, to uint32) uint32 {
	last := to - 1
	if from >= last {
		return 1
	}
	first := max(from, last-min(last, maxSpan-1))
	lost := float64(a.outstanding[last%maxSpan] - a.outstanding[first%maxSpan])
	lambda := lost * a.config.rate(bank) / float64(a.config.Banks[bank].Rows)
	if lambda < 0.03 { // numbers on their way vary by as much
		return 1
	}
	weight := math.Exp(min(lambda, maxWeight))
	whole := math.Floor(weight)
	if a.alone.uniform() <= weight-whole {
		whole++
	}
	return uint32(whole)
}

// maxWeight is the logarithm of the greatest number of times that a group
// counts.
const maxWeight = 4

// Estimate returns what is known so far: the mean and deviation of the packets
// received since the beginning or the last Reset, and their loss. The mean is
// exact if N is Received: every received packet is in a group of packets that is
// whole. Other packets are taken to be like those received at about the same time,
// and MeanDoubt says how wrong that may be. Estimate changes nothing. If no group
// is whole yet, the error wraps [estimate.ErrNoSamples] and the counts are right
// all the same.
//
// A packet is Outstanding until others have passed its cell, for at most eight
// intervals. Then it counts as lost.
func (a *Accumulator) Estimate() (Result, error) {
	r := a.counts
	outstanding := int64(0)
	for i := range a.baseline {
		lost := a.levels.Lost(i, patience)
		r.addNet(int64(lost) - int64(a.baseline[i]))
		outstanding += int64(a.levels.Outstanding(i) - lost)
	}
	r.addNet(a.rest)
	r.Outstanding = uint64(max(outstanding, 0))
	r.Repeats = a.copied.report()
	r.Crossed = (max(a.changed, r.Lost+r.Extra) - r.Lost - r.Extra) / 2
	s := a.sample
	if a.open.cells.Cells() > 0 {
		s.add(&a.open, a.config.sampledRate())
	}
	if s.packets == 0 {
		const none = "lda: %w: %d packets sent, %d received, no cell came back to a level it had"
		return r, fmt.Errorf(none, estimate.ErrNoSamples, r.Sent, r.Received)
	}
	s.report(&r)
	of := a.copied
	return r, r.include(&of)
}

// Distribution returns the distribution of the delays of packets that were alone
// in their cell between two cuts of equal level. The accumulator keeps up to 4,096
// of them, chosen at random so that every received packet is represented alike.
func (a *Accumulator) Distribution() Distribution {
	return newDistribution(a.alone.delays())
}
