package hoplag

import (
	"cmp"
	"slices"
	"sync"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lds"
)

// A FlowDelay is the one-way delay of a flow.
type FlowDelay struct {
	Flow   hashing.Flow `json:",string"` // as [Point.Flow] names it; text in JSON, whose numbers are shorter
	Mean   float64      // nanoseconds
	StdDev float64      // nanoseconds, 0 if unknown
	Sent   uint64       // upper bound of its packets sent
	Share  float64      // fraction of its packets behind the answer

	// Lost is an upper bound of its losses: what its counters miss, including
	// its neighbours' losses, and packets that were on their way when the
	// report ended. Overdue is how many of these are certainly lost, the
	// flow's or its neighbours': they did not arrive within eight cuts. If
	// counters always have packets on their way, the two differ by as many
	// packets as pass in eight cuts and more: only long reports say much about
	// such flows.
	Lost, Overdue uint64

	// MeanInterval95 contains the mean of all its packets in 95 of 100
	// reports, apart from what the clocks add.
	MeanInterval95 estimate.Interval
}

// lds returns the Config of the counters of flows: eight cells a flow. Two
// rows see every packet. The rows that sample are for flows that always have
// packets on their way, whose cells in the other rows are never empty.
func (c Config) lds() lds.Config {
	return lds.Config{
		Identity: hashing.Fingerprint(c.seed()),
		Rows:     4, Columns: max(64, 2*c.Flows), Spread: 1, Rates: [lds.MaxRows]float64{1, 1, 1.0 / 8, 1.0 / 64},
		SumBits: 64, DigestBits: 24,
	}
}

// maxFlows bounds Config.Flows.
const maxFlows = 1 << 20

// A census remembers which flows passed a point in the latest intervals.
type census struct {
	mu   sync.Mutex
	last [2]map[hashing.Flow]int64 // the latest cut that a flow was in, by direction
}

// add takes the flows of a cut, and forgets those that were not seen after the
// cut before.
func (c *census) add(direction int, flows map[hashing.Flow]struct{}, cut, before int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last[direction] == nil {
		c.last[direction] = map[hashing.Flow]int64{}
	}
	last := c.last[direction]
	for f := range flows {
		last[f] = cut
	}
	for f, seen := range last {
		if seen <= before {
			delete(last, f)
		}
	}
}

// since appends the flows that were seen in a cut or later.
func (c *census) since(dst []hashing.Flow, direction int, cut int64) []hashing.Flow {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f, seen := range c.last[direction] {
		if seen >= cut {
			dst = append(dst, f)
		}
	}
	return dst
}

// flowDelays estimates all flows and returns the slowest first. It also
// returns how many have no answer. All packets' delays have the deviation. What
// bursts of losses leave of a flow is of calmer times, so it widens the intervals.
func flowDelays(a *lds.Accumulator, flows []hashing.Flow, deviation float64) (known []FlowDelay, unknown int) {
	for _, f := range flows {
		r, err := a.Estimate(f)
		if err != nil {
			unknown++
			continue
		}
		i, apart := r.MeanInterval(0.95), r.LeftOut(deviation)
		i.Low -= apart
		i.High += apart
		known = append(known, FlowDelay{
			Flow: f, Mean: r.Mean, StdDev: r.StdDev, Sent: r.Sent, Lost: r.Lost, Overdue: r.Overdue, Share: r.Share,
			MeanInterval95: i,
		})
	}
	slices.SortFunc(known, func(a, b FlowDelay) int {
		return cmp.Or(-cmp.Compare(a.Mean, b.Mean), cmp.Compare(a.Flow, b.Flow))
	})
	return known, unknown
}
