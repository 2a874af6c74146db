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
