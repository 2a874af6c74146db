package trace

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/hoplag/hoplag/hashing"
)

// A pcapng file is a sequence of blocks, in sections. Each section begins with a section header, and has its
// own byte order and interfaces. A block is
//
//	type (4) · total length (4) · body · total length again (4)
//
// The bodies of the blocks that matter, without the options that may follow:
//
//	section header    byte order (4) · version (2, 2) · section length (8)
//	interface         link type (2) · reserved (2) · snap length (4)
//	enhanced packet   interface (4) · time (4, 4) · captured (4) · original length (4) · frame, padded to 4
//	packet, obsolete  interface (2) · drops (2) · as enhanced
//	simple packet     original length (4) · frame, padded to 4
//
// An option is a code (2), a length (2) and a value padded to 4. All total lengths are multiples of 4, so there
// is room for the padding if there is room for what is padded.
const (
	ngSectionHeader  = 0x0a0d0d0a // the same in either byte order
	ngInterfaceBlock = 1
	ngObsoletePacket = 2
	ngSimplePacket   = 3
	ngEnhancedPacket = 6

	ngByteOrder    = 0x1a2b3c4d
	ngHeaderSize   = 8  // of any block
	ngTrailerSize  = 4  // of any block
	ngSectionSize  = 28 // of a section header without options
	ngFrameOffset  = 28 // of the frame in an enhanced or obsolete packet block
	ngSimpleOffset = 12 // of the frame in a simple packet block
	ngOptionOffset = 16 // of the options in an interface block

	ngOptionEnd        = 0
	ngOptionResolution = 9  // if_tsresol
	ngOptionEpoch      = 14 // if_tsoffset

	// maxInterfaces bounds what a hostile file can make the Reader remember. It is how many interfaces the
	// obsolete packet block can tell apart.
	maxInterfaces = 1 << 16
)

// An ngInterface says how to read the packets of one interface.
type ngInterface struct {
	link    hashing.LinkType
	snaplen uint32
	// A time of t units is t·mul ÷ 2^shift ÷ div nanoseconds.
	mul, div uint64
	shift    uint
	epoch    int64 // nanoseconds; times count from here
}

// nextNG skips blocks up to and including the next packet.
func (r *Reader) nextNG() (Record, error) {
	for {
		b, err := r.peek(ngHeaderSize)
		if err != nil {
			return Record{}, err
		}
		kind, length := r.order.Uint32(b), r.order.Uint32(b[4:])
		if kind == ngSectionHeader {
			// The header itself says the byte order that its length is in.
			if err := r.section(); err != nil {
				return Record{}, fmt.Errorf("section header: %w", err)
			}
			continue
		}
		if err := checkLength(length, ngHeaderSize+ngTrailerSize); err != nil {
			return Record{}, fmt.Errorf("block of type %#x: %w", kind, err)
		}
		switch kind {
		case ngInterfaceBlock, ngEnhancedPacket, ngObsoletePacket, ngSimplePacket:
			// These are read whole, below.
		default:
			if err := r.passOver(length); err != nil {
				return Record{}, err
			}
			continue
		}
		if b, err = r.block(length); err != nil {
			return Record{}, err
		}
		switch kind {
		case ngInterfaceBlock:
			if err := r.iface(b); err != nil {
				return Record{}, fmt.Errorf("interface %d: %w", len(r.ifaces), err)
			}
			r.buf.Discard(len(b)) // it is in the buffer
			r.offset += int64(len(b))
		case ngSimplePacket:
			return r.simplePacket(b)
		default:
			return r.packet(b, kind)
		}
	}
}

// block returns a whole block, including header and trailer. Its length has been found sane but may be large.
func (r *Reader) block(length uint32) ([]byte, error) {
	if length > bufferSize {
		return nil, fmt.Errorf("%w: block of %d bytes, at most %d", ErrFormat, length, bufferSize)
	}
	b, err := r.peek(int(length))
	if err != nil {
		return nil, err
	}
	return b, r.checkTrailer(b[length-ngTrailerSize:], length)
}

// passOver discards a block of any length.
func (r *Reader) passOver(length uint32) error {
	for left := length - ngTrailerSize; left > 0; {
		n := min(left, bufferSize) // an int may have 32 bits
		if _, err := r.buf.Discard(int(n)); err != nil {
			return fmt.Errorf("within a block of %d bytes: %w", length, early(err))
		}
		left -= n
	}
	trailer, err := r.peek(ngTrailerSize)
	if err != nil {
		return fmt.Errorf("at the end of a block of %d bytes: %w", length, early(err))
	}
	if err := r.checkTrailer(trailer, length); err != nil {
		return err
	}
	r.buf.Discard(ngTrailerSize) // it is in the buffer
	r.offset += int64(length)
	return nil
}

func checkLength(length, least uint32) error {
	if length < least || length%4 != 0 {
		return fmt.Errorf("%w: block length %d, want a multiple of 4 from %d on", ErrFormat, length, least)
	}
	return nil
}

func (r *Reader) checkTrailer(b []byte, length uint32) error {
	if again := r.order.Uint32(b); again != length {
		return fmt.Errorf("%w: block length %d at its head, %d at its end", ErrFormat, length, again)
	}
	return nil
}

func tooShort(b []byte) error {
	return fmt.Errorf("%w: block of %d bytes, too short for its type", ErrFormat, len(b))
}

// section reads a section header and forgets all interfaces.
func (r *Reader) section() error {
	b, err := r.peek(ngSectionSize - ngTrailerSize)
	if err != nil {
		return err
	}
	r.order = binary.LittleEndian
	if r.order.Uint32(b[8:]) != ngByteOrder {
		r.order = binary.BigEndian
	}
	if r.order.Uint32(b[8:]) != ngByteOrder {
		return fmt.Errorf("%w: byte-order magic %x", ErrFormat, b[8:12])
	}
	length, major := r.order.Uint32(b[4:]), r.order.Uint16(b[12:])
	if err := checkLength(length, ngSectionSize); err != nil {
		return err
	}
	if major != 1 {
		return fmt.Errorf("%w: version %d.%d, want 1", ErrFormat, major, r.order.Uint16(b[14:]))
	}
	r.ifaces = r.ifaces[:0]
	return r.passOver(length)
}

// iface reads an interface block and remembers the interface.
func (r *Reader) iface(b []byte) error {
	if len(b) < ngOptionOffset+ngTrailerSize {
		return tooShort(b)
	}
	if len(r.ifaces) == maxInterfaces {
		return fmt.Errorf("%w: more than %d interfaces in a section", ErrFormat, maxInterfaces)
	}
	f := ngInterface{
		link:    hashing.LinkType(r.order.Uint16(b[8:])),
		snaplen: r.order.Uint32(b[12:]),
	}
	f.resolution(6)
	for options := b[ngOptionOffset : len(b)-ngTrailerSize]; len(options) > 0; {
		// There are at least 4 bytes, because all lengths are multiples of 4.
		code, size := r.order.Uint16(options), int(r.order.Uint16(options[2:]))
		if code == ngOptionEnd {
			break
		}
		options = options[4:]
		if size > len(options) {
			return fmt.Errorf("%w: option %d of %d bytes, the block has %d left", ErrFormat, code, size, len(options))
		}
		value := options[:size]
		options = options[(size+3)&^3:]
		switch code {
		case ngOptionResolution:
			if size != 1 {
				return fmt.Errorf("%w: timestamp resolution of %d bytes, want 1", ErrFormat, size)
			}
			if err := f.resolution(value[0]); err != nil {
				return err
			}
		case ngOptionEpoch:
			if size != 8 {
				return fmt.Errorf("%w: timestamp offset of %d bytes, want 8", ErrFormat, size)
			}
			const most = math.MaxInt64 / int64(1e9)
			seconds := int64(r.order.Uint64(value))
			if seconds > most || seconds < -most {
				return fmt.Errorf("%w: timestamp offset of %d s, beyond ±%d", ErrFormat, seconds, most)
			}
			f.epoch = seconds * 1e9
		}
	}
	r.ifaces = append(r.ifaces, f)
	return nil
}

// resolution sets the unit of time: 10^-v seconds, or 2^-(v-128) if the highest bit of v is set.
func (f *ngInterface) resolution(v uint8) error {
	f.mul, f.div, f.shift = 1, 1, 0
	if v >= 128 {
		f.mul, f.shift = 1e9, uint(v-128)
		return nil
	}
	if v > 28 {
		// 10^19 is the largest power of ten in 64 bits. A whole 64-bit timestamp in that unit lasts less than a
		// nanosecond.
		return fmt.Errorf("%w: timestamp resolution of 10^-%d s, finest is 10^-28", ErrFormat, v)
	}
	for ; v < 9; v++ {
		f.mul *= 10
	}
	for ; v > 9; v-- {
		f.div *= 10
	}
	return nil
}

// time converts a time in the interface's units.
func (f *ngInterface) time(units uint64) int64 {
	hi, lo := bits.Mul64(units, f.mul)
	if f.shift >= 64 {
		hi, lo = 0, hi>>(f.shift-64)
	} else {
		hi, lo = hi>>f.shift, lo>>f.shift|hi<<(64-f.shift)
	}
	lo /= f.div
	if hi != 0 || lo > math.MaxInt64 {
		return NoTime
	}
	t := int64(lo)
	if f.epoch > math.MaxInt64-t {
		return NoTime
	}
	return t + f.epoch
}

// packet reads an enhanced or obsolete packet block.
func (r *Reader) packet(b []byte, kind uint32) (Record, error) {
	if len(b) < ngFrameOffset+ngTrailerSize {
		return Record{}, tooShort(b)
	}
	index := r.order.Uint32(b[8:])
	if kind == ngObsoletePacket {
		index = uint32(r.order.Uint16(b[8:]))
	}
	f, err := r.find(index)
	if err != nil {
		return Record{}, err
	}
	units := uint64(r.order.Uint32(b[12:]))<<32 | uint64(r.order.Uint32(b[16:]))
	frame, err := frameOf(b, ngFrameOffset, r.order.Uint32(b[20:]))
	if err != nil {
		return Record{}, err
	}
	return r.record(len(b), f.time(units), f.link, r.order.Uint32(b[24:]), frame)
}

// simplePacket reads a simple packet block, which belongs to the first interface and has no time.
func (r *Reader) simplePacket(b []byte) (Record, error) {
	if len(b) < ngSimpleOffset+ngTrailerSize {
		return Record{}, tooShort(b)
	}
	f, err := r.find(0)
	if err != nil {
		return Record{}, err
	}
	length := r.order.Uint32(b[8:])
	captured := length
	if f.snaplen != 0 { // 0 means no limit
		captured = min(length, f.snaplen)
	}
	frame, err := frameOf(b, ngSimpleOffset, captured)
	if err != nil {
		return Record{}, err
	}
	return r.record(len(b), NoTime, f.link, length, frame)
}

func (r *Reader) find(index uint32) (*ngInterface, error) {
	if uint64(index) >= uint64(len(r.ifaces)) {
		return nil, fmt.Errorf("%w: packet of interface %d, the section has described %d", ErrFormat, index, len(r.ifaces))
	}
	return &r.ifaces[index], nil
}

// frameOf checks the captured length and returns the frame of a packet block.
func frameOf(b []byte, offset int, captured uint32) ([]byte, error) {
	if captured > maxFrame {
		return nil, fmt.Errorf("%w: captured length %d, at most %d", ErrFormat, captured, maxFrame)
	}
	end := offset + int(captured)
	if room := len(b) - offset - ngTrailerSize; int(captured) > room {
		return nil, fmt.Errorf("%w: captured length %d in a block with room for %d", ErrFormat, captured, room)
	}
	return b[offset:end:end], nil
}
