package lda

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/wire"
)

// A part is the packed form of some cells in a row, which can be read without any
// other. Big-endian:
//
//	from       4, the first cell
//	cells      2
//	about      8
//	unsampled  8, of the whole aggregator
//	for each 64 cells, the last ones perhaps fewer: as in the packed form
const (
	partHead = 4 + 2 + 8 + 8

	// LeastPart is the greatest number of bytes that a part of one cell takes.
	LeastPart = partHead + 8 + 2 + (32+32+64)/8
)

// PartsSize returns the greatest number of parts of an aggregator, and of bytes in
// all of them together.
func (c *Config) PartsSize() (parts, bytes int) {
	return c.cells(), c.cells() * LeastPart
}

// AppendPart appends the packed form of the cells from one on, as many as fit in
// room bytes, which are at least [LeastPart]. It returns the cell with which the
// next part begins, or 0 after the last.
func (a *Aggregator) AppendPart(dst []byte, from, room int) (part []byte, next int) {
	start, first, about, cells := len(dst), from, a.someTime(), a.sampled()
	dst = wire.AppendUint(dst, uint64(from), 4)
	dst = wire.AppendUint(dst, 0, 2)
	dst = wire.AppendUint(dst, uint64(about), 8)
	dst = wire.AppendUint(dst, a.unsampledCount(), 8)
	for size := packedBlock; size > 0 && from < len(cells) && from+size-first <= math.MaxUint16; {
		to := min(from+size, len(cells))
		if block := a.config.appendBlock(dst, cells[from:to], math.MaxUint64, about); len(block)-start <= room {
			dst, from = block, to
			if size < packedBlock {
				break // only the last block is shorter
			}
			continue
		}
		size /= 2
	}
	binary.BigEndian.PutUint16(dst[start+4:], uint16(from-first))
	if from == len(cells) {
		from = 0
	}
	return dst, from
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

// EstimateParts is [Estimate] for an upstream synopsis of which some parts came,
// in any order. It decodes them into up and empties the other cells of down. It
// returns the share of the cells that came; the Result counts their packets. If a
// part is malformed or comes twice, the error wraps [estimate.ErrEncoding]. up and
// down may differ in shifts, and up gets those of down.
func EstimateParts(up, down *Aggregator, parts iter.Seq[[]byte]) (r Result, share float64, err error) {
	if err := up.SetShifts(down.config); err != nil {
		return r, 0, err
	}
	up.Reset()
	received, cells := down.Packets(), up.sampled()
	came := make([]bool, len(cells))
	for part := range parts {
		from, to, err := up.addPart(part, came)
		if err != nil {
			return r, 0, err
		}
		share += float64(to-from) / float64(len(cells))
	}
	for i, is := range came {
		if !is {
			down.cells[i] = cell{}
		}
	}
	r, err = compare(up, down, received)
	return r, min(share, 1), err
}

// addPart adds the cells of a part, from one up to another.
func (a *Aggregator) addPart(data []byte, came []bool) (from, to int, err error) {
	bad := func(what string) (int, int, error) {
		return 0, 0, fmt.Errorf("lda: %w: part of %d bytes: %s", estimate.ErrEncoding, len(data), what)
	}
	if len(data) < partHead {
		return bad("no head")
	}
	first, about, rest := binary.BigEndian.Uint32(data), binary.BigEndian.Uint64(data[6:]), binary.BigEndian.Uint64(data[14:])
	if rest > unsampled*math.MaxUint32 || uint64(first)+uint64(binary.BigEndian.Uint16(data[4:])) > uint64(len(came)) {
		return bad("cells or packets that cannot be")
	}
	from, to = int(first), int(first)+int(binary.BigEndian.Uint16(data[4:]))
	fields := data[partHead:]
	for at := from; at < to; at += packedBlock {
		left := to - at
		b, ok := a.config.block(fields)
		if !ok || left < packedBlock && b.which<<left != 0 {
			return bad("a block ends early")
		}
		for i := at; i < min(at+packedBlock, to); i++ {
			if came[i] {
				return bad("cells that came already")
			}
			came[i] = true
		}
		if b.which != 0 {
			var padded [10 + packedFields + wire.BitPadding]byte
			copy(padded[:], fields[:b.size])
			b.add(a.cells[at:], padded[:], &a.config, about)
		}
		fields = fields[b.size:]
	}
	if len(fields) > 0 {
		return bad("bytes behind its blocks")
	}
	a.setUnsampled(rest)
	return from, to, nil
}

// SetShifts replaces the Config of an empty aggregator by c, which may differ in
// shifts only. It allocates nothing. The error wraps [estimate.ErrConfig] or
// [estimate.ErrMismatch].
func (a *Aggregator) SetShifts(c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if !a.config.sameButShifts(&c) {
		return fmt.Errorf("lda: %w: %+v and %+v differ in more than shifts", estimate.ErrMismatch, a.config, c)
	}
	if a.config != c {
		a.configure(c)
	}
	return nil
}

// Shifts returns the banks' shifts, for Shifted.
func (c *Config) Shifts() (shifts [MaxBanks]byte) {
	for i, b := range c.Banks {
		shifts[i] = b.Shift
	}
	return shifts
}

// Shifted returns the Config with other shifts. The error wraps
// [estimate.ErrEncoding].
func (c Config) Shifted(shifts []byte) (Config, error) {
	if len(shifts) != len(c.Banks) {
		return c, fmt.Errorf("lda: %w: %d shifts, want %d", estimate.ErrEncoding, len(shifts), len(c.Banks))
	}
	for i := range c.Banks {
		c.Banks[i].Shift = shifts[i]
	}
	if err := c.Validate(); err != nil {
		return c, fmt.Errorf("%w: %w", err, estimate.ErrEncoding)
	}
	return c, nil
}
