package lda

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/wire"
)

// The packed form is for many short intervals: a cell without packets takes one bit, and a cell with one packet
// some seven bytes. It has no checksum; whatever carries it has one. It ends in cells, in blocks of 64, the last one
// perhaps shorter. Big-endian:
//
//	head     Config as in the encoding, from the identity to the last bank's shift;
//	         about 8, a time near those of the packets; unsampled 8
//	block    which 8, a bit for each cell that is not empty, the first one highest;
//	         unless that is 0: bits of counts 1, bits of sums 1, and for each such cell
//	         count · digest · sum less count × about, zigzag, of the low sum bits;
//	         filled up to a byte with zeros
const packedFields = packedBlock * (32 + 32 + 64) / 8 // bytes at most

// AppendPacked appends the packed form, for AddPacked, to dst. The closer about is to the timestamps, as the
// beginning of the interval is, the fewer bytes it takes. Any time will do; for 0 it finds one.
func (a *Aggregator) AppendPacked(dst []byte, about int64) []byte {
	if about == 0 {
		about = a.someTime()
	}
	dst = a.config.append(dst)
	dst = binary.BigEndian.AppendUint64(dst, uint64(about))
	dst = binary.BigEndian.AppendUint64(dst, a.unsampledCount())
	cells := a.sampled()
	for from := 0; from < len(cells); from += packedBlock {
		dst = a.config.appendBlock(dst, cells[from:min(from+packedBlock, len(cells))], a.some(from/packedBlock), about)
	}
	return dst
}

// CheckPacked checks that data is the packed form of an aggregator of the Config, so that AddPacked accepts it.
// The error wraps [estimate.ErrMismatch] or [estimate.ErrEncoding].
func (c *Config) CheckPacked(data []byte) error {
	var buf [8 + 3 + 2*maxBanks]byte
	head := c.append(buf[:0])
	size := len(head) + 16
	if len(data) < size {
		return fmt.Errorf("lda: %w: %d bytes of a packed aggregator, want at least %d", estimate.ErrEncoding, len(data), size)
	}
	if string(data[:len(head)]) != string(head) {
		r := wire.NewReader(data)
		there, banks := readConfig(&r)
		return cmp.Or(c.same(&there), fmt.Errorf("lda: %w: %d banks", estimate.ErrEncoding, banks))
	}
	return c.checkBlocks(binary.BigEndian.Uint64(data[size-8:]), data[size:], c.cells())
}

// AddPacked adds what AppendPacked appended at a point with the same Config, like Merge of the original aggregator,
// except that its cells have lost the bits above those of the Config. The error is that of CheckPacked; a is then
// unchanged.
func (a *Aggregator) AddPacked(data []byte) error {
	if err := a.config.CheckPacked(data); err != nil {
		return err
	}
	data = data[a.config.headSize()-8:]
	a.setUnsampled(a.unsampledCount() + binary.BigEndian.Uint64(data[8:]))
	a.addBlocks(data[16:], binary.BigEndian.Uint64(data))
	return nil
}

// someTime returns the time of some packet or, if all cells have many, 0.
func (a *Aggregator) someTime() int64 {
	for i := range a.sampled() {
		if c := &a.cells[i]; c.count() > 0 && c.count() <= 4 {
			return int64(c.sum) / int64(c.count()) // no sum of four wraps until the year 2043
		}
	}
	return 0
}

// checkBlocks checks that data is the packed form of some cells, and that some packets may be outside.
func (c *Config) checkBlocks(rest uint64, data []byte, cells int) error {
	if err := checkUnsampled(rest); err != nil {
		return err
	}
	for left := cells; left > 0; left -= packedBlock {
		if isEmpty(data) {
			data = data[8:]
			continue
		}
		b, ok := c.block(data)
		if !ok || left < packedBlock && b.which<<left != 0 {
			return fmt.Errorf("lda: %w: packed cells, %d before the last one", estimate.ErrEncoding, left)
		}
		data = data[b.size:]
	}
	if len(data) > 0 {
		return fmt.Errorf("lda: %w: %d bytes behind the packed cells", estimate.ErrEncoding, len(data))
	}
	return nil
}

// addBlocks adds packed cells, which were checked.
func (a *Aggregator) addBlocks(data []byte, about uint64) {
	for from := 0; len(data) > 0; from += packedBlock {
		if isEmpty(data) {
			data = data[8:]
			continue
		}
		b, _ := a.config.block(data)
		fields := data
		data = data[b.size:]
		if a.which != nil {
			a.which[from/packedBlock] |= b.which
		}
		if len(data) < wire.BitPadding {
			var padded [10 + packedFields + wire.BitPadding]byte
			copy(padded[:], fields[:b.size])
			fields = padded[:]
		}
		b.add(a.cells[from:], fields, &a.config, about)
	}
}

// appendBlock appends at most 64 cells, of which only some may not be empty.
func (c *Config) appendBlock(dst []byte, cells []cell, some uint64, about int64) []byte {
	var which, counts, sums uint64
	var rest [packedBlock]uint64
	for some &= ^uint64(0) << (packedBlock - len(cells)); some != 0; {
		i := bits.LeadingZeros64(some)
		some &^= 1 << (63 - i)
		count, sum := uint64(cells[i].count()), cells[i].sum
		if sum<<(64-c.SumBits)|cells[i].tally&(c.digestMask()|math.MaxUint32) == 0 {
			continue
		}
		which |= 1 << (63 - i)
		counts |= count
		rest[i] = wire.Zigzag(estimate.SignExtend(sum-count*uint64(about), int(c.SumBits)))
		sums |= rest[i]
	}
	dst = binary.BigEndian.AppendUint64(dst, which)
	if which == 0 {
		return dst
	}
	countBits, sumBits := bits.Len64(counts), bits.Len64(sums)
	w := wire.NewBitWriter(append(dst, uint8(countBits), uint8(sumBits)))
	for which != 0 {
		i := bits.LeadingZeros64(which)
		which &^= 1 << (63 - i)
		w.Put(uint64(cells[i].count()), countBits)
		w.Put(cells[i].tally&c.digestMask()>>32, int(c.DigestBits))
		w.Put(rest[i], sumBits)
	}
	return w.Bytes()
}

// A block is up to 64 packed cells.
type block struct {
	which         uint64
	count, sum    int // bits
	fields, width int // where the cells begin, in bytes, and bits for each cell
	size          int // bytes of all
}

// isEmpty reports whether the next block has only empty cells.
func isEmpty(data []byte) bool { return len(data) >= 8 && binary.BigEndian.Uint64(data) == 0 }

// block reads the layout of the next block, which is not empty, and reports whether the block is whole.
func (c *Config) block(data []byte) (b block, ok bool) {
	if len(data) < 8 {
		return b, false
	}
	if b.which = binary.BigEndian.Uint64(data); len(data) < 10 {
		return b, false
	}
	b.count, b.sum, b.fields = int(data[8]), int(data[9]), 10
	b.width = b.count + int(c.DigestBits) + b.sum
	used := b.width * bits.OnesCount64(b.which)
	b.size = b.fields + (used+7)/8
	if b.count > 32 || b.sum > int(c.SumBits) || b.size > len(data) {
		return b, false
	}
	return b, used&7 == 0 || data[b.size-1]<<(used&7) == 0
}

// add adds the cells of a block.
func (b *block) add(cells []cell, data []byte, c *Config, about uint64) {
	data = data[b.fields:]
	at, rest, last := 0, uint(c.DigestBits)+uint(b.sum), uint(b.sum) // unsigned: shifts by them need no checks
	digests, sums, known := uint64(1)<<c.DigestBits-1, uint64(1)<<last-1, uint64(math.MaxUint64)>>(64-c.SumBits)
	for which := b.which; which != 0; at += b.width {
		i := bits.LeadingZeros64(which)
		which &^= 1 << (63 - i)
		var count, digest, sum uint64
		if b.width <= 64 {
			word := wire.Bits(data, at, b.width)
			count, digest, sum = word>>rest, word>>last&digests, word&sums
		} else {
			count = wire.Bits(data, at, b.count)
			digest = wire.Bits(data, at+b.count, int(c.DigestBits))
			sum = wire.Bits(data, at+b.count+int(c.DigestBits), b.sum)
		}
		cells[i].sum += (uint64(wire.Unzigzag(sum)) + count*about) & known
		cells[i].tally += digest<<32 | count
	}
}

// A Sparse is an [Aggregator] for intervals of few packets. It remembers which cells they are in, so that
// packing, merging, comparing and emptying it take time in proportion to packets, not cells. For that its
// Update takes a little longer than the Aggregator's.
type Sparse struct{ Aggregator }

// NewSparse returns an empty Sparse. The error wraps [estimate.ErrConfig].
func NewSparse(c Config) (*Sparse, error) {
	a, err := New(c)
	if err != nil {
		return nil, err
	}
	a.which = make([]uint64, (len(a.cells)+packedBlock-1)/packedBlock)
	return &Sparse{*a}, nil
}

// Update records that packet p passed at time t, as [Aggregator.Update] does.
func (s *Sparse) Update(p hashing.Packet, t int64) {
	i := add(s.cells, &s.spans, p, t)
	if s.which != nil { // it is not after UnmarshalBinary
		s.which[i/packedBlock] |= 1 << (63 - i%packedBlock)
	}
}
