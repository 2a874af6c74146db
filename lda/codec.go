package lda

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/wire"
)

// SPEC.md, section 2.3, has the fields of the encoding, and section 2.4 those of the packed form.
const (
	magic   = "HLDA"
	version = 2
)

// EncodedSize returns the number of bytes in the encoding of an aggregator.
func (c *Config) EncodedSize() int {
	return wire.Overhead + 8 + 3 + 2*c.banks() + 8 + c.cells()*c.cellSize()
}

func (c *Config) cellSize() int { return 4 + wire.BytesOf(c.DigestBits) + wire.BytesOf(c.SumBits) }

// append appends the Config's part of the encoding.
func (c *Config) append(dst []byte) []byte {
	dst = wire.AppendUint(dst, c.Identity, 8)
	dst = append(dst, c.SumBits, c.DigestBits, uint8(c.banks()))
	for _, b := range c.Banks[:c.banks()] {
		dst = append(dst, uint8(bits.TrailingZeros(uint(b.Rows))), b.Shift)
	}
	return dst
}

// AppendBinary appends the encoding to dst. Equal states give equal bytes. The error is always nil.
func (a *Aggregator) AppendBinary(dst []byte) ([]byte, error) {
	c := &a.config
	start := len(dst)
	dst = wire.Begin(dst, magic, version)
	dst = c.append(dst)
	dst = wire.AppendUint(dst, a.unsampledCount(), 8)
	for i := range a.sampled() {
		cell := &a.cells[i]
		dst = wire.AppendUint(dst, uint64(cell.count()), 4)
		dst = wire.AppendBits(dst, cell.tally>>32, c.DigestBits)
		dst = wire.AppendBits(dst, cell.sum, c.SumBits)
	}
	return wire.Seal(dst, start), nil
}

// MarshalBinary returns the encoding. The error is always nil.
func (a *Aggregator) MarshalBinary() ([]byte, error) {
	return a.AppendBinary(make([]byte, 0, a.config.EncodedSize()))
}

// UnmarshalBinary replaces a's configuration and state with the encoded ones.
// The error wraps [estimate.ErrEncoding]; a is then unchanged.
func (a *Aggregator) UnmarshalBinary(data []byte) error {
	r, err := wire.Open(data, magic, version)
	if err != nil {
		return fmt.Errorf("lda: %w", err)
	}
	c, banks := readConfig(&r)
	if banks > maxBanks {
		return fmt.Errorf("lda: %w: %d banks, at most %d", estimate.ErrEncoding, banks, maxBanks)
	}
	if err := c.Validate(); err != nil {
		return fmt.Errorf("%w: %w", err, estimate.ErrEncoding)
	}
	if err := r.Expect(8 + int64(c.cells())*int64(c.cellSize())); err != nil {
		return fmt.Errorf("lda: %w after %+v", err, c)
	}
	rest := r.Uint64()
	if err := checkUnsampled(rest); err != nil {
		return err
	}
	b, err := New(c)
	if err != nil {
		return err
	}
	for i := range b.sampled() {
		count, digest := r.Uint(4), r.Bits(c.DigestBits)
		b.cells[i] = cell{sum: r.Bits(c.SumBits), tally: digest<<32 | count}
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("lda: %w", err)
	}
	b.setUnsampled(rest)
	*a = *b
	return nil
}

// readConfig reads the Config's part of the encoding, and how many banks it has.
func readConfig(r *wire.Reader) (c Config, banks int) {
	c = Config{Identity: r.Uint64(), SumBits: r.Uint8(), DigestBits: r.Uint8()}
	banks = int(r.Uint8())
	for j := range min(banks, maxBanks) {
		c.Banks[j] = Bank{Rows: 1 << min(r.Uint8(), 30), Shift: r.Uint8()}
	}
	return c, banks
}

// checkUnsampled checks that a number of packets may be outside the banks.
func checkUnsampled(n uint64) error {
	if n > unsampled*math.MaxUint32 {
		return fmt.Errorf("lda: %w: %d packets not sampled, at most %d", estimate.ErrEncoding, n, uint64(unsampled*math.MaxUint32))
	}
	return nil
}

// setUnsampled spreads a count of unsampled packets over their cells, which hold 32 bits each.
func (a *Aggregator) setUnsampled(n uint64) {
	rest := a.cells[len(a.cells)-unsampled:]
	for i := range rest {
		part := n / uint64(unsampled-i)
		rest[i].tally = part
		n -= part
	}
	for i := len(a.cells) - unsampled; a.which != nil && i < len(a.cells); i++ {
		a.which[i/packedBlock] |= 1 << (63 - i%packedBlock)
	}
}

// AddCells adds the contents of cells that are kept elsewhere, such as in a kernel or on a network card: two words for each cell,
// bank after bank, and then for 16 cells of the packets that no bank samples, chosen by the low bits of the hash. The first word is
// the sum of timestamps; the second has the count of packets in its low half, and in its high half the sum of the high halves of
// their hashes. If the number of words is wrong, the error wraps [estimate.ErrMismatch] and a is unchanged.
func (a *Aggregator) AddCells(words []uint64) error {
	if len(words) != 2*len(a.cells) {
		return fmt.Errorf("lda: %w: %d words of cells, want %d", estimate.ErrMismatch, len(words), 2*len(a.cells))
	}
	for i := range a.cells {
		a.cells[i].sum += words[2*i]
		a.cells[i].tally += words[2*i+1]
	}
	a.touch()
	return nil
}

// AppendCells appends the words that AddCells takes. Adding them to an empty
// aggregator of the same Config gives an equal aggregator.
func (a *Aggregator) AppendCells(words []uint64) []uint64 {
	for i := range a.cells {
		words = append(words, a.cells[i].sum, a.cells[i].tally)
	}
	return words
}
