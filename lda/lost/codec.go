package lost

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/hashing"
)

// Trails and names travel without a frame; whatever carries them has a checksum.
// Numbers are varints, as in package encoding/binary, digests and ids big-endian.
// Times of cuts are multiples of a unit, each relative to the one before.
//
//	trails   for each: cell, from, 2 × length of start + 1 if it is open, number of steps, until;
//	         of start: digest 4, age in ns; of steps: end, sent, outstanding, digest 4
//	names    left; number of known, each relative to the one before;
//	         for each: trail relative to the one before, step, flags 1, id 8, time in ns since the trail began
const (
	leastTrail, leastStart, leastStep = 5, 5, 7 // bytes
	leastName                         = 12
)

const flagOnWay, flagRepeated, flagNumber = 1, 2, 4

// AppendTrails appends trails, whose times are multiples of unit.
func AppendTrails(dst []byte, trails []areas.Trail, unit int64) []byte {
	last := int64(0)
	for i := range trails {
		t := &trails[i]
		dst = binary.AppendUvarint(dst, uint64(t.Cell))
		dst = binary.AppendVarint(dst, t.From/unit-last)
		last = t.From / unit
		open := uint64(0)
		if t.Open {
			open = 1
		}
		dst = binary.AppendUvarint(dst, uint64(len(t.Start))<<1|open)
		dst = binary.AppendUvarint(dst, uint64(len(t.Steps)))
		dst = binary.AppendVarint(dst, t.Until/unit-last)
		for j := range t.Start {
			dst = binary.BigEndian.AppendUint32(dst, t.Start[j].Digest)
			dst = binary.AppendVarint(dst, t.From-t.Start[j].Sent)
		}
		end := last
		for _, s := range t.Steps {
			dst = binary.AppendUvarint(dst, uint64(s.End/unit-end))
			end = s.End / unit
			dst = binary.AppendUvarint(dst, uint64(s.Sent))
			dst = binary.AppendUvarint(dst, uint64(s.Outstanding))
			dst = binary.BigEndian.AppendUint32(dst, s.Digest)
		}
	}
	return dst
}

// A reader reads numbers. After the first error it reads zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	return r.skip(v, n)
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	return int64(r.skip(uint64(v), n))
}

func (r *reader) fixed(size int) (v uint64) {
	if len(r.b) < size {
		return r.skip(0, 0)
	}
	for _, c := range r.b[:size] {
		v = v<<8 | uint64(c)
	}
	return r.skip(v, size)
}

func (r *reader) skip(v uint64, n int) uint64 {
	if n <= 0 || r.bad {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads how many things follow of at least so many bytes.
func (r *reader) count(n uint64, size int) int {
	if n > uint64(len(r.b)/size) {
		r.bad, r.b = true, nil
		return 0
	}
	return int(n)
}

// DecodeTrails decodes what AppendTrails appended, but for the numbers of cuts.
// The error wraps [estimate.ErrEncoding].
func DecodeTrails(data []byte, unit int64) (trails []areas.Trail, err error) {
	const bits = 43 // of a time in units
	farthest := min(1<<bits, math.MaxInt64/unit)
	r, last := reader{b: data}, int64(0)
	for len(r.b) > 0 {
		t := areas.Trail{Cell: int(r.uvarint() & (1<<31 - 1))}
		last += r.varint()
		start := r.uvarint()
		steps := r.uvarint()
		until := last + r.varint()
		t.From, t.Open, t.Until = last*unit, start&1 != 0, until*unit
		for range r.count(start>>1, leastStart) {
			t.Start = append(t.Start, areas.Lost{Cell: t.Cell, Digest: uint32(r.fixed(4)), Sent: t.From - r.varint()})
		}
		end := last
		for range r.count(steps, leastStep) {
			end += int64(r.uvarint() & (1<<bits - 1))
			t.Steps = append(t.Steps, areas.TrailStep{
				End: end * unit, Sent: uint32(r.uvarint()), Outstanding: uint32(r.uvarint()), Digest: uint32(r.fixed(4)),
			})
		}
		if r.bad || max(last, -last, until, -until, end) > farthest {
			return nil, fmt.Errorf("lost: %w: trail %d", estimate.ErrEncoding, len(trails))
		}
		trails = append(trails, t)
	}
	return trails, nil
}

// Append appends names of packets of trails.
func (n *Names) Append(dst []byte, trails []areas.Trail) []byte {
	dst = binary.AppendUvarint(dst, uint64(n.Left))
	dst = binary.AppendUvarint(dst, uint64(len(n.Known)))
	last := 0
	for _, i := range n.Known {
		dst = binary.AppendUvarint(dst, uint64(i-last))
		last = i
	}
	last = 0
	for i := range n.Names {
		n := &n.Names[i]
		dst = binary.AppendUvarint(dst, uint64(n.Trail-last))
		last = n.Trail
		dst = binary.AppendVarint(dst, int64(n.Step))
		flags := byte(0)
		if n.OnWay {
			flags |= flagOnWay
		}
		if n.Repeated {
			flags |= flagRepeated
		}
		if n.ID != uint64(n.Packet) {
			flags |= flagNumber
		}
		dst = binary.BigEndian.AppendUint64(append(dst, flags), n.ID)
		dst = binary.AppendVarint(dst, n.Sent-trails[n.Trail].From)
	}
	return dst
}

// DecodeNames decodes names of packets of trails. An id that is a number is
// hashed with hash. The error wraps [estimate.ErrEncoding].
func DecodeNames(data []byte, trails []areas.Trail, hash func(number uint64) hashing.Packet) (all Names, err error) {
	r, last := reader{b: data}, uint64(0)
	all.Left = int(r.uvarint() & (1<<31 - 1))
	wrong := func() (Names, error) {
		return Names{}, fmt.Errorf("lost: %w: name %d", estimate.ErrEncoding, len(all.Names))
	}
	for i := range r.count(r.uvarint(), 1) {
		if last += r.uvarint(); last >= uint64(len(trails)) || i > 0 && int(last) == all.Known[i-1] {
			return wrong()
		}
		all.Known = append(all.Known, int(last))
	}
	last = 0
	for len(r.b) > 0 {
		last += r.uvarint()
		step := r.varint()
		flags, id := r.fixed(1), r.fixed(8)
		since := r.varint()
		if r.bad || last >= uint64(len(trails)) || flags > flagOnWay|flagRepeated|flagNumber {
			return wrong()
		}
		t := &trails[last]
		if step >= int64(len(t.Steps)) || ^step >= int64(len(t.Start)) {
			return wrong()
		}
		n := Name{Trail: int(last), Step: int(step), ID: id, Packet: hashing.Packet(id), Sent: t.From + since,
			OnWay: flags&flagOnWay != 0, Repeated: flags&flagRepeated != 0}
		if flags&flagNumber != 0 {
			n.Packet = hash(id)
		}
		all.Names = append(all.Names, n)
	}
	if r.bad {
		return wrong()
	}
	return all, nil
}
