package lda

import (
	"encoding"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/wire"
)

// The encoding, big-endian, between the head and the CRC-32C of package wire:
//
//	identity        8 bytes
//	sum bits        1
//	digest bits     1
//	banks           1
//	for each bank:  log2 of the rows 1, shift 1
//	unsampled       8, count of packets
//	for each cell:  count 4 · digest ⌈digest bits/8⌉ · sum ⌈sum bits/8⌉
//
// With the default widths a cell thus takes the paper's 72 bits (section V).
// Bits above a field's width are zero.
const (
	magic   = "HLDA"
	version = 2
)

var (
	_ encoding.BinaryMarshaler   = (*Aggregator)(nil)
	_ encoding.BinaryAppender    = (*Aggregator)(nil)
	_ encoding.BinaryUnmarshaler = (*Aggregator)(nil)
)

// EncodedSize returns the number of bytes in the encoding of an aggregator.
func (c *Config) EncodedSize() int {
	return wire.Overhead + c.headSize() + c.cells()*c.cellSize()
}

func (c *Config) headSize() int { return 8 + 3 + 2*c.banks() + 8 }

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

// AppendBinary appends the encoding to dst. Equal states give equal bytes.
// The error is always nil.
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
// The error wraps [estimate.ErrEncoding]; a is then unchanged. It allocates
// nothing if a already has the encoded configuration.
func (a *Aggregator) UnmarshalBinary(data []byte) error {
	r, c, err := openRecord(data)
	if err != nil {
		return err
	}
	if a.cells != nil && a.config == c {
		return a.decodeState(r)
	}
	b, err := New(c)
	if err != nil {
		return err
	}
	if err := b.decodeState(r); err != nil {
		return err
	}
	*a = *b
	return nil
}

// openRecord checks everything but the state. After it, the size of data is
// that of the Config, and the Reader is at the state.
func openRecord(data []byte) (wire.Reader, Config, error) {
	r, err := wire.Open(data, magic, version)
	if err != nil {
		return r, Config{}, fmt.Errorf("lda: %w", err)
	}
	c, banks := readConfig(&r)
	if banks > MaxBanks {
		return r, c, fmt.Errorf("lda: %w: %d banks, at most %d", estimate.ErrEncoding, banks, MaxBanks)
	}
	if err := c.Validate(); err != nil {
		return r, c, fmt.Errorf("%w: %w", err, estimate.ErrEncoding)
	}
	if err := r.Expect(8 + int64(c.cells())*int64(c.cellSize())); err != nil {
		return r, c, fmt.Errorf("lda: %w after %+v", err, c)
	}
	return r, c, nil
}

// readConfig reads the Config's part of the encoding, and how many banks it has.
func readConfig(r *wire.Reader) (c Config, banks int) {
	c = Config{Identity: r.Uint64(), SumBits: r.Uint8(), DigestBits: r.Uint8()}
	banks = int(r.Uint8())
	for j := range min(banks, MaxBanks) {
		c.Banks[j] = Bank{Rows: 1 << min(r.Uint8(), 30), Shift: r.Uint8()}
	}
	return c, banks
}

// decodeState replaces the state with an encoded one of a's Config. After an
// error the state is unchanged.
func (a *Aggregator) decodeState(r wire.Reader) error {
	state := r.Bytes(r.Len())
	rest := binary.BigEndian.Uint64(state)
	if rest > unsampled*math.MaxUint32 {
		return fmt.Errorf("lda: %w: %d packets not sampled, at most %d", estimate.ErrEncoding, rest, uint64(unsampled*math.MaxUint32))
	}
	l, cells := a.config.layout(), a.sampled()
	var digests, sums uint64 // which bits are set
	for i := range cells {
		_, digest, sum := l.cell(state, i)
		digests, sums = digests|digest, sums|sum
	}
	if digests>>a.config.DigestBits|sums>>a.config.SumBits != 0 {
		return fmt.Errorf("lda: %w: a field is wider than its bits", estimate.ErrEncoding)
	}
	for i := range cells {
		count, digest, sum := l.cell(state, i)
		cells[i] = cell{sum: sum, tally: digest<<32 | count}
	}
	a.setUnsampled(rest)
	return nil
}

// A layout says where the fields of an encoded cell are. They are read in
// words of 8 bytes that end where a field ends, because at least 8 other bytes
// precede the first cell.
type layout struct {
	size, digest, sum int    // bytes
	digests, sums     uint64 // masks
}

func (c *Config) layout() layout {
	l := layout{size: c.cellSize(), digest: wire.BytesOf(c.DigestBits), sum: wire.BytesOf(c.SumBits)}
	l.digests, l.sums = 1<<(8*l.digest)-1, math.MaxUint64>>(64-8*l.sum)
	return l
}

// cell returns the fields of a cell.
func (l *layout) cell(state []byte, i int) (count, digest, sum uint64) {
	end := state[8+i*l.size-4+l.digest:]
	tally := binary.BigEndian.Uint64(end)
	return tally >> (8 * l.digest) & math.MaxUint32, tally & l.digests, binary.BigEndian.Uint64(end[l.sum:]) & l.sums
}

// setUnsampled spreads a count of unsampled packets over their cells, which
// hold 32 bits each.
func (a *Aggregator) setUnsampled(n uint64) {
	rest := a.cells[len(a.cells)-unsampled:]
	for i := range rest {
		part := n / uint64(unsampled-i)
		rest[i].tally = part
		n -= part
	}
}

// Fingerprint identifies a Config in control packets.
func (c *Config) Fingerprint() uint64 {
	var buf [8 + 3 + 2*MaxBanks]byte
	return uint64(hashing.Digest(0, c.append(buf[:0])))
}
