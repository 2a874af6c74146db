package colate

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/wire"
)

// An encoded epoch begins with a record of internal/wire, the head:
//
//	magic "HCLT" · version 4
//	Identity 8 · Counters 4 · PerFlow 2 · Thin 1 · Bits 1 · CountBits 1 · DigestBits 1 · Shift 1 · Period 8
//	start of the epoch 8 · packets 8
//	for each block: its length 2
//	CRC-32C 4
//
// The blocks follow (block.go), one after another. There are as many as needed
// for none to have more than 256 counters. All have the same size but the
// last.
const (
	epochMagic   = "HCLT"
	epochVersion = 4

	fixedSize = 43 // of the head, without overhead and lengths
)

// blocks returns the number of blocks of an epoch, blockSize the number of
// counters in each of them but the last, and blockOf the counters of block i.
func (c *Config) blocks() int { return (c.Counters + blockCounters - 1) / blockCounters }

func (c *Config) blockSize() int { return (c.Counters + c.blocks() - 1) / c.blocks() }

func (c *Config) blockOf(i int) (from, to int) {
	size := c.blockSize()
	return min(i*size, c.Counters), min((i+1)*size, c.Counters)
}

// headSize returns the size of an encoded epoch's head.
func (c *Config) headSize() int { return wire.Overhead + fixedSize + 2*c.blocks() }

// AppendBinary appends the encoding of the epoch. The error is always nil.
func (r *Recorder) AppendBinary(dst []byte) ([]byte, error) {
	be, c, start := binary.BigEndian, &r.config, len(dst)
	dst = wire.Begin(dst, epochMagic, epochVersion)
	dst = be.AppendUint64(dst, c.Identity)
	dst = be.AppendUint32(dst, uint32(c.Counters))
	dst = be.AppendUint16(dst, uint16(c.PerFlow))
	dst = append(dst, c.Thin, c.Bits, c.CountBits, c.DigestBits, c.Shift)
	dst = be.AppendUint64(dst, uint64(c.Period))
	dst = be.AppendUint64(dst, uint64(r.start))
	dst = be.AppendUint64(dst, r.packets)
	lengths := len(dst)
	dst = append(dst, make([]byte, c.headSize()-(lengths-start))...) // and the checksum
	codec := newBlockCodec(c, r.start)
	words := make([]uint64, c.blockSize())
	for i := range c.blocks() {
		from, to := c.blockOf(i)
		for at := from; at < to; at++ {
			words[at-from] = r.word(at)
		}
		before := len(dst)
		dst = codec.append(dst, words[:to-from])
		be.PutUint16(dst[lengths+2*i:], uint16(len(dst)-before))
	}
	wire.Seal(dst[:start+c.headSize()-4], start)
	return dst, nil
}

// MarshalBinary returns the encoding of the epoch. The error is always nil.
func (r *Recorder) MarshalBinary() ([]byte, error) { return r.AppendBinary(nil) }

// UnmarshalBinary decodes an epoch of any Config. On error, which wraps
// [estimate.ErrEncoding], the recorder is unchanged.
func (r *Recorder) UnmarshalBinary(data []byte) error {
	decoded, err := decodeEpoch(data)
	if err != nil {
		return fmt.Errorf("colate: %w", err)
	}
	// Every state has exactly one encoding.
	if again, _ := decoded.AppendBinary(make([]byte, 0, len(data))); !bytes.Equal(again, data) {
		return fmt.Errorf("colate: %w: not the canonical encoding of an epoch", estimate.ErrEncoding)
	}
	*r = *decoded
	return nil
}

// decodeEpoch decodes an epoch and checks everything that checksums protect.
func decodeEpoch(data []byte) (*Recorder, error) {
	h, err := openEpoch(data)
	if err != nil {
		return nil, err
	}
	decoded := newRecorder(h.config)
	decoded.start, decoded.packets = h.start, h.packets
	var scratch []byte
	for i := range h.config.blocks() {
		from, to := h.config.blockOf(i)
		if scratch, err = h.codec.read(decoded.words[from:to], data[h.offsets[i]:h.offsets[i+1]], scratch); err != nil {
			return nil, err
		}
	}
	return decoded, nil
}

// An epochHead is the head of an encoded epoch: its contents, and where they
// are.
type epochHead struct {
	config  Config
	start   int64
	packets uint64
	codec   blockCodec
	offsets []int64 // of the blocks, and the end
}

// headLength returns the size of the head of the encoded epoch that begins
// with these bytes, or 0.
func headLength(data []byte) int {
	if len(data) < wire.Overhead+fixedSize {
		return 0
	}
	c := Config{Counters: int(min(binary.BigEndian.Uint32(data[13:]), MaxCounters+1))}
	if c.Counters < 1 || c.Counters > MaxCounters {
		return 0
	}
	return c.headSize()
}

// openEpoch reads the head of an encoded epoch and checks its length. It does
// not look at the blocks.
func openEpoch(data []byte) (*epochHead, error) {
	n := headLength(data)
	if n == 0 || n > len(data) {
		return nil, fmt.Errorf("%w: the head of an epoch ends early", estimate.ErrEncoding)
	}
	h, err := openHead(data[:n])
	if err != nil {
		return nil, err
	}
	if have, want := int64(len(data)), h.offsets[len(h.offsets)-1]; have != want {
		return nil, fmt.Errorf("%w: an epoch of %d bytes, want %d", estimate.ErrEncoding, have, want)
	}
	return h, nil
}

// openHead reads the head of an encoded epoch. The error says too if a block is
// too short for its counters, before anything is allocated for them.
func openHead(data []byte) (*epochHead, error) {
	r, err := wire.Open(data, epochMagic, epochVersion)
	if err != nil {
		return nil, err
	}
	h := &epochHead{config: Config{
		Identity:   r.Uint64(),
		Counters:   r.Size(),
		PerFlow:    int(r.Uint16()),
		Thin:       r.Uint8(),
		Bits:       r.Uint8(),
		CountBits:  r.Uint8(),
		DigestBits: r.Uint8(),
		Shift:      r.Uint8(),
		Period:     int64(r.Uint64()),
	}}
	c := &h.config
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %v", estimate.ErrEncoding, err)
	}
	h.start, h.packets = int64(r.Uint64()), r.Uint64()
	if h.start%c.Period != 0 || h.packets == 0 && h.start != 0 {
		return nil, fmt.Errorf("%w: an epoch of %d packets from %d on", estimate.ErrEncoding, h.packets, h.start)
	}
	if err := r.Expect(int64(2 * c.blocks())); err != nil {
		return nil, err
	}
	h.codec = newBlockCodec(c, h.start)
	h.offsets = make([]int64, c.blocks()+1)
	h.offsets[0] = int64(len(data))
	for i := range c.blocks() {
		length := int64(r.Uint16())
		// An empty counter takes a bit, so counters take at most 64 times the memory of their encoding.
		if from, to := c.blockOf(i); length < int64(blockOverhead+(to-from+7)/8) {
			return nil, fmt.Errorf("%w: a block of %d counters in %d bytes", estimate.ErrEncoding, to-from, length)
		}
		h.offsets[i+1] = h.offsets[i] + length
	}
	return h, r.Close()
}
