package lda

import "github.com/hoplag/hoplag/estimate"

// Repeats is what an aggregator's counts tell of identical packets: all copies
// of one are in one cell, and where they are many the cell holds more packets
// than chance gives it (see [estimate.CountLimit]). Whoever repeats a packet
// needs no key for it, and honest senders do: keep-alives, probes, and tunnels
// that are not looked into.
//
// Copies lean on one cell as if they were one packet with all their delays
// added up: [Estimate] is exact on their mean as long as none of them is lost,
// and its deviation is too large by about the number of copies. Cells within
// the limit spoil it by no more than that many.
type Repeats struct {
	Cells   int    // cells that hold more than chance gives them
	Packets uint64 // by how many more
}

// Repeats returns what the counts tell of identical packets. It takes some
// passes over the cells.
func (a *Aggregator) Repeats() (r Repeats) {
	a.overfull(func(i int, mean float64) {
		r.Cells++
		r.Packets += uint64(float64(a.cells[i].count()) - mean)
	})
	return r
}

// overfull calls f for every overfull cell, and the mean count of its bank's
// others.
func (a *Aggregator) overfull(f func(i int, mean float64)) {
	from := 0
	for _, b := range a.config.Banks[:a.config.banks()] {
		cells := a.cells[from : from+b.Rows]
		limit := estimate.CountLimit(len(cells), func(i int) uint64 { return uint64(cells[i].count()) })
		sum, n := 0.0, 0
		for i := range cells {
			if c := uint64(cells[i].count()); c <= limit {
				sum += float64(c)
				n++
			}
		}
		for i := range cells {
			if uint64(cells[i].count()) > limit {
				f(from+i, sum/float64(max(n, 1)))
			}
		}
		from += b.Rows
	}
}

// EstimateRest is [Estimate] without the cells that hold many copies of one
// packet, at either point: of all packets but those, and the few that share
// their cells. The Result's counts are those of all packets. The Repeats are
// the upstream point's. It allocates two aggregators.
func EstimateRest(up, down *Aggregator) (Result, Repeats, error) {
	if err := sameConfig(up, down); err != nil {
		return Result{}, Repeats{}, err
	}
	rest := [2]*Aggregator{mustNew(up.config), mustNew(up.config)}
	copy(rest[0].cells, up.cells)
	copy(rest[1].cells, down.cells)
	for _, a := range [2]*Aggregator{up, down} {
		a.overfull(func(i int, _ float64) {
			rest[0].cells[i], rest[1].cells[i] = cell{}, cell{}
		})
	}
	r, err := Estimate(rest[0], rest[1])
	all := count(up, down)
	r.Sent, r.Received, r.Lost, r.Extra = all.Sent, all.Received, all.Lost, all.Extra
	return r, up.Repeats(), err
}
