package kernel

// updateLDA does what lda.Aggregator.Update does with the digest in r8.
func (p *program) updateLDA() {
	c := &p.config.LDA
	all := 0
	for _, b := range c.Banks {
		all += b.Rows
	}
	banked := p.label()
	p.move(r2, r8)
	p.with(opAnd, r2, int32(p.config.ldaCells()-all-1))
	p.with(opAdd, r2, int32(all))
	base := 0
	for _, b := range c.Banks {
		if b.Rows == 0 {
			break
		}
		if b.Shift > 0 {
			p.move(r1, r8)
			p.with(opRight, r1, int32(64-b.Shift))
			p.jumpWith(ifNotEqual, r1, 0, banked)
		}
		p.move(r2, r8)
		p.with(opAnd, r2, int32(b.Rows-1))
		p.with(opAdd, r2, int32(base))
		base += b.Rows
	}
	p.place(banked)
	p.move(r3, r8)
	p.with(opRight, r3, 32)
	p.with(opLeft, r3, 32)
	p.with(opOr, r3, 1)
	p.load(double, r4, fp, stackTime)
	p.with(opLeft, r2, 4)
	p.load(double, r1, fp, stackLane)
	p.do(opAdd, r1, r2)
	p.with(opAdd, r1, countersSize)
	for offset, r := range []int{r4, r3} { // no other program runs here meanwhile
		p.load(double, r2, r1, int16(8*offset))
		p.do(opAdd, r2, r)
		p.store(double, r1, int16(8*offset), r2)
	}
}
