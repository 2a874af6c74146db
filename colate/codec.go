package colate

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/wire"
)

// An encoded epoch begins with a record of internal/wire, the head. The blocks
// of counters and of samples follow. SPEC.md describes it byte by byte.
const (
	epochMagic   = "HCLT"
	epochVersion = 7

	fixedSize = 59 // of the head, without overhead and lengths
	foldAt    = 39 // in the record
)

// blocks returns the number of blocks of an epoch, blockSize the number of
// counters in each of them but the last, and blockOf the counters of block i.
func (c *Config) blocks() int { return (c.counters() + blockCounters - 1) / blockCounters }

func (c *Config) blockSize() int { return (c.counters() + c.blocks() - 1) / c.blocks() }

func (c *Config) blockOf(i int) (from, to int) {
	size := c.blockSize()
	return min(i*size, c.counters()), min((i+1)*size, c.counters())
}

// headSize returns the size of the head of an epoch with so many samples.
func (c *Config) headSize(samples int) int {
	return wire.Overhead + fixedSize + 4*(c.blocks()+sampleBlocks(samples))
}

// AppendBinary appends the encoding of the epoch. The error is nil if New has made the
// recorder.
func (r *Recorder) AppendBinary(dst []byte) ([]byte, error) {
	if err := made(r); err != nil {
		return dst, err
	}
	be, c, start := binary.BigEndian, &r.config, len(dst)
	dst = wire.Begin(dst, epochMagic, epochVersion)
	dst = be.AppendUint64(dst, c.Identity)
	dst = be.AppendUint32(dst, uint32(c.Counters))
	dst = be.AppendUint16(dst, uint16(c.PerFlow))
	dst = append(dst, c.Bits, c.CountBits, c.DigestBits, c.Shift)
	dst = be.AppendUint64(dst, uint64(c.Period))
	dst = be.AppendUint32(dst, c.OneIn)
	dst = append(be.AppendUint32(dst, uint32(c.Samples)), c.fold)
	dst = be.AppendUint64(dst, uint64(r.start))
	dst = be.AppendUint64(dst, r.packets)
	dst = be.AppendUint32(dst, r.limit)
	dst = be.AppendUint32(dst, uint32(len(r.samples)))
	lengths, head := len(dst), c.headSize(len(r.samples))
	dst = append(dst, make([]byte, head-(lengths-start))...) // and the checksum
	codec := newBlockCodec(c, r.start)
	words := make([]uint64, c.blockSize())
	for i := range c.blocks() {
		from, to := c.blockOf(i)
		for at := from; at < to; at++ {
			words[at-from] = r.word(at)
		}
		before := len(dst)
		dst = codec.append(dst, words[:to-from])
		be.PutUint32(dst[lengths+4*i:], uint32(len(dst)-before))
	}
	samples, first := r.sorted(), 0
	coder := newSampleCodec(c, r.start, r.limit, len(samples))
	for i := range coder.blocks {
		last, before := first, len(dst)
		for last < len(samples) && sampleBlock(samples[last].flow, coder.blocks) == i {
			last++
		}
		dst = coder.append(dst, samples[first:last])
		be.PutUint32(dst[lengths+4*(c.blocks()+i):], uint32(len(dst)-before))
		first = last
	}
	wire.Seal(dst[:start+head-4], start)
	return dst, nil
}

// MarshalBinary returns the encoding of the epoch, as AppendBinary does.
func (r *Recorder) MarshalBinary() ([]byte, error) { return r.AppendBinary(nil) }

// UnmarshalBinary decodes an epoch of any Config. On error the recorder is unchanged.
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
	n := headLength(data)
	if n == 0 || n > len(data) {
		return nil, fmt.Errorf("%w: the head of an epoch ends early", estimate.ErrEncoding)
	}
	h, err := openHead(data[:n])
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != h.size() {
		return nil, fmt.Errorf("%w: an epoch of %d bytes, want %d", estimate.ErrEncoding, len(data), h.size())
	}
	return h.decode(func(from, to int64) ([]byte, error) { return data[from:to], nil })
}

// A partReader returns a part of an encoded epoch, valid until the next call.
type partReader func(from, to int64) ([]byte, error)

// decode decodes what is behind the head.
func (h *epochHead) decode(read partReader) (*Recorder, error) {
	r := newRecorder(h.config, h.sampled)
	r.start, r.packets, r.limit = h.start, h.packets, h.limit
	if h.packets > 0 {
		r.rare = uint64(h.limit) << 32
	}
	var err error
	var scratch []byte
	for i := range h.config.blocks() {
		from, to := h.config.blockOf(i)
		if scratch, err = h.counters(r.words[from:to], i, read, scratch); err != nil {
			return nil, err
		}
	}
	for i := range h.samples.blocks {
		if r.samples, err = h.samplesOf(r.samples, i, read); err != nil {
			return nil, err
		}
	}
	if len(r.samples) != h.sampled {
		return nil, fmt.Errorf("%w: %d samples, want %d", estimate.ErrEncoding, len(r.samples), h.sampled)
	}
	return r, nil
}

// counters decodes a block of counters into words, and returns scratch for reuse.
func (h *epochHead) counters(words []uint64, block int, read partReader, scratch []byte) ([]byte, error) {
	from, to := h.config.blockOf(block)
	data, err := read(h.offsets[block], h.offsets[block+1])
	if err == nil {
		scratch, err = h.codec.read(words[:to-from], data, scratch)
	}
	if err != nil {
		err = fmt.Errorf("block %d of counters: %w", block, err)
	}
	return scratch, err
}

// samplesOf appends the samples of a block.
func (h *epochHead) samplesOf(dst []sample, block int, read partReader) ([]sample, error) {
	at := h.config.blocks() + block
	data, err := read(h.offsets[at], h.offsets[at+1])
	if err == nil {
		dst, err = h.samples.read(dst, data, block)
	}
	return dst, err
}

// An epochHead is the head of an encoded epoch: its contents, and where they
// are.
type epochHead struct {
	config  Config
	start   int64
	packets uint64
	codec   blockCodec
	limit   uint32
	sampled int
	samples sampleCodec
	offsets []int64 // of the blocks, and the end
}

// size returns that of the whole epoch.
func (h *epochHead) size() int64 { return h.offsets[len(h.offsets)-1] }

// headLength returns the size of the head of the encoded epoch that begins
// with these bytes, or 0.
func headLength(data []byte) int {
	if len(data) < wire.Overhead+fixedSize {
		return 0
	}
	c := Config{Counters: int(min(binary.BigEndian.Uint32(data[13:]), maxCounters+1))}
	samples := int(min(binary.BigEndian.Uint32(data[60:]), maxCounters+1))
	c.fold = min(data[foldAt], maxFold)
	if c.Counters < 1 || c.Counters > maxCounters || samples > maxCounters {
		return 0
	}
	return c.headSize(samples)
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
		Bits:       r.Uint8(),
		CountBits:  r.Uint8(),
		DigestBits: r.Uint8(),
		Shift:      r.Uint8(),
		Period:     int64(r.Uint64()),
		OneIn:      r.Uint32(),
		Samples:    r.Size(),
		fold:       r.Uint8(),
	}}
	c := &h.config
	if err := c.Validate(); err != nil || c.fold > maxFold {
		return nil, fmt.Errorf("%w: %v", estimate.ErrEncoding, err)
	}
	h.start, h.packets = int64(r.Uint64()), r.Uint64()
	if h.start%c.Period != 0 || h.packets == 0 && h.start != 0 {
		return nil, fmt.Errorf("%w: an epoch of %d packets from %d on", estimate.ErrEncoding, h.packets, h.start)
	}
	h.limit, h.sampled = r.Uint32(), r.Size()
	if h.limit > c.limit() || h.sampled > c.Samples {
		return nil, fmt.Errorf("%w: %d samples below %d", estimate.ErrEncoding, h.sampled, h.limit)
	}
	blocks := c.blocks() + sampleBlocks(h.sampled)
	if err := r.Expect(int64(4 * blocks)); err != nil {
		return nil, err
	}
	h.codec = newBlockCodec(c, h.start)
	h.samples = newSampleCodec(c, h.start, h.limit, h.sampled)
	h.offsets = make([]int64, blocks+1)
	h.offsets[0] = int64(len(data))
	for i := range blocks {
		length := int64(r.Uint32())
		// An empty counter takes a bit, so counters take at most 64 times the memory of their encoding.
		if from, to := c.blockOf(i); length < int64(blockOverhead+(to-from+7)/8) {
			return nil, fmt.Errorf("%w: a block of %d counters in %d bytes", estimate.ErrEncoding, to-from, length)
		}
		h.offsets[i+1] = h.offsets[i] + length
	}
	return h, r.Close()
}
