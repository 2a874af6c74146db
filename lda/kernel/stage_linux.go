package kernel

// Offsets in a packet that is set aside.
const (
	stageDigest = 0
	stageTime   = 8
)

// stage sets aside the packet with the digest in r8. Those that were set aside
// are added to their cells together: the program then waits once for the cells
// to come from memory, and not for each. Rotate adds what is left.
func (p *program) stage() {
	p.load(double, r1, fp, stackLane)
	p.load(double, r2, r1, 8*laneStaged)
	p.with(opAnd, r2, staged-1)
	p.staged(r3, r2, r1)
	p.store(double, r3, stageDigest, r8)
	p.load(double, r4, fp, stackTime)
	p.store(double, r3, stageTime, r4)
	p.with(opAdd, r2, 1)
	p.store(double, r1, 8*laneStaged, r2)
	p.jumpWith(ifEqual, r2, staged, p.full)
}

// addStaged adds the packets that were set aside to their cells.
func (p *program) addStaged() {
	p.place(p.full)
	p.storeValue(double, r1, 8*laneStaged, 0)
	p.storeValue(double, fp, stackStaged, 0)
	next := p.here()
	p.load(double, r3, fp, stackStaged)
	p.jumpWith(ifNotLess, r3, staged, p.out)
	p.move(r2, r3)
	p.with(opAdd, r2, 1)
	p.store(double, fp, stackStaged, r2)
	p.load(double, r1, fp, stackLane)
	p.staged(r4, r3, r1)
	p.load(double, r8, r4, stageDigest)
	p.load(double, r1, r4, stageTime)
	p.store(double, fp, stackStagedTime, r1)
	p.updateLDA()
	p.goTo(next)
}

// staged sets a register to the address of the n-th packet that is set aside in a
// lane.
func (p *program) staged(dst, n, lane int) {
	p.move(dst, n)
	p.with(opMul, dst, stageSize)
	p.do(opAdd, dst, lane)
	p.with(opAdd, dst, countersSize)
}
