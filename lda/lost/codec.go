package lost

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/wire"
)

// Trails and names travel without a frame; whatever carries them has a checksum. Numbers are varints, signed
// ones zigzag, digests and ids big-endian. Section 4.10 of SPEC.md has the fields.
const (
	leastStep = 7 // bytes

	flagRepeated, flagNumber = 1, 2

	timeBits = 43 // of a time in units
)

// A coder appends fields to data, or reads them. Its methods take a value and return what the field then has.
type coder struct {
	wire.Reader
	reads bool
	data  []byte
}

func (c *coder) number(v uint64) uint64 {
	if c.reads {
		return c.Uvarint()
	}
	c.data = binary.AppendUvarint(c.data, v)
	return v
}

func (c *coder) signed(v int64) int64 { return wire.Unzigzag(c.number(wire.Zigzag(v))) }

func (c *coder) fixed(v uint64, bytes int) uint64 {
	if c.reads {
		return c.Uint(bytes)
	}
	c.data = wire.AppendUint(c.data, v, bytes)
	return v
}

func flag(set bool, flag uint64) uint64 {
	if set {
		return flag
	}
	return 0
}

// steps returns room for the steps that follow. If they cannot, the reading has failed.
func (c *coder) steps(n uint64) (all []areas.TrailStep) {
	if n > uint64(c.Len()/leastStep) {
		c.Bytes(-1)
	} else if n > 0 {
		all = make([]areas.TrailStep, n)
	}
	return all
}

// trail codes a trail that begins some units after another, and reports whether it can be.
func (c *coder) trail(t *areas.Trail, last *int64, unit int64) bool {
	t.Cell = int(c.number(uint64(t.Cell)) & math.MaxInt32)
	from := *last + c.signed(t.From/unit-*last)
	open := c.number(flag(t.Open, 1))
	steps := c.number(uint64(len(t.Steps)))
	until := from + c.signed(t.Until/unit-from)
	if c.reads {
		t.From, t.Until, t.Open, t.Steps = from*unit, until*unit, open != 0, c.steps(steps)
	}
	end := from
	for i := range t.Steps {
		s := &t.Steps[i]
		end += int64(c.number(uint64(s.End/unit-end)) & (1<<timeBits - 1))
		s.End, s.Sent, s.Outstanding = end*unit, uint32(c.number(uint64(s.Sent))), uint32(c.number(uint64(s.Outstanding)))
		s.Digest = uint32(c.fixed(uint64(s.Digest), 4))
	}
	*last = from
	return open <= 1 && max(from, -from, until, -until, end) <= min(1<<timeBits, math.MaxInt64/unit)
}

// AppendTrails appends the encoding of trails, whose times are multiples of unit, to dst.
func AppendTrails(dst []byte, trails []areas.Trail, unit int64) []byte {
	c, last := coder{data: dst}, int64(0)
	for _, t := range trails {
		t.Steps = slices.Clone(t.Steps)
		c.trail(&t, &last, unit)
	}
	return c.data
}

// DecodeTrails decodes what AppendTrails appended, except for the numbers of cuts. The error wraps [estimate.ErrEncoding].
func DecodeTrails(data []byte, unit int64) (trails []areas.Trail, err error) {
	c, last, ok := coder{Reader: wire.NewReader(data), reads: true}, int64(0), true
	for c.Len() > 0 && ok {
		var t areas.Trail
		ok = c.trail(&t, &last, unit)
		trails = append(trails, t)
	}
	if !ok || c.Close() != nil {
		return nil, fmt.Errorf("lost: %w: trail %d", estimate.ErrEncoding, len(trails))
	}
	return trails, nil
}

// place codes the number of a trail that comes after another.
func (c *coder) place(i int, last *int) int {
	*last += int(min(c.number(uint64(i-*last)), 1<<30))
	return *last
}

// name codes a name of a packet of one of the trails, and reports whether its id is a number, and whether it can be.
func (c *coder) name(n *Name, last *int, trails []areas.Trail) (number, ok bool) {
	if n.Trail = c.place(n.Trail, last); n.Trail >= len(trails) {
		return false, false
	}
	t, step := &trails[n.Trail], c.signed(int64(n.Step))
	n.Step = int(step)
	flags := c.fixed(flag(n.Repeated, flagRepeated)|flag(n.ID != uint64(n.Packet), flagNumber), 1)
	n.ID = c.fixed(n.ID, 8)
	n.Sent = t.From + c.signed(n.Sent-t.From)
	n.Repeated = flags&flagRepeated != 0
	if number = flags&flagNumber != 0; !number {
		n.Packet = hashing.Packet(n.ID)
	}
	return number, step >= 0 && step < int64(len(t.Steps)) && flags&^(flagRepeated|flagNumber) == 0
}

// Append appends the encoding of names of packets of trails to dst.
func (n *Names) Append(dst []byte, trails []areas.Trail) []byte {
	c, last := coder{data: dst}, 0
	for _, name := range n.Names {
		c.name(&name, &last, trails)
	}
	return c.data
}

// DecodeNames decodes the names of packets in trails. An id that is a number is
// hashed with hash. The error wraps [estimate.ErrEncoding].
func DecodeNames(data []byte, trails []areas.Trail, hash func(number uint64) hashing.Packet) (all Names, err error) {
	c, last, ok := coder{Reader: wire.NewReader(data), reads: true}, 0, true
	for c.Len() > 0 && ok {
		n, number := Name{}, false
		if number, ok = c.name(&n, &last, trails); number && ok {
			n.Packet = hash(n.ID)
		}
		all.Names = append(all.Names, n)
	}
	if !ok || c.Close() != nil {
		return Names{}, fmt.Errorf("lost: %w: name %d", estimate.ErrEncoding, len(all.Names))
	}
	return all, nil
}
