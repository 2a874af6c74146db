package colate

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"
	"slices"

	"github.com/hoplag/hoplag/estimate"
)

// What an epoch holds is encoded in blocks of rows, each of which can be read alone: SPEC.md describes it. A
// row is a counter, of blockCounters in a block, or a sample. The sum of the times of n packets is close to n
// times the middle of the epoch, and what is left has some log2(Period) + log2(n)/2 bits.
const (
	blockCounters = 256
	blockHead     = 6
	blockOverhead = blockHead + 4
	maxOnes       = 24
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A row is a number that is small, packets or the distance of a flow from the one before, a
// digest or a tag, and a time near 0.
type row struct{ number, digest, time uint64 }

// A blockCodec knows the widths of rows. Of counters, those without packets have a number
// alone, and the time grows with it.
type blockCodec struct {
	counters                         bool
	numberBits, digestBits, timeBits uint
}

// timeWidth returns the number of bits in a time.
func (b *blockCodec) timeWidth(base uint, number uint64) uint {
	if b.counters {
		base += (uint(bits.Len64(number)) + 1) / 2
	}
	return min(b.timeBits, base)
}

// append appends a block.
func (b *blockCodec) append(dst []byte, rows []row) []byte {
	var total uint64
	base, from := uint(0), len(dst)
	for _, r := range rows {
		total += r.number
		if need, has := uint(bits.Len64(r.time)), b.timeWidth(0, r.number); need > has+base {
			base = need - has
		}
	}
	k := min(uint(max(bits.Len64(total/uint64(max(len(rows), 1))), 1)-1), b.numberBits)
	w := bitWriter{dst: append(binary.BigEndian.AppendUint32(dst, uint32(len(rows))), byte(k), byte(base))}
	for _, r := range rows {
		w.putNumber(r.number, k, b.numberBits)
		if !b.counters || r.number > 0 {
			w.put(r.digest, b.digestBits)
			w.put(r.time, b.timeWidth(base, r.number))
		}
	}
	return w.seal(from)
}

// read reads a block of so many rows, and checks its checksum. The error wraps [estimate.ErrEncoding].
func (b *blockCodec) read(to *blockReader, data []byte, least, most int) error {
	r, ok := openBits(data, to.bits)
	if !ok {
		return fmt.Errorf("%w: checksum", estimate.ErrEncoding)
	}
	n, k, base := uint(binary.BigEndian.Uint32(data)), uint(data[4]), uint(data[5])
	to.bits = r.data
	if n < uint(least) || n > uint(most) || n > r.limit { // a row has a bit
		return fmt.Errorf("%w: %d rows in %d bytes, want %d to %d", estimate.ErrEncoding, n, len(data), least, most)
	}
	ok, to.rows = k <= b.numberBits && base <= 64, slices.Grow(to.rows[:0], int(n))
	for ; ok && n > 0; n-- {
		x := row{number: r.number(k, b.numberBits)}
		if !b.counters || x.number > 0 {
			x.digest = r.take(b.digestBits)
			x.time = r.take(b.timeWidth(base, x.number))
		}
		ok = x.number <= 1<<b.numberBits && r.at <= r.limit
		to.rows = append(to.rows, x)
	}
	if !ok || !r.ended() {
		return fmt.Errorf("%w: rows", estimate.ErrEncoding)
	}
	return nil
}

// zigzag makes numbers near 0 small, and zagzig takes that back.
func zigzag(x int64) uint64 { return uint64(x<<1) ^ uint64(x>>63) }
func zagzig(x uint64) int64 { return int64(x>>1) ^ -int64(x&1) }

// A bitWriter appends bits, most significant bit first.
type bitWriter struct {
	dst    []byte
	held   uint64
	length uint // number of bits held, below 8 between puts
}

// put appends the low width bits of v, up to 64.
func (w *bitWriter) put(v uint64, width uint) {
	if width > 32 {
		w.put(v>>32, width-32)
		width = 32
	}
	w.held = w.held<<width | v&(1<<width-1)
	w.length += width
	for w.length >= 8 {
		w.length -= 8
		w.dst = append(w.dst, byte(w.held>>w.length))
	}
}

func (w *bitWriter) putNumber(number uint64, k, numberBits uint) {
	if ones := uint(number >> k); ones < maxOnes {
		w.put(1<<(ones+1)-2, ones+1)
		w.put(number, k)
		return
	}
	w.put(1<<maxOnes-1, maxOnes)
	w.put(number, numberBits+1)
}

// seal pads the last byte with zeros, and adds the checksum of the block that began at an offset.
func (w *bitWriter) seal(from int) []byte {
	if w.length > 0 {
		w.put(0, 8-w.length)
	}
	return binary.BigEndian.AppendUint32(w.dst, crc32.Checksum(w.dst[from:], castagnoli))
}

// A bitReader reads bits. data is 16 bytes longer than limit; at may exceed
// limit after a number or a time of invalid data.
type bitReader struct {
	data      []byte
	at, limit uint
}

// openBits checks the checksum of a block, and opens what is behind its head. It uses scratch.
func openBits(data, scratch []byte) (r bitReader, ok bool) {
	end := len(data) - 4
	if end < blockHead || crc32.Checksum(data[:end], castagnoli) != binary.BigEndian.Uint32(data[end:]) {
		return r, false
	}
	return bitReader{data: append(append(scratch[:0], data[blockHead:end]...), make([]byte, 16)...), limit: uint(end-blockHead) * 8}, true
}

// ended reports whether nothing is left but padding.
func (r *bitReader) ended() bool {
	spare := r.limit - r.at
	return r.at <= r.limit && spare < 8 && r.take(spare) == 0
}

// peek returns at least the next 57 bits, from the highest bit down.
func (r *bitReader) peek() uint64 {
	if r.at > r.limit {
		return 0
	}
	return binary.BigEndian.Uint64(r.data[r.at/8:]) << (r.at % 8)
}

// take reads width bits, up to 64.
func (r *bitReader) take(width uint) uint64 {
	if width > 56 {
		high := r.take(width - 32)
		return high<<32 | r.take(32)
	}
	v := r.peek() >> (64 - width)
	r.at += width
	return v
}

func (r *bitReader) number(k, numberBits uint) uint64 {
	ones := uint(bits.LeadingZeros64(^r.peek()))
	if ones >= maxOnes {
		r.at += maxOnes
		return r.take(numberBits + 1)
	}
	r.at += ones + 1
	return uint64(ones)<<k | r.take(k)
}
