package lda

import "github.com/hoplag/hoplag/estimate"

// repeated is a cell that was overfull since the last Reset, and groups of its
// packets.
type repeated struct {
	overfull bool
	packets  uint64
	sum      int64
}

// repeats reports whether a cell holds copies, now or since the last Reset.
func (a *Accumulator) repeats(i, bank int, sent, received uint32, limits *[2]limits) bool {
	of := &a.repeated[i].overfull
	if a.copied.see(bank, &limits[0], &limits[1], sent, received) {
		if *of {
			a.copied.Cells-- // it was counted
		}
		*of = true
	}
	return *of
}

// tellCopies takes a group of a cell that holds copies. One copy on its way looks
// like another, so that groups are off by the time between them, until none is:
// then they add up. After a gap that is not known.
func (a *Accumulator) tellCopies(i int, g *estimate.Group) {
	if a.blind {
		return
	}
	of := &a.repeated[i]
	of.packets += uint64(g.Packets)
	of.sum += g.Sum
	if a.levels.Outstanding(i) == 0 {
		a.copied.tell(true, of.packets, of.sum, a.config.SumBits)
		of.packets, of.sum = 0, 0
	}
}
