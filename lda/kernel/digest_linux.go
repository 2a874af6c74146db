package kernel

import "math/bits"

// The constants of hashing.Digest; a test checks that both compute the same.
const (
	key0 = 0x6a09e667f3bcc909
	key1 = 0xbb67ae8584caa73b
	key2 = 0x3c6ef372fe94f82b
	key4 = 0x510e527fade682d1
)

// split derives two keys from a seed.
func split(seed, constant uint64) (x, y uint64) {
	if seed ^= key0; uint32(seed>>16+1) <= 1 {
		seed ^= key4
	}
	hi, lo := bits.Mul64(seed, constant)
	return hi ^ lo, hi
}

// digest puts in r8 the result of hashing.Digest for the 72 bytes on the stack.
func (p *program) digest() {
	x, y := split(p.config.Seed, key1+2*frameSize)
	p.absorb(stackDestination, x, bits.RotateLeft64(y, 32))
	p.move(r9, r1)
	p.absorb(stackSource, x, y)
	for at := int16(stackTransport); at < stackProto; at += 16 {
		p.load(double, r2, fp, at+8)
		p.do(opXor, r2, r1)
		p.set(r1, x)
		p.load(double, r3, fp, at)
		p.do(opXor, r1, r3)
		p.fold()
	}
	p.load(double, r2, fp, stackID)
	p.do(opXor, r1, r2)
	p.load(double, r2, fp, stackProto)
	p.do(opXor, r2, r9)
	p.fold()
	p.set(r2, key2)
	p.fold()
	p.move(r8, r1)
}

// absorb sets r1 to the folded product of two words, each combined with a key.
func (p *program) absorb(at int16, x, y uint64) {
	p.set(r1, x)
	p.load(double, r3, fp, at)
	p.do(opXor, r1, r3)
	p.set(r2, y)
	p.load(double, r3, fp, at+8)
	p.do(opXor, r2, r3)
	p.fold()
}

// fold sets r1 to the product of r1 and r2, with its two halves folded into one. There is no multiplication of
// 128 bits, so it consists of four of 64. It uses r0 and r2 to r5.
func (p *program) fold() {
	p.move(r3, r1)
	p.do(opMul, r3, r2)
	p.upperProduct()
	p.do(opXor, r1, r3)
}

// upperProduct sets r1 to the upper half of the product of r1 and r2. It uses r0, r2, r4 and r5.
func (p *program) upperProduct() {
	p.do(opMove32, r4, r1)
	p.do(opMove32, r5, r2)
	p.with(opRight, r1, 32)
	p.with(opRight, r2, 32)
	p.move(r0, r4)
	p.do(opMul, r0, r5)
	p.with(opRight, r0, 32)
	p.do(opMul, r5, r1)
	p.do(opAdd, r5, r0)
	p.do(opMul, r4, r2)
	p.do(opMove32, r0, r5)
	p.do(opAdd, r4, r0)
	p.do(opMul, r1, r2)
	p.with(opRight, r5, 32)
	p.do(opAdd, r1, r5)
	p.with(opRight, r4, 32)
	p.do(opAdd, r1, r4)
}
