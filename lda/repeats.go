package lda

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// Repeats says what the counts reveal of identical packets. All copies of a packet
// fall into one cell; if they are many, the cell holds more packets than chance
// puts there (see [estimate.CountLimit]). It takes no key to repeat a packet, and
// honest senders do: keep-alives, probes, tunnels that are not looked into.
//
// If no copy is lost, their delays add up exactly and have their full weight in
// the mean. Their deviation is not known, and is taken to be that of the other
// packets. If a copy is lost, nothing is known of its cell except how many packets
// it holds: the mean is of the others, and the intervals allow for what the copies
// may add. [EstimateRest] leaves such cells out.
type Repeats struct {
	Cells   int    // cells that hold more packets than chance puts there
	Packets uint64 // packets beyond that, at the point that counted more
	Unknown uint64 // received packets of those cells whose delays are not known

	// Excess is how many packets that arrived may be missing from the sample
	// because a copy of them was lost. Groups too small to overfill a cell show
	// by that.
	Excess uint64
}

// limits holds the counts of a point's cells, bank by bank, and the greatest
// counts that chance gives them.
type limits struct {
	packets uint64 // of all banks
	most    [MaxBanks]uint64
	mean    [MaxBanks]float64 // of the cells within the limit
	beyond  [MaxBanks]bool    // some cell exceeds the limit
}

// limits looks at the cells that may not be empty (see some).
func (a *Aggregator) limits(which func(block int) uint64) (l limits) {
	var sum, greatest [MaxBanks]uint64
	a.banked(which, func(bank, i int) {
		n := uint64(a.cells[i].count())
		sum[bank] += n
		greatest[bank] = max(greatest[bank], n)
	})
	from := 0
	for j, b := range a.config.Banks[:a.config.banks()] {
		cells := a.cells[from : from+b.Rows]
		from += b.Rows
		l.packets += sum[j]
		l.most[j] = estimate.CountLimit(b.Rows, sum[j], greatest[j], func(i int) uint64 { return uint64(cells[i].count()) })
		l.beyond[j] = greatest[j] > l.most[j]
		within := b.Rows
		for i := 0; l.beyond[j] && i < len(cells); i++ {
			if n := uint64(cells[i].count()); n > l.most[j] {
				sum[j] -= n
				within--
			}
		}
		l.mean[j] = float64(sum[j]) / float64(max(within, 1))
	}
	return l
}

// none stands for no bank.
var none [MaxBanks]bool

// see counts a cell of a bank that is overfull at either point.
func (r *Repeats) see(bank int, up, down *limits, sent, received uint32) bool {
	s, d := uint64(sent), uint64(received)
	if s <= up.most[bank] && d <= down.most[bank] {
		return false
	}
	r.Cells++
	r.Packets += uint64(max(float64(s)-up.mean[bank], float64(d)-down.mean[bank]))
	return true
}

// copies are the packets of overfull cells.
type copies struct {
	Repeats
	received uint64
	known    uint64  // packets of usable ones
	sum      float64 // of their delays
	usable   int
}

// split removes the cells that are overfull at either point. It returns
// aggregators without them or, if there are none, those that it was given.
func split(up, down *Aggregator) (restUp, restDown *Aggregator, c copies) {
	of := [2]limits{up.limits(allCells), down.limits(allCells)}
	if of[0].beyond == none && of[1].beyond == none {
		return up, down, c
	}
	i := 0
	for bank, b := range up.config.Banks[:up.config.banks()] {
		for end := i + b.Rows; i < end; i++ {
			s, d := &up.cells[i], &down.cells[i]
			if !c.see(bank, &of[0], &of[1], s.count(), d.count()) {
				continue
			}
			if restUp == nil {
				restUp, restDown = up.clone(), down.clone()
			}
			agree := (s.tally^d.tally)&(up.config.digestMask()|(1<<32-1)) == 0
			c.add(agree, uint64(d.count()), estimate.SignExtend(d.sum-s.sum, int(up.config.SumBits)), up.config.SumBits)
			restUp.cells[i], restDown.cells[i] = cell{}, cell{}
		}
	}
	if restUp == nil {
		return up, down, c
	}
	return restUp, restDown, c
}

// add adds an overfull cell, or a group of its packets.
func (c *copies) add(usable bool, received uint64, sum int64, width uint8) {
	c.received += received
	c.tell(usable, received, sum, width)
}

// tell adds what is known about some packets: their delays, unless the sum may
// have wrapped.
func (c *copies) tell(usable bool, packets uint64, sum int64, width uint8) {
	if usable && math.Abs(float64(sum)) < math.Ldexp(1, int(width)-8) {
		c.known += packets
		c.sum += float64(sum)
		c.usable++
	}
}

// report returns what a Result says about the copies.
func (c *copies) report() Repeats {
	r := c.Repeats
	r.Unknown = c.received - min(c.received, c.known)
	return r
}

// include adds the copies to a Result of all other packets. The error wraps
// [estimate.ErrNoSamples] if too many are unknown.
func (r *Result) include(c *copies) error {
	excess := r.Repeats.Excess
	r.Repeats = c.report()
	r.Repeats.Excess = excess
	if c.received == 0 {
		return nil
	}
	rest, known := float64(r.Spoken), float64(c.known)
	r.N += c.known
	r.Spoken += max(c.received, c.known)
	r.Usable += c.usable
	r.strays += r.Repeats.Unknown
	share := known / (rest + known)
	if c.known > 0 {
		apart := c.sum/known - r.Mean
		r.Mean += share * apart
		r.StdDev = math.Sqrt(r.StdDev*r.StdDev + share*(1-share)*apart*apart)
	}
	r.MeanError *= 1 - share
	r.MeanDoubt *= 1 - share
	if 4*r.Repeats.Unknown > r.Spoken {
		const unknown = "lda: %w: of %d packets received %d share cells with copies of one, and no delay of them is known"
		return fmt.Errorf(unknown, estimate.ErrNoSamples, r.Received, r.Repeats.Unknown)
	}
	return nil
}

// EstimateRest is [Estimate] without the cells that hold many copies of one packet
// at either point. It leaves out those packets and the few that share their cells;
// the Result's counts are of all packets.
func EstimateRest(up, down *Aggregator) (Result, error) {
	if err := sameConfig(up, down); err != nil {
		return Result{}, err
	}
	restUp, restDown, c := split(up, down)
	r, err := Estimate(restUp, restDown)
	all := count(up, down)
	r.Sent, r.Received, r.Lost, r.Extra, r.Repeats = all.Sent, all.Received, all.Lost, all.Extra, c.report()
	return r, err
}
