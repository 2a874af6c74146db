package kernel

// An instruction is the kernel's struct bpf_insn on a little-endian machine.
type instruction struct {
	op        uint8
	registers uint8 // destination in the low half, source in the high half
	offset    int16
	immediate int32
}

// The registers: r0 holds the results of calls. Calls take r1 to r5 as arguments and preserve only r6 to r9. fp
// is the end of the stack.
const (
	r0 = iota
	r1
	r2
	r3
	r4
	r5
	r6
	r7
	r8
	r9
	fp
)

// Operations of 64 bits between registers. Without fromRegister, the source is an immediate, sign-extended.
const (
	fromRegister = 0x08

	opAdd   = 0x0f
	opSub   = 0x1f
	opMul   = 0x2f
	opOr    = 0x4f
	opAnd   = 0x5f
	opLeft  = 0x6f
	opRight = 0x7f
	opXor   = 0xaf
	opMove  = 0xbf

	opMove32  = 0xbc // clears the upper half
	opSwap    = 0xdc // to or from big-endian, with as many bits as the immediate says
	opLoad64  = 0x18 // an immediate of two instructions
	opLoad    = 0x61 // less the size
	opStore   = 0x63
	opStoreTo = 0x62 // of an immediate
	opAtomic  = 0xdb // addition of 64 bits
	opCall    = 0x85
	opExit    = 0x95
)

// Sizes of loads and stores.
const (
	word   = 0x00
	half   = 0x08
	byte1  = 0x10
	double = 0x18
)

// Conditions of jumps, unsigned unless they say otherwise, against registers; without fromRegister, against an
// immediate.
const (
	always         = 0x05 // takes no operands
	ifEqual        = 0x1d
	ifGreater      = 0x2d
	ifNotLess      = 0x3d
	ifNotEqual     = 0x5d
	ifSignedAbove  = 0x6d
	ifLess         = 0xad
	ifNotAbove     = 0xbd
	ifSignedBelow  = 0xcd
	ifSignedAtMost = 0xdd
)

// The meaning of the source register in a 64-bit load.
const (
	mapDescriptor = 1
	mapValue      = 2
)

// A label is a place in the program, known or not yet.
type label int

// An assembler collects instructions and resolves jumps at the end.
type assembler struct {
	code   []instruction
	places []int         // of labels
	jumps  map[int]label // by the place of the jump
}

func (a *assembler) emit(op uint8, dst, src int, offset int16, immediate int32) {
	a.code = append(a.code, instruction{op, uint8(dst | src<<4), offset, immediate})
}

// label makes a label to be placed later.
func (a *assembler) label() label {
	a.places = append(a.places, -1)
	return label(len(a.places) - 1)
}

// place places a label here.
func (a *assembler) place(l label) { a.places[l] = len(a.code) }

// here makes a label for this place.
func (a *assembler) here() label {
	l := a.label()
	a.place(l)
	return l
}

// assemble returns the instructions. A jump to a label that was never placed is a mistake in the generator.
func (a *assembler) assemble() []instruction {
	for at, l := range a.jumps {
		if a.places[l] < 0 {
			panic("kernel: jump to a label without a place")
		}
		a.code[at].offset = int16(a.places[l] - at - 1)
	}
	return a.code
}

// do applies an operation to two registers.
func (a *assembler) do(op uint8, dst, src int) { a.emit(op, dst, src, 0, 0) }

// with applies an operation to a register and an immediate.
func (a *assembler) with(op uint8, dst int, immediate int32) {
	a.emit(op&^fromRegister, dst, 0, 0, immediate)
}

func (a *assembler) move(dst, src int) { a.do(opMove, dst, src) }

// set sets a register to a constant, in one instruction if possible.
func (a *assembler) set(dst int, v uint64) {
	if v == uint64(int64(int32(v))) {
		a.with(opMove, dst, int32(v))
		return
	}
	a.emit(opLoad64, dst, 0, 0, int32(uint32(v)))
	a.emit(0, 0, 0, 0, int32(v>>32))
}

// setMap sets a register to the descriptor of a map, for a call, or to the address of the first byte of its
// only value, as kind says.
func (a *assembler) setMap(dst, kind, descriptor int) {
	a.emit(opLoad64, dst, kind, 0, int32(descriptor))
	a.emit(0, 0, 0, 0, 0)
}

// swap converts the low bits of a register from big-endian, or to it, and clears the others.
func (a *assembler) swap(dst int, bits int32) { a.emit(opSwap, dst, 0, 0, bits) }

func (a *assembler) load(size uint8, dst, src int, offset int16) {
	a.emit(opLoad|size, dst, src, offset, 0)
}

func (a *assembler) store(size uint8, dst int, offset int16, src int) {
	a.emit(opStore|size, dst, src, offset, 0)
}

func (a *assembler) storeValue(size uint8, dst int, offset int16, v int32) {
	a.emit(opStoreTo|size, dst, 0, offset, v)
}

// jump goes to a label if the condition holds between two registers.
func (a *assembler) jump(condition uint8, dst, src int, l label) {
	a.jumpTo(l)
	a.emit(condition, dst, src, 0, 0)
}

// jumpWith goes to a label if the condition holds between a register and an immediate.
func (a *assembler) jumpWith(condition uint8, dst int, immediate int32, l label) {
	a.jumpTo(l)
	a.emit(condition&^fromRegister, dst, 0, 0, immediate)
}

func (a *assembler) goTo(l label) {
	a.jumpTo(l)
	a.emit(always, 0, 0, 0, 0)
}

func (a *assembler) jumpTo(l label) {
	if a.jumps == nil {
		a.jumps = make(map[int]label)
	}
	a.jumps[len(a.code)] = l
}

// call calls one of the kernel's helpers.
func (a *assembler) call(helper int32) { a.emit(opCall, 0, 0, 0, helper) }

func (a *assembler) exit() { a.emit(opExit, 0, 0, 0, 0) }
