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
// some seven bytes. It has no checksum; whatever carries it has one.
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
	cells, rest := a.sampled(), new([packedBlock]uint64)
	for from := 0; from < len(cells); from += packedBlock {
		if some := a.some(from / packedBlock); some == 0 { // as most blocks are if there were few packets
			dst = binary.BigEndian.AppendUint64(dst, 0)
		} else {
			dst = a.config.appendBlock(dst, cells[from:min(from+packedBlock, len(cells))], some, about, rest)
		}
	}
	return dst
}

// packed is a packed form that was checked, for aggregators of the Config that checked it.
type packed struct {
	about, unsampled uint64
	cells            []byte
}

// CheckPacked checks that data is the packed form of an aggregator of the Config. The function that it returns adds
// that to any aggregator of the Config, like AddPacked, from data. The error wraps [estimate.ErrMismatch] or [estimate.ErrEncoding].
func (c *Config) CheckPacked(data []byte) (add func(*Aggregator), err error) {
	p, err := c.packed(data)
	return p.addTo, err
}

// packed checks a packed form.
func (c *Config) packed(data []byte) (packed, error) {
	var buf [8 + 3 + 2*maxBanks]byte
	head := c.append(buf[:0])
	size := len(head) + 16
	if len(data) < size {
		return packed{}, fmt.Errorf("lda: %w: %d bytes of a packed aggregator, want at least %d", estimate.ErrEncoding, len(data), size)
	}
	if string(data[:len(head)]) != string(head) {
		r := wire.NewReader(data)
		there, banks := readConfig(&r)
		return packed{}, cmp.Or(c.same(&there), fmt.Errorf("lda: %w: %d banks", estimate.ErrEncoding, banks))
	}
	p := packed{binary.BigEndian.Uint64(data[size-16:]), binary.BigEndian.Uint64(data[size-8:]), data[size:]}
	rest, b := p.cells, block{}
	for n := c.cells(); n > 0; n -= packedBlock {
		if len(rest) >= 8 && binary.BigEndian.Uint64(rest) == 0 {
			rest = rest[8:]
			continue
		}
		if !b.read(c, rest) || b.which<<uint(n) != 0 {
			return packed{}, fmt.Errorf("lda: %w: packed cells, %d before the last one", estimate.ErrEncoding, n)
		}
		rest = rest[b.size:]
	}
	if len(rest) > 0 {
		return packed{}, fmt.Errorf("lda: %w: %d bytes behind the packed cells", estimate.ErrEncoding, len(rest))
	}
	return p, checkUnsampled(p.unsampled)
}

// AddPacked adds what AppendPacked appended at a point with the same Config, like Merge of the original aggregator, except that
// its cells have lost the bits above those of the Config. The error is that of CheckPacked; a is then unchanged.
func (a *Aggregator) AddPacked(data []byte) error {
	p, err := a.config.packed(data)
	if err == nil {
		p.addTo(a)
	}
	return err
}

// addTo adds the packets to an aggregator.
func (p *packed) addTo(a *Aggregator) {
	if p.unsampled > 0 {
		a.setUnsampled(a.unsampledCount() + p.unsampled)
	}
	var b block // a variable of the loop would be copied
	for from, cells := 0, p.cells; len(cells) > 0; from, cells = from+packedBlock, cells[b.size:] {
		if b.which, b.size = binary.BigEndian.Uint64(cells), 8; b.which == 0 {
			continue
		}
		if b.read(&a.config, cells); a.which != nil {
			a.which[from/packedBlock] |= b.which
		}
		b.add(a.cells[from:], cells[10:], &a.config, p.about)
	}
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

// appendBlock appends at most 64 cells, of which only some may not be empty. It uses the room of rest.
func (c *Config) appendBlock(dst []byte, cells []cell, some uint64, about int64, rest *[packedBlock]uint64) []byte {
	var which, counts, sums uint64
	unknown, digests := uint(64-c.SumBits)%64, c.digestMask()
	for some &= ^uint64(0) << uint(packedBlock-len(cells)); some != 0; some &= some - 1 {
		i := 63 - bits.TrailingZeros64(some)
		of := &cells[i]
		if of.sum<<unknown|of.tally&(digests|math.MaxUint32) == 0 {
			continue
		}
		count := uint64(of.count())
		rest[i] = wire.Zigzag(int64((of.sum-count*uint64(about))<<unknown) >> unknown)
		which, counts, sums = which|some&-some, counts|count, sums|rest[i]
	}
	dst = binary.BigEndian.AppendUint64(dst, which)
	if which == 0 {
		return dst
	}
	countBits, sumBits := bits.Len64(counts), bits.Len64(sums)
	w := wire.NewBitWriter(append(dst, uint8(countBits), uint8(sumBits)))
	for which != 0 {
		i := uint(bits.LeadingZeros64(which)) % packedBlock
		which &^= 1 << 63 >> i
		w.Put(uint64(cells[i].count())<<c.DigestBits|cells[i].tally&digests>>32, countBits+int(c.DigestBits))
		w.Put(rest[i], sumBits)
	}
	return w.Bytes()
}

// A block is up to 64 packed cells.
type block struct {
	which             uint64
	count, sum, width int // bits of fields, and of each cell
	size              int // bytes
}

// read reads the layout of a block, which is not empty, and reports whether it is whole.
func (b *block) read(c *Config, data []byte) bool {
	if len(data) < 10 {
		return false
	}
	b.which, b.count, b.sum = binary.BigEndian.Uint64(data), int(data[8]), int(data[9])
	b.width = b.count + int(c.DigestBits) + b.sum
	used := b.width * bits.OnesCount64(b.which)
	b.size = 10 + (used+7)/8
	return b.count <= 32 && b.sum <= int(c.SumBits) && b.size <= len(data) &&
		(used&7 == 0 || data[b.size-1]<<(used&7) == 0)
}

// add adds the cells of a block.
func (b *block) add(cells []cell, fields []byte, c *Config, about uint64) {
	if len(fields) < b.size-10+wire.BitPadding {
		var padded [packedFields + wire.BitPadding]byte
		copy(padded[:], fields[:b.size-10])
		fields = padded[:]
	}
	at, tally := 0, b.count+int(c.DigestBits)
	digests, known := uint64(1)<<c.DigestBits-1, uint64(math.MaxUint64)>>(64-c.SumBits)
	for which := b.which; which != 0; at += b.width {
		i := uint(bits.LeadingZeros64(which)) % packedBlock
		which &^= 1 << 63 >> i
		both, sum := wire.Bits(fields, at, tally), wire.Bits(fields, at+tally, b.sum)
		count := both >> c.DigestBits
		cells[i].sum += (uint64(wire.Unzigzag(sum)) + count*about) & known
		cells[i].tally += both&digests<<32 | count
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
