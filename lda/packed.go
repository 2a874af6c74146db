package lda

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/wire"
)

// The packed form is for many short intervals: a cell without packets takes
// one bit, and a cell with one packet some seven bytes. It has no checksum;
// whatever carries it has one. Big-endian:
//
//	Config     as in the encoding, from the identity to the last bank's shift
//	about      8 bytes, a time near those of the packets
//	unsampled  8
//	for each 64 cells, the last ones perhaps fewer:
//	  which    8, a bit for each cell that is not empty, the first one highest
//	  unless it is 0:
//	  widths   1 of counts in bits, 1 of sums
//	  for each such cell, bit by bit, filled up to a byte with zeros:
//	    count · digest · sum less count × about, zigzag, of the low sum bits
const (
	packedBlock  = 64
	packedFields = packedBlock * (32 + 32 + 64) / 8 // bytes at most
)

// AppendPacked appends the packed form, for AddPacked, to dst. The closer
// about is to the time stamps, as the beginning of the interval is, the fewer
// bytes it takes; any time will do.
func (a *Aggregator) AppendPacked(dst []byte, about int64) []byte {
	dst = a.config.append(dst)
	dst = binary.BigEndian.AppendUint64(dst, uint64(about))
	dst = binary.BigEndian.AppendUint64(dst, a.unsampledCount())
	cells := a.sampled()
	for from := 0; from < len(cells); from += packedBlock {
		dst = a.config.appendBlock(dst, cells[from:min(from+packedBlock, len(cells))], a.some(from/packedBlock), about)
	}
	return dst
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

// CheckPacked checks that data is the packed form of an aggregator of the
// Config, so that AddPacked takes it. The error wraps [estimate.ErrMismatch] or
// [estimate.ErrEncoding].
func (c *Config) CheckPacked(data []byte) error {
	var buf [8 + 3 + 2*MaxBanks]byte
	head := c.append(buf[:0])
	size := len(head) + 16
	if len(data) < size {
		return fmt.Errorf("lda: %w: %d bytes of a packed aggregator, want at least %d", estimate.ErrEncoding, len(data), size)
	}
	if got := data[:len(head)]; string(got) != string(head) {
		return fmt.Errorf("lda: %w: %s", estimate.ErrMismatch, c.differ(got))
	}
	if n := binary.BigEndian.Uint64(data[size-8:]); n > unsampled*math.MaxUint32 {
		return fmt.Errorf("lda: %w: %d packets not sampled, at most %d", estimate.ErrEncoding, n, uint64(unsampled*math.MaxUint32))
	}
	data = data[size:]
	for left := c.cells(); left > 0; left -= packedBlock {
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

// differ says what an encoded Config has that is not as in this one.
func (c *Config) differ(there []byte) string {
	const first = 8 + 3 // identity, and before the banks: SumBits, DigestBits, and how many there are
	for i, b := range c.Banks[:c.banks()] {
		at := first + 2*i
		if i >= int(there[first-1]) {
			return fmt.Sprintf("Banks[%d] is not there, %+v here", i, b)
		}
		if rows := 1 << (there[at] & 31); rows != b.Rows {
			return fmt.Sprintf("Banks[%d].Rows is %d there, %d here", i, rows, b.Rows)
		}
		if shift := there[at+1]; shift != b.Shift {
			return fmt.Sprintf("Banks[%d].Shift is %d there, %d here", i, shift, b.Shift)
		}
	}
	for i, field := range [3]string{"SumBits", "DigestBits", "the number of banks"} {
		if here := [3]uint8{c.SumBits, c.DigestBits, uint8(c.banks())}[i]; there[8+i] != here {
			return fmt.Sprintf("%s is %d there, %d here", field, there[8+i], here)
		}
	}
	return "the identities differ"
}

// A block is up to 64 packed cells.
type block struct {
	which         uint64
	count, sum    int // bits
	fields, width int // where the cells begin, in bytes, and bits for each cell
	size          int // bytes of all
}

// block reads the layout of the next block, and reports whether the block is
// whole.
func (c *Config) block(data []byte) (b block, ok bool) {
	if len(data) < 8 {
		return b, false
	}
	b.which, b.size = binary.BigEndian.Uint64(data), 8
	if b.which == 0 {
		return b, true
	}
	if len(data) < 10 {
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

// AddPacked adds what AppendPacked appended at a point with the same Config,
// like Merge of the original aggregator, except that its cells have lost the
// bits above those of the Config. The error is that of CheckPacked; a is then
// unchanged.
func (a *Aggregator) AddPacked(data []byte) error {
	c := &a.config
	if err := c.CheckPacked(data); err != nil {
		return err
	}
	data = data[c.headSize()-8:]
	about := binary.BigEndian.Uint64(data)
	a.setUnsampled(a.unsampledCount() + binary.BigEndian.Uint64(data[8:]))
	data = data[16:]
	for from := 0; from < c.cells(); from += packedBlock {
		b, _ := c.block(data)
		fields := data[:b.size]
		if a.which != nil {
			a.which[from/packedBlock] |= b.which
		}
		if b.which != 0 {
			if len(data) < b.size+wire.BitPadding {
				var padded [10 + packedFields + wire.BitPadding]byte
				copy(padded[:], fields)
				b.add(a.cells[from:], padded[:], c, about)
			} else {
				b.add(a.cells[from:], data, c, about)
			}
		}
		data = data[b.size:]
	}
	return nil
}

// add adds the cells of a block.
func (b *block) add(cells []cell, data []byte, c *Config, about uint64) {
	data = data[b.fields:]
	rest := int(c.DigestBits) + b.sum
	at, digests, sums := 0, uint64(1)<<c.DigestBits-1, uint64(1)<<b.sum-1
	for which := b.which; which != 0; at += b.width {
		i := bits.LeadingZeros64(which)
		which &^= 1 << (63 - i)
		var count, digest, sum uint64
		if b.width <= 64-7 {
			word := binary.BigEndian.Uint64(data[at>>3:]) << (at & 7) >> (64 - b.width)
			count, digest, sum = word>>rest, word>>b.sum&digests, word&sums
		} else {
			count = wire.Bits(data, at, b.count)
			digest = wire.Bits(data, at+b.count, int(c.DigestBits))
			sum = wire.Bits(data, at+b.count+int(c.DigestBits), b.sum)
		}
		cells[i].sum += (uint64(wire.Unzigzag(sum)) + count*about) << (64 - c.SumBits) >> (64 - c.SumBits)
		cells[i].tally += digest<<32 | count
	}
}
