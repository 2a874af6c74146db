package kernel

import (
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lds"
)

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
	p.load(double, r4, fp, stackStagedTime)
	p.addToCell(cellsAt)
}

// addToCell adds a time in r4 and a tally in r3 to the cell with the number in
// r2, of the array that begins at an offset in the lane. It uses r1 and r2. No
// other program runs on this processor meanwhile.
func (p *program) addToCell(base int) {
	p.with(opLeft, r2, 4)
	p.load(double, r1, fp, stackLane)
	p.do(opAdd, r1, r2)
	p.with(opAdd, r1, int32(base))
	for offset, r := range []int{r4, r3} {
		p.load(double, r2, r1, int16(8*offset))
		p.do(opAdd, r2, r)
		p.store(double, r1, int16(8*offset), r2)
	}
}

// The multipliers with which lds makes hashes of a flow for pairs of rows
// after the first.
var flowMultipliers = []uint64{1, 0xd1342543de82ef95, 0xaf251af3b0f025b5, 0xb564ef22ec7aece5}

// updateLDS does what lds.Sketch.Update does with the digest in r8.
func (p *program) updateLDS() {
	c := &p.config.LDS
	if c.Rows == 0 {
		return
	}
	base := cellsAt + cellSize*p.config.ldaCells()
	if c.Rates != allOnes(c.Rows) { // compared with the rows' thresholds
		p.rowHash(lds.MaxRows)
		p.with(opRight, r1, 32)
		p.store(double, fp, stackScratch+8, r1)
	}
	for r := range c.Rows {
		if r%4 == 0 && c.Spread > 1 { // offsets of four rows
			p.rowHash(uint64(r / 4))
			p.store(double, fp, stackScratch, r1)
		}
		skip := p.label()
		if c.Rates[r] < 1 {
			p.load(double, r1, fp, stackScratch+8)
			p.set(r2, hashing.Threshold(c.Rates[r]))
			p.jump(ifNotLess, r1, r2, skip)
		}
		p.home(r)
		if c.Spread > 1 {
			p.along(r)
		}
		// The verifier does not see that products with the number of columns
		// stay below it.
		p.jumpWith(ifNotLess, r2, int32(c.Columns), skip)
		p.move(r3, r8)
		p.with(opLeft, r3, 32)
		p.with(opOr, r3, 1)
		p.load(double, r4, fp, stackStagedTime)
		p.addToCell(base + cellSize*r*c.Columns)
		p.place(skip)
	}
}

// allOnes returns the rates of rows that see every packet.
func allOnes(rows int) (rates [lds.MaxRows]float64) {
	for r := range rows {
		rates[r] = 1
	}
	return rates
}

// along moves the column in r2 along the flow's virtual LDA, by a row's 16
// bits of the offsets.
func (p *program) along(row int) {
	c := &p.config.LDS
	within := p.label()
	p.load(double, r1, fp, stackScratch)
	p.with(opRight, r1, int32(16*(row%4)))
	p.with(opAnd, r1, 0xffff)
	p.with(opMul, r1, int32(c.Spread))
	p.with(opRight, r1, 16)
	p.do(opAdd, r2, r1)
	p.jumpWith(ifLess, r2, int32(c.Columns), within)
	p.with(opSub, r2, int32(c.Columns))
	p.place(within)
}

// rowHash sets r1 to hashing.Mix of the digest.
func (p *program) rowHash(row uint64) {
	var salt uint64 = saltMul
	p.move(r1, r8)
	p.set(r2, mixKey)
	p.do(opXor, r1, r2)
	p.set(r2, (row*salt^saltXor)|1)
	p.fold()
}

// home sets r2 to the first column of the flow in r9 in a row.
func (p *program) home(row int) {
	columns := int32(p.config.LDS.Columns)
	p.move(r1, r9)
	if row > 1 {
		p.set(r2, flowMultipliers[row/2])
		p.do(opMul, r1, r2)
	}
	if row%2 == 1 { // from the fraction of the even row's product
		p.with(opMul, r1, columns)
	}
	// The upper half of a product with a number of 32 bits.
	p.do(opMove32, r2, r1)
	p.with(opRight, r1, 32)
	p.with(opMul, r1, columns)
	p.with(opMul, r2, columns)
	p.with(opRight, r2, 32)
	p.do(opAdd, r2, r1)
	p.with(opRight, r2, 32)
}
