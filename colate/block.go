package colate

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"

	"github.com/hoplag/hoplag/estimate"
)

// Counters are encoded in blocks of blockCounters, the last one smaller, each of which
// can be read alone: SPEC.md describes it. The sum of the times of n packets is close to
// n times the middle of the epoch, and what is left has some log2(Period) + log2(n)/2 bits.
const (
	blockCounters = 256
	blockOverhead = 6
	maxOnes       = 24
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A blockCodec holds what the blocks of an epoch share.
type blockCodec struct {
	countBits, digestBits, sumBits uint
	middle                         uint64 // of the epoch, in units
}

func newBlockCodec(c *Config, start int64) blockCodec {
	return blockCodec{
		countBits: uint(c.CountBits), digestBits: uint(c.DigestBits), sumBits: uint(c.sumBits()),
		middle: uint64((start + c.Period/2) >> c.Shift),
	}
}

// split splits a word into its count as encoded, its digest, and the rest of
// its sum.
func (b *blockCodec) split(word uint64) (count, digest, sum uint64) {
	if word == 0 {
		return 0, 0, 0
	}
	count = word & (1<<b.countBits - 1)
	if count == 0 {
		count = 1 << b.countBits
	}
	digest = word >> b.countBits & (1<<b.digestBits - 1)
	rest := word>>(b.countBits+b.digestBits) - b.expected(count)
	signed := estimate.SignExtend(rest, int(b.sumBits))
	return count, digest, uint64(signed<<1) ^ uint64(signed>>63)
}

// join returns the word that split took apart.
func (b *blockCodec) join(count, digest, sum uint64) uint64 {
	signed := sum>>1 ^ -(sum & 1)
	total := (signed + b.expected(count)) & (1<<b.sumBits - 1)
	return total<<(b.countBits+b.digestBits) | digest<<b.countBits | count&(1<<b.countBits-1)
}

// expected returns the sum that this number of packets would have in the
// middle of the epoch, including the carry from their digests.
func (b *blockCodec) expected(count uint64) uint64 { return count*b.middle + count/2 }

// sumWidth returns the number of bits in the rest of a sum.
func (b *blockCodec) sumWidth(base uint, count uint64) uint {
	return min(b.sumBits, base+(uint(bits.Len64(count))+1)/2)
}

// append appends a block of words.
func (b *blockCodec) append(dst []byte, words []uint64) []byte {
	start := len(dst)
	var total, base uint64
	for _, word := range words {
		count, _, sum := b.split(word)
		total += count
		if need, has := uint64(bits.Len64(sum)), uint64(bits.Len64(count)+1)/2; need > has+base {
			base = need - has
		}
	}
	k := min(uint(max(bits.Len64(total/uint64(len(words))), 1)-1), b.countBits)
	w := bitWriter{dst: append(dst, byte(k), byte(base))}
	for _, word := range words {
		count, digest, sum := b.split(word)
		w.putCount(count, k, b.countBits)
		if count > 0 {
			w.put(digest, b.digestBits)
			w.put(sum, b.sumWidth(uint(base), count))
		}
	}
	return w.seal(start)
}

// read reads a block into words and checks its checksum. The error wraps
// [estimate.ErrEncoding]; words then hold nothing useful. read uses scratch,
// and returns it for reuse.
func (b *blockCodec) read(words []uint64, data, scratch []byte) ([]byte, error) {
	r, ok := openBits(data, 2, scratch)
	if !ok {
		return scratch, fmt.Errorf("%w: checksum of a block of counters", estimate.ErrEncoding)
	}
	k, base := uint(data[0]), uint(data[1])
	ok = k <= b.countBits && base <= 64
	for i := range words {
		if !ok || r.at > r.limit {
			break
		}
		count := r.count(k, b.countBits)
		ok, words[i] = count <= 1<<b.countBits, 0
		if ok && count > 0 {
			digest := r.take(b.digestBits)
			words[i] = b.join(count, digest, r.take(b.sumWidth(base, count)))
		}
	}
	if !ok || !r.ended() {
		return r.data, fmt.Errorf("%w: a block of counters", estimate.ErrEncoding)
	}
	return r.data, nil
}

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

func (w *bitWriter) putCount(count uint64, k, countBits uint) {
	if ones := uint(count >> k); ones < maxOnes {
		w.put(1<<(ones+1)-2, ones+1)
		w.put(count, k)
		return
	}
	w.put(1<<maxOnes-1, maxOnes)
	w.put(count, countBits+1)
}

// seal pads the last byte with zeros, and adds the checksum of the block that began at an
// offset.
func (w *bitWriter) seal(from int) []byte {
	if w.length > 0 {
		w.put(0, 8-w.length)
	}
	return binary.BigEndian.AppendUint32(w.dst, crc32.Checksum(w.dst[from:], castagnoli))
}

// A bitReader reads bits. data is 16 bytes longer than limit; at may exceed
// limit after a count or a sum of invalid data.
type bitReader struct {
	data      []byte
	at, limit uint
}

// openBits checks the checksum of a block, and opens what is behind a head of so many
// bytes. It uses scratch.
func openBits(data []byte, head int, scratch []byte) (r bitReader, ok bool) {
	end := len(data) - 4
	if end < head || crc32.Checksum(data[:end], castagnoli) != binary.BigEndian.Uint32(data[end:]) {
		return r, false
	}
	return bitReader{data: append(append(scratch[:0], data[head:end]...), make([]byte, 16)...), limit: uint(end-head) * 8}, true
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

// take reads width bits, up to 56.
func (r *bitReader) take(width uint) uint64 {
	v := r.peek() >> (64 - width)
	r.at += width
	return v
}

func (r *bitReader) count(k, countBits uint) uint64 {
	ones := uint(bits.LeadingZeros64(^r.peek()))
	if ones >= maxOnes {
		r.at += maxOnes
		return r.take(countBits + 1)
	}
	r.at += ones + 1
	return uint64(ones)<<k | r.take(k)
}
