package lda

import (
	"encoding"
	"fmt"
	"math"
	"math/bits"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/wire"
)

// The encoding, big-endian, between the head and the CRC-32C of package wire:
//
//	seed            8 bytes
//	sum bits        1
//	digest bits     1
//	banks           1
//	for each bank:  log2 of the rows 1, shift 1
//	unsampled       8, count of packets
//	for each cell:  count 4 · digest ⌈digest bits/8⌉ · sum ⌈sum bits/8⌉
//
// so that with the default widths a cell takes the paper's 72 bits (section
// V). Bits above a field's width are zero.
const (
	magic   = "HLDA"
	version = 1
)

var (
	_ encoding.BinaryMarshaler   = (*Aggregator)(nil)
	_ encoding.BinaryAppender    = (*Aggregator)(nil)
	_ encoding.BinaryUnmarshaler = (*Aggregator)(nil)
)

// EncodedSize is how many bytes the encoding of an aggregator takes.
func (c *Config) EncodedSize() int {
	return wire.Overhead + c.headSize() + c.cells()*c.cellSize()
}

func (c *Config) headSize() int { return 8 + 3 + 2*c.banks() + 8 }

func (c *Config) cellSize() int { return 4 + bytesOf(c.DigestBits) + bytesOf(c.SumBits) }

// banks is how many banks have rows.
func (c *Config) banks() int {
	n := 0
	for n < MaxBanks && c.Banks[n].Rows > 0 {
		n++
	}
	return n
}

func bytesOf(bits uint8) int { return (int(bits) + 7) / 8 }

// AppendBinary appends the encoding to dst. Equal states give equal bytes.
// The error is always nil.
func (a *Aggregator) AppendBinary(dst []byte) ([]byte, error) {
	c := &a.config
	start := len(dst)
	dst = wire.Begin(dst, magic, version)
	dst = wire.AppendUint(dst, c.Seed, 8)
	dst = append(dst, c.SumBits, c.DigestBits, uint8(c.banks()))
	for _, b := range c.Banks[:c.banks()] {
		dst = append(dst, uint8(bits.TrailingZeros(uint(b.Rows))), b.Shift)
	}
	dst = wire.AppendUint(dst, a.unsampledCount(), 8)
	sumMask, digestMask := uint64(1)<<c.SumBits-1, c.digestMask()
	for i := range a.sampled() {
		cell := &a.cells[i]
		dst = wire.AppendUint(dst, uint64(cell.count()), 4)
		dst = wire.AppendUint(dst, cell.tally&digestMask>>32, bytesOf(c.DigestBits))
		dst = wire.AppendUint(dst, cell.sum&sumMask, bytesOf(c.SumBits))
	}
	return wire.Seal(dst, start), nil
}

// MarshalBinary returns the encoding. The error is always nil.
func (a *Aggregator) MarshalBinary() ([]byte, error) {
	return a.AppendBinary(make([]byte, 0, a.config.EncodedSize()))
}

// UnmarshalBinary replaces a's configuration and state by the encoded ones. The
// error wraps [estimate.ErrEncoding], and a is then unchanged.
func (a *Aggregator) UnmarshalBinary(data []byte) error {
	r, err := wire.Open(data, magic, version)
	if err != nil {
		return fmt.Errorf("lda: %w", err)
	}
	c := Config{Seed: r.Uint64(), SumBits: r.Uint8(), DigestBits: r.Uint8()}
	banks := int(r.Uint8())
	if banks > MaxBanks {
		return fmt.Errorf("lda: %w: %d banks, at most %d", estimate.ErrEncoding, banks, MaxBanks)
	}
	for j := range banks {
		c.Banks[j] = Bank{Rows: 1 << min(r.Uint8(), 30), Shift: r.Uint8()}
	}
	if err := c.Validate(); err != nil {
		return fmt.Errorf("lda: %w: %w", estimate.ErrEncoding, err)
	}
	if len(data) != c.EncodedSize() {
		return fmt.Errorf("lda: %w: %d bytes, want %d for %+v", estimate.ErrEncoding, len(data), c.EncodedSize(), c)
	}
	b, err := New(c)
	if err != nil {
		return err
	}
	rest := r.Uint64()
	if rest > unsampled*math.MaxUint32 {
		return fmt.Errorf("lda: %w: %d packets not sampled, at most %d", estimate.ErrEncoding, rest, uint64(unsampled*math.MaxUint32))
	}
	cells := b.sampled()
	for i := range cells {
		count := r.Uint(4)
		digest := r.Uint(bytesOf(c.DigestBits))
		cells[i] = cell{tally: digest<<32 | count, sum: r.Uint(bytesOf(c.SumBits))}
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("lda: %w", err)
	}
	b.setUnsampled(rest)
	*a = *b
	return nil
}

// setUnsampled spreads a count of unsampled packets over their cells, which
// hold 32 bits each.
func (a *Aggregator) setUnsampled(n uint64) {
	rest := a.cells[len(a.cells)-unsampled:]
	for i := range rest {
		part := min(n, math.MaxUint32)
		rest[i].tally = part
		n -= part
	}
}
