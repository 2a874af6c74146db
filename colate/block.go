package colate

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/wire"
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

// A row is a small number (of packets, or the distance of a flow from the one before), a digest or a tag, and a
// time near 0.
type row struct{ number, digest, time uint64 }

// A blockCodec knows the widths of rows. A counter without packets has the number alone, and the time grows
// with the number.
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
	w := wire.NewBitWriter(append(binary.BigEndian.AppendUint32(dst, uint32(len(rows))), byte(k), byte(base)))
	for _, r := range rows {
		if ones := r.number >> k; ones < maxOnes {
			w.Put(1<<(ones+1)-2, int(ones)+1)
			w.Put(r.number&(1<<k-1), int(k))
		} else {
			w.Put(1<<maxOnes-1, maxOnes)
			w.Put(r.number, int(b.numberBits+1))
		}
		if !b.counters || r.number > 0 {
			w.Put(r.digest, int(b.digestBits))
			w.Put(r.time, int(b.timeWidth(base, r.number)))
		}
	}
	dst = w.Bytes()
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[from:], castagnoli))
}

// read reads a block of the given number of rows, and checks its checksum. The error wraps
// [estimate.ErrEncoding].
func (b *blockCodec) read(to *blockReader, data []byte, least, most int) error {
	end := len(data) - 4
	if end < blockHead || crc32.Checksum(data[:end], castagnoli) != binary.BigEndian.Uint32(data[end:]) {
		return fmt.Errorf("%w: checksum", estimate.ErrEncoding)
	}
	n, k, base := int(binary.BigEndian.Uint32(data)), uint(data[4]), uint(data[5])
	limit := 8 * (end - blockHead)
	if n < least || n > most || n > limit { // a row has a bit
		return fmt.Errorf("%w: %d rows in %d bytes, want %d to %d", estimate.ErrEncoding, n, len(data), least, most)
	}
	const longest = 32 // a row may end so many bytes behind invalid data
	to.bits = append(append(to.bits[:0], data[blockHead:end]...), make([]byte, longest)...)
	r := bitReader{data: to.bits}
	ok := k <= b.numberBits && base <= 64
	to.rows = slices.Grow(to.rows[:0], n)
	for ; ok && n > 0; n-- {
		x := row{number: r.number(k, b.numberBits)}
		if !b.counters || x.number > 0 {
			x.digest = r.take(b.digestBits)
			x.time = r.take(b.timeWidth(base, x.number))
		}
		ok = x.number <= 1<<b.numberBits && r.at <= limit
		to.rows = append(to.rows, x)
	}
	if spare := limit - r.at; !ok || spare >= 8 || r.take(uint(spare)) != 0 {
		return fmt.Errorf("%w: rows", estimate.ErrEncoding)
	}
	return nil
}

// A bitReader reads bits.
type bitReader struct {
	data []byte
	at   int
}

// take reads width bits, up to 64.
func (r *bitReader) take(width uint) uint64 {
	at := r.at
	r.at += int(width)
	return wire.Bits(r.data, at, int(width))
}

func (r *bitReader) number(k, numberBits uint) uint64 {
	ones := uint(bits.LeadingZeros64(^wire.Bits(r.data, r.at, 64)))
	if ones >= maxOnes {
		r.at += maxOnes
		return r.take(numberBits + 1)
	}
	r.at += int(ones) + 1
	return uint64(ones)<<k | r.take(k)
}
