package colate

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/wire"
)

// An encoded epoch is a record of internal/wire:
//
//	magic "HCLT" · version 2
//	Identity 8 · Counters 4 · PerFlow 2 · Bits 1 · CountBits 1 · Shift 1 · TimeBits 1 ·
//	Threshold 8 · Vectors 1
//	first packet 8 · last packet 8
//	for each vector: packets 8 · digest 8 · fill 8
//	for each vector, each counter: Bits bits, most significant first; the last
//	byte is filled up with zeros
//	CRC-32C 4
const (
	epochMagic   = "HCLT"
	epochVersion = 2

	configSize = 27
	spanSize   = 16
	vectorSize = 24
)

// packedSize is how many bytes the counters take.
func (c *Config) packedSize() int64 { return (c.MemoryBits() + 7) / 8 }

// EncodedSize is the size of an encoded epoch in bytes.
func (c *Config) EncodedSize() int64 {
	return wire.Overhead + configSize + spanSize + vectorSize*int64(c.Vectors) + c.packedSize()
}

// AppendBinary appends the encoding of the epoch. It returns no error.
func (e *Epoch) AppendBinary(dst []byte) ([]byte, error) {
	be, c, start := binary.BigEndian, &e.config, len(dst)
	dst = wire.Begin(dst, epochMagic, epochVersion)
	dst = be.AppendUint64(dst, c.Identity)
	dst = be.AppendUint32(dst, uint32(c.Counters))
	dst = be.AppendUint16(dst, uint16(c.PerFlow))
	dst = append(dst, c.Bits, c.CountBits, c.Shift, c.TimeBits)
	dst = be.AppendUint64(dst, c.Threshold)
	dst = append(dst, uint8(c.Vectors))
	dst = be.AppendUint64(dst, uint64(e.first))
	dst = be.AppendUint64(dst, uint64(e.last))
	for _, v := range e.vectors[:c.Vectors] {
		dst = be.AppendUint64(dst, v.Packets)
		dst = be.AppendUint64(dst, v.Digest)
		dst = be.AppendUint64(dst, v.Fill)
	}
	dst = e.appendCells(dst)
	return wire.Seal(dst, start), nil
}

// appendCells packs the counters. Of wide ones the high bits go first, so that
// never more than 32 bits join the 7 that may be waiting for a whole byte.
func (e *Epoch) appendCells(dst []byte) []byte {
	high := max(int(e.config.Bits)-32, 0)
	low := int(e.config.Bits) - high
	var held uint64
	var bits int
	put := func(v uint64, width int) {
		held, bits = held<<width|v&(1<<width-1), bits+width
		for bits >= 8 {
			bits -= 8
			dst = append(dst, byte(held>>bits))
		}
	}
	for at := range e.cells() {
		cell := e.cell(at)
		if high > 0 {
			put(cell>>32, high)
		}
		put(cell, low)
	}
	if bits > 0 {
		put(0, 8-bits)
	}
	return dst
}

// MarshalBinary returns the encoding of the epoch.
func (e *Epoch) MarshalBinary() ([]byte, error) {
	return e.AppendBinary(make([]byte, 0, e.config.EncodedSize()))
}

// UnmarshalBinary decodes an epoch of any Config. On error, which wraps
// [estimate.ErrEncoding], the epoch is unchanged.
func (e *Epoch) UnmarshalBinary(data []byte) error {
	p, err := openEpoch(data)
	if err != nil {
		return err
	}
	*e = *p.unpack()
	return nil
}

// A packedEpoch is an encoded epoch that was checked but not unpacked: a query
// reads a few thousand of its counters.
type packedEpoch struct {
	config      Config
	first, last int64
	vectors     [MaxVectors]Vector
	packed      []byte
}

// openEpoch checks an encoded epoch as a whole. The counters stay in data.
func openEpoch(data []byte) (packedEpoch, error) {
	r, err := wire.Open(data, epochMagic, epochVersion)
	if err != nil {
		return packedEpoch{}, fmt.Errorf("colate: %w", err)
	}
	p := packedEpoch{config: Config{
		Identity:  r.Uint64(),
		Counters:  r.Size(),
		PerFlow:   int(r.Uint16()),
		Bits:      r.Uint8(),
		CountBits: r.Uint8(),
		Shift:     r.Uint8(),
		TimeBits:  r.Uint8(),
		Threshold: r.Uint64(),
		Vectors:   int(r.Uint8()),
	}}
	if err := p.config.Validate(); err != nil {
		return packedEpoch{}, fmt.Errorf("colate: %w: %v", estimate.ErrEncoding, err)
	}
	p.first, p.last = int64(r.Uint64()), int64(r.Uint64())
	for k := range p.config.Vectors {
		p.vectors[k] = Vector{Packets: r.Uint64(), Digest: r.Uint64(), Fill: r.Uint64()}
	}
	var packets uint64
	for _, v := range p.vectors {
		packets += v.Packets
	}
	if empty := p.first == math.MaxInt64 && p.last == math.MinInt64; packets > 0 && p.first > p.last || packets == 0 && !empty {
		return packedEpoch{}, fmt.Errorf("colate: %w: %d packets from %d to %d", estimate.ErrEncoding, packets, p.first, p.last)
	}
	if have, want := int64(r.Len()), p.config.packedSize(); have != want {
		return packedEpoch{}, fmt.Errorf("colate: %w: %d bytes of counters, want %d", estimate.ErrEncoding, have, want)
	}
	p.packed = r.Bytes(r.Len())
	if err := r.Close(); err != nil {
		return packedEpoch{}, fmt.Errorf("colate: %w", err)
	}
	if spare := int64(len(p.packed))*8 - p.config.MemoryBits(); p.packed[len(p.packed)-1]&(1<<spare-1) != 0 {
		return packedEpoch{}, fmt.Errorf("colate: %w: the last byte is not filled up with zeros", estimate.ErrEncoding)
	}
	return p, nil
}

func (p *packedEpoch) unpack() *Epoch {
	e := newEpoch(p.config)
	e.first, e.last, e.vectors = p.first, p.last, p.vectors
	for at := range e.cells() {
		e.setCell(at, p.cell(at))
	}
	return e
}

func (p *packedEpoch) cell(at int) uint64 {
	return readBits(p.packed, int64(at)*int64(p.config.Bits), int(p.config.Bits))
}

// readBits reads width bits, 1 to 63, most significant first, from bit on.
func readBits(b []byte, bit int64, width int) uint64 {
	b = b[bit/8:]
	skip := int(bit % 8)
	if len(b) > 8 {
		v := binary.BigEndian.Uint64(b)<<skip | uint64(b[8])>>(8-skip)
		return v >> (64 - width)
	}
	var last [9]byte
	copy(last[:], b)
	return readBits(last[:], int64(skip), width)
}
