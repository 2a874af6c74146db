package lda

// Singles calls f for every cell that holds one packet: with the cell's number,
// the packet's digest, as wide as the Config says, and its stamp modulo
// 2^SumBits. Cells are numbered bank by bank.
func (a *Aggregator) Singles(f func(cell int, digest uint32, stamp uint64)) {
	mask := a.config.digestMask() >> 32
	for i, c := range a.sampled() {
		if c.count() == 1 {
			f(i, uint32(c.tally>>32&mask), c.sum<<(64-a.config.SumBits)>>(64-a.config.SumBits))
		}
	}
}

// Copies returns how many packets are in cells that hold more than chance puts
// there, beyond what it does: copies of one packet.
func (a *Aggregator) Copies() (packets uint64) {
	l := a.limits()
	from := 0
	for bank, b := range a.config.Banks[:a.config.banks()] {
		for i := from; l.beyond[bank] && i < from+b.Rows; i++ {
			if n := uint64(a.cells[i].count()); n > l.most[bank] {
				packets += n - uint64(l.mean[bank])
			}
		}
		from += b.Rows
	}
	return packets
}
