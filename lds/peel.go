package lds

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/hoplag/hoplag/hashing"
)

// Peeled is what two Keyed sketches reveal of their flows.
type Peeled struct {
	Flows []PeeledFlow // the slowest first, those without a mean last
	// Complete reports whether Flows are all flows. If not, there were too
	// many for the sketch: those in Flows are right, and LeftSent packets
	// upstream and LeftReceived downstream belong to flows that could not be
	// told apart.
	Complete               bool
	LeftSent, LeftReceived uint64
}

// A PeeledFlow is one flow. Lost is Sent less Received. It is below 0 if
// packets came twice or were on their way when the interval began.
type PeeledFlow struct {
	Key            hashing.Flow // the first 45 bits of the flow's digest
	Sent, Received uint64
	Lost           int64
	// Mean is the exact mean delay in nanoseconds if Whole is true: if the
	// packets sent and received are the same.
	Mean  float64
	Whole bool
}

// Is reports whether this is flow f.
func (p *PeeledFlow) Is(f hashing.Flow) bool {
	key, _ := keyOf(f)
	return key == p.Key
}

// Peel separates the flows of two points' sketches of an interval. A cell with
// packets of one flow reveals the flow's key, which is the sum of keys divided
// by the count. Removing the flow from its other two cells leaves some of
// these with one flow, and so on. With up to [KeyedConfig.Flows] flows this
// finds all of them; with some more it stops early, and Complete is false.
//
// It returns [estimate.ErrMismatch] if the Configs or the intervals differ, and
// [estimate.ErrNoSamples] if there were no packets.
func Peel(up, down *Keyed) (Peeled, error) {
	if up.config != down.config {
		return Peeled{}, mismatch(up.config, down.config)
	}
	if err := up.match(down.stamp); err != nil {
		return Peeled{}, err
	}
	sent, leftSent := up.peel()
	received, leftReceived := down.peel()
	if len(sent)+len(received) == 0 && leftSent+leftReceived == 0 {
		return Peeled{}, errNoSamples
	}
	result := Peeled{Complete: leftSent+leftReceived == 0, LeftSent: leftSent, LeftReceived: leftReceived}
	for key, u := range sent {
		d, ok := received[key]
		if !ok && leftReceived > 0 {
			continue // it may be among those that are left
		}
		result.Flows = append(result.Flows, peeledFlow(key, u, d))
	}
	for key, d := range received {
		if _, ok := sent[key]; !ok && leftSent == 0 {
			result.Flows = append(result.Flows, peeledFlow(key, cell{}, d))
		}
	}
	slices.SortFunc(result.Flows, func(a, b PeeledFlow) int {
		switch {
		case a.Whole != b.Whole && a.Whole:
			return -1
		case a.Whole != b.Whole:
			return 1
		}
		return cmp.Or(cmp.Compare(b.Mean, a.Mean), cmp.Compare(a.Key, b.Key))
	})
	return result, nil
}

func peeledFlow(key hashing.Flow, up, down cell) PeeledFlow {
	f := PeeledFlow{
		Key: key, Sent: uint64(up.count()), Received: uint64(down.count()),
		Lost: int64(up.count()) - int64(down.count()), Whole: up.tally == down.tally,
	}
	if f.Whole {
		f.Mean = float64(int64(down.sum-up.sum)) / float64(f.Sent)
	}
	return f
}

// peel returns the flows of one point, each with the sum, count and digest of
// its packets, and how many packets of other flows are left.
func (s *Keyed) peel() (flows map[hashing.Flow]cell, left uint64) {
	rest := &Keyed{config: s.config, columns: s.columns, cells: slices.Clone(s.cells)}
	flows = map[hashing.Flow]cell{}
	waiting := make([]uint32, 0, len(rest.cells))
	for at := range rest.cells {
		waiting = append(waiting, uint32(at))
	}
	inverses := map[uint32]uint64{}
	for len(waiting) > 0 {
		at := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		one := rest.cells[at]
		key, ok := rest.single(uint64(at), inverses)
		if !ok {
			continue
		}
		flow := flows[key]
		flow.add(one.sum, one.tally)
		flows[key] = flow
		i, j, k := rest.places(key)
		for _, place := range []uint64{i, j, k} {
			c := &rest.cells[place]
			c.sum -= one.sum
			c.tally -= one.tally
			c.keys = (c.keys + keyPrime - one.keys) % keyPrime
			if place != uint64(at) {
				waiting = append(waiting, uint32(place))
			}
		}
	}
	most := [keyedRows]uint64{}
	for at, c := range rest.cells {
		most[at/int(s.columns)] += uint64(c.count())
		if c != (keyedCell{}) {
			most[at/int(s.columns)] = max(most[at/int(s.columns)], 1)
		}
	}
	return flows, slices.Max(most[:])
}

// single returns the key of the only flow in a cell, if there is only one.
func (s *Keyed) single(at uint64, inverses map[uint32]uint64) (hashing.Flow, bool) {
	c := &s.cells[at]
	n := c.count()
	if n == 0 {
		return 0, false
	}
	inverse, ok := inverses[n]
	if !ok {
		inverse = invertKey(uint64(n))
		inverses[n] = inverse
	}
	sum := multiplyKeys(c.keys, inverse)
	key, checked := keyOf(hashing.Flow(sum >> 16 << (64 - keyBits)))
	if checked != sum {
		return 0, false
	}
	// Requiring no fewer packets in the other cells means that packets only
	// ever become fewer: peeling ends, whatever the record holds.
	i, j, k := s.places(key)
	return key, (at == i || at == j || at == k) && min(s.cells[i].count(), s.cells[j].count(), s.cells[k].count()) >= n
}

// multiplyKeys returns a × b modulo keyPrime.
func multiplyKeys(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	x := low&keyPrime + (low>>61 | high<<3)
	x = x&keyPrime + x>>61
	if x >= keyPrime {
		x -= keyPrime
	}
	return x
}

// invertKey returns 1/n modulo keyPrime, by Fermat's little theorem.
func invertKey(n uint64) uint64 {
	inverse, power := uint64(1), n%keyPrime
	for e := uint64(keyPrime - 2); e > 0; e >>= 1 {
		if e&1 == 1 {
			inverse = multiplyKeys(inverse, power)
		}
		power = multiplyKeys(power, power)
	}
	return inverse
}
