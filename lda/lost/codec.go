package lost

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
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

// bit returns a flag if it is set.
func bit(set bool, flag byte) byte {
	if set {
		return flag
	}
	return 0
}

// AppendTrails appends trails, whose times are multiples of unit.
func AppendTrails(dst []byte, trails []areas.Trail, unit int64) []byte {
	last := int64(0)
	for i := range trails {
		t := &trails[i]
		dst = binary.AppendUvarint(dst, uint64(t.Cell))
		dst = binary.AppendVarint(dst, t.From/unit-last)
		last = t.From / unit
		dst = binary.AppendUvarint(dst, uint64(len(t.Start))<<1|uint64(bit(t.Open, 1)))
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

// A reader reads numbers, and keeps the first error.
type reader struct {
	bytes.Reader
	err error
}

func (r *reader) uvarint() uint64 {
	v, err := binary.ReadUvarint(r)
	r.err = cmp.Or(r.err, err)
	return v
}

func (r *reader) varint() int64 {
	v, err := binary.ReadVarint(r)
	r.err = cmp.Or(r.err, err)
	return v
}

func (r *reader) fixed(size int) (v uint64) {
	for range size {
		b, err := r.ReadByte()
		v, r.err = v<<8|uint64(b), cmp.Or(r.err, err)
	}
	return v
}

// count returns how many things follow, each of at least so many bytes, or none if they
// cannot.
func (r *reader) count(n uint64, size int) int {
	if n > uint64(r.Len()/size) {
		r.err = cmp.Or(r.err, io.ErrUnexpectedEOF)
		return 0
	}
	return int(n)
}

// DecodeTrails decodes what AppendTrails appended, but for the numbers of cuts.
// The error wraps [estimate.ErrEncoding].
func DecodeTrails(data []byte, unit int64) (trails []areas.Trail, err error) {
	const bits = 43 // of a time in units
	farthest := min(1<<bits, math.MaxInt64/unit)
	r, last := reader{Reader: *bytes.NewReader(data)}, int64(0)
	for r.Len() > 0 {
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
		if r.err != nil || max(last, -last, until, -until, end) > farthest {
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
		flags := bit(n.OnWay, flagOnWay) | bit(n.Repeated, flagRepeated) | bit(n.ID != uint64(n.Packet), flagNumber)
		dst = binary.BigEndian.AppendUint64(append(dst, flags), n.ID)
		dst = binary.AppendVarint(dst, n.Sent-trails[n.Trail].From)
	}
	return dst
}

// DecodeNames decodes names of packets of trails. An id that is a number is
// hashed with hash. The error wraps [estimate.ErrEncoding].
func DecodeNames(data []byte, trails []areas.Trail, hash func(number uint64) hashing.Packet) (all Names, err error) {
	r, last := reader{Reader: *bytes.NewReader(data)}, uint64(0)
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
	for r.Len() > 0 {
		last += r.uvarint()
		step := r.varint()
		flags, id := r.fixed(1), r.fixed(8)
		since := r.varint()
		if r.err != nil || last >= uint64(len(trails)) || flags > flagOnWay|flagRepeated|flagNumber {
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
	if r.err != nil {
		return wrong()
	}
	return all, nil
}
