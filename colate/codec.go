package colate

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/wire"
)

// An encoded epoch begins with a record of internal/wire, the head. Blocks of rows follow, each of which can be read alone: SPEC.md
// describes it byte by byte. A row is a counter, of blockCounters in a block, or a sample. The sum of the times of n packets is
// close to n times the middle of the epoch, and what is left has some log2(Period) + log2(n)/2 bits.
const (
	epochMagic   = "HCLT"
	epochVersion = 8

	fixedSize = 59 // of the head, without overhead and lengths

	blockCounters = 256
	blockHead     = 6
	blockOverhead = blockHead + 4
	maxOnes       = 24
)

// blocks returns the number of blocks of an epoch, blockSize the number of
// counters in each of them but the last, and blockOf the counters of block i.
func (c *Config) blocks() int { return (c.counters() + blockCounters - 1) / blockCounters }

func (c *Config) blockSize() int { return (c.counters() + c.blocks() - 1) / c.blocks() }

func (c *Config) blockOf(i int) (from, to int) {
	size := c.blockSize()
	return min(i*size, c.counters()), min((i+1)*size, c.counters())
}

// headSize returns the size of the head of an epoch with a number of samples.
func (c *Config) headSize(samples int) int {
	return wire.Overhead + fixedSize + 4*(c.blocks()+sampleBlocks(samples))
}

// AppendBinary appends the encoding of the epoch. The error is always nil.
func (r *Recorder) AppendBinary(dst []byte) ([]byte, error) {
	made(r)
	be, c, start := binary.BigEndian, &r.config, len(dst)
	h := epochHead{config: r.config, start: r.start, limit: r.limit}
	h.codecs()
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
	samples := slices.Clone(r.samples)
	slices.SortFunc(samples, func(a, b sample) int {
		return cmp.Or(cmp.Compare(a.flow, b.flow), cmp.Compare(a.at>>c.Shift, b.at>>c.Shift), cmp.Compare(a.tag, b.tag))
	})
	rows := make([]row, 0, c.blockSize())
	for i := range c.blocks() + sampleBlocks(len(r.samples)) {
		codec, before := &h.counters, len(dst)
		rows = rows[:0]
		from, to := c.blockOf(i)
		for at := from; at < to; at++ {
			rows = append(rows, h.split(r.word(at)))
		}
		if block := i - c.blocks(); block >= 0 {
			codec = &h.samples
			blocks := sampleBlocks(len(r.samples))
			last, end := firstKey(block, blocks), firstKey(block+1, blocks)
			for ; len(samples) > 0 && uint64(samples[0].flow) < end; samples = samples[1:] {
				s := samples[0]
				rows = append(rows, row{uint64(s.flow) - last, uint64(s.tag), wire.Zigzag(s.at>>c.Shift - h.start>>c.Shift)})
				last = uint64(s.flow)
			}
		}
		dst = codec.append(dst, rows)
		be.PutUint32(dst[lengths+4*i:], uint32(len(dst)-before))
	}
	wire.Seal(dst[:start+head-4], start)
	return dst, nil
}

// MarshalBinary returns the encoding of the epoch, as AppendBinary does.
func (r *Recorder) MarshalBinary() ([]byte, error) { return r.AppendBinary(nil) }

// UnmarshalBinary decodes an epoch of any Config. On error the recorder is unchanged.
func (r *Recorder) UnmarshalBinary(data []byte) error {
	var h epochHead
	err := h.open(data)
	if err == nil && h.size() != int64(len(data)) {
		err = fmt.Errorf("%w: an epoch of %d bytes, want %d", estimate.ErrEncoding, len(data), h.size())
	}
	var decoded *Recorder
	if err == nil {
		decoded, err = h.decode(&epochReader{file: bytes.NewReader(data)})
	}
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

func (h *epochHead) decode(b *epochReader) (r *Recorder, err error) {
	r = newRecorder(h.config, h.sampled)
	r.start, r.packets, r.limit = h.start, h.packets, h.limit
	if h.packets > 0 {
		r.rare = uint64(h.limit) << 32
	}
	r.words = r.words[:0]
	for i := 0; i < h.config.blocks() && err == nil; i++ {
		r.words, err = h.readCounters(r.words, i, b)
	}
	for i := 0; i < sampleBlocks(h.sampled) && err == nil; i++ {
		r.samples, err = h.readSamples(r.samples, i, b)
	}
	if err == nil && len(r.samples) != h.sampled {
		err = fmt.Errorf("%w: %d samples, want %d", estimate.ErrEncoding, len(r.samples), h.sampled)
	}
	return r, err
}

func (h *epochHead) read(block int, c *blockCodec, b *epochReader, least, most int) error {
	data, err := b.part(h.offsets[block], h.offsets[block+1])
	if err == nil {
		err = c.read(b, data, least, most)
	}
	if err != nil {
		err = fmt.Errorf("block %d: %w", block, err)
	}
	return err
}

// readCounters and readSamples append what a block holds.
func (h *epochHead) readCounters(dst []uint64, block int, b *epochReader) ([]uint64, error) {
	from, to := h.config.blockOf(block)
	err := h.read(block, &h.counters, b, to-from, to-from)
	for i := 0; i < to-from && err == nil; i++ {
		dst = append(dst, h.join(b.rows[i]))
	}
	return dst, err
}

func (h *epochHead) readSamples(dst []sample, block int, b *epochReader) ([]sample, error) {
	err := h.read(h.config.blocks()+block, &h.samples, b, 0, h.sampled-len(dst))
	if err != nil {
		return dst, err
	}
	blocks, shift := sampleBlocks(h.sampled), h.config.Shift
	flow, end := firstKey(block, blocks), firstKey(block+1, blocks)
	for _, x := range b.rows {
		if flow += x.number; flow >= end {
			return dst, fmt.Errorf("%w: block %d of samples holds others", estimate.ErrEncoding, block)
		}
		dst = append(dst, sample{uint32(flow), uint32(x.digest), (h.start>>shift + wire.Unzigzag(x.time)) << shift})
	}
	return dst, nil
}

// An epochHead is the head of an encoded epoch: its contents, and where they are.
type epochHead struct {
	config            Config
	start             int64
	packets           uint64
	limit             uint32
	sampled           int
	counters, samples blockCodec
	offsets           []int64 // of the blocks, and the end
}

func (h *epochHead) size() int64 { return h.offsets[len(h.offsets)-1] }

// codecs fills in those of the blocks, from what else is known.
func (h *epochHead) codecs() {
	c := &h.config
	h.counters = blockCodec{true, int(c.CountBits), int(c.DigestBits), int(c.sumBits())}
	h.samples = blockCodec{false, 32, bits.Len32(max(h.limit, 1) - 1), 64}
}

// split splits a counter's word into its count as encoded, its digest, and what is left of its sum.
func (h *epochHead) split(word uint64) (r row) {
	c := &h.config
	if word == 0 {
		return r
	}
	if r.number = word & (1<<c.CountBits - 1); r.number == 0 {
		r.number = 1 << c.CountBits
	}
	r.digest = word >> c.CountBits & (1<<c.DigestBits - 1)
	r.time = wire.Zigzag(estimate.SignExtend(word>>c.lowBits()-h.expected(r.number), int(c.sumBits())))
	return r
}

// join returns the word that split took apart.
func (h *epochHead) join(r row) uint64 {
	c := &h.config
	sum := (uint64(wire.Unzigzag(r.time)) + h.expected(r.number)) & (1<<c.sumBits() - 1)
	return sum<<c.lowBits() | r.digest<<c.CountBits | r.number&(1<<c.CountBits-1)
}

// expected returns the sum that this number of packets would have in the middle of the epoch, including the carry from their digests.
func (h *epochHead) expected(count uint64) uint64 {
	return count*uint64((h.start+h.config.Period/2)>>h.config.Shift) + count/2
}

// open reads the head of the encoded epoch that begins with these bytes. Blocks that are too short for what they
// hold are an error, too, before anything is allocated for it.
func (h *epochHead) open(data []byte) error {
	r := wire.NewReader(data[min(wire.Overhead-4, len(data)):])
	*h = epochHead{config: Config{
		Identity: r.Uint64(), Counters: r.Size(), PerFlow: int(r.Uint16()), Bits: r.Uint8(), CountBits: r.Uint8(),
		DigestBits: r.Uint8(), Shift: r.Uint8(), Period: int64(r.Uint64()), OneIn: r.Uint32(), Samples: r.Size(), fold: r.Uint8(),
	}, start: int64(r.Uint64()), packets: r.Uint64(), limit: r.Uint32(), sampled: r.Size(), offsets: h.offsets[:0]}
	c, size := &h.config, len(data)+1
	wrong := c.Validate()
	if wrong == nil && (c.fold > maxFold || h.start%c.Period != 0 || h.packets == 0 && h.start != 0 ||
		h.limit > c.limit() || h.sampled > c.Samples) {
		wrong = fmt.Errorf("%d packets from %d on, %d samples below %d, folds %d", h.packets, h.start, h.sampled, h.limit, c.fold)
	} else if wrong == nil {
		size = c.headSize(h.sampled)
	}
	if _, err := wire.Open(data[:min(size, len(data))], epochMagic, epochVersion); err != nil {
		return err
	}
	if size > len(data) {
		return fmt.Errorf("%w: a head of %d bytes: %v", estimate.ErrEncoding, len(data), wrong)
	}
	h.codecs()
	h.offsets = append(slices.Grow(h.offsets, c.blocks()+sampleBlocks(h.sampled)+1), int64(size))
	for i := range c.blocks() + sampleBlocks(h.sampled) {
		length := int64(r.Uint32())
		if from, to := c.blockOf(i); length < int64(blockOverhead+(to-from+7)/8) {
			return fmt.Errorf("%w: a block of %d counters in %d bytes", estimate.ErrEncoding, to-from, length)
		}
		h.offsets = append(h.offsets, h.offsets[i]+length)
	}
	// An empty counter takes a bit, so counters take at most 64 times the memory of their encoding. A sample takes a
	// bit and its tag: without tags 128 times, and 192 more while they are read, if all are in one block.
	room := h.size() - h.offsets[c.blocks()] - blockOverhead*int64(sampleBlocks(h.sampled))
	if least := int64(h.sampled) * int64(1+h.samples.digestBits); room < (least+7)/8 {
		return fmt.Errorf("%w: %d samples in %d bytes", estimate.ErrEncoding, h.sampled, room)
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A row is a small number (of packets, or the distance of a flow from the one before), a digest or a tag, and a time near 0.
type row struct{ number, digest, time uint64 }

// A blockCodec knows the widths of rows. A counter without packets has the number alone, and the time grows with the number.
type blockCodec struct {
	counters                         bool
	numberBits, digestBits, timeBits int
}

func (b *blockCodec) timeWidth(base int, number uint64) int {
	if b.counters {
		base += (bits.Len64(number) + 1) / 2
	}
	return min(b.timeBits, base)
}

func (b *blockCodec) append(dst []byte, rows []row) []byte {
	var total uint64
	base, from := 0, len(dst)
	for _, r := range rows {
		total += r.number
		if need, has := bits.Len64(r.time), b.timeWidth(0, r.number); need > has+base {
			base = need - has
		}
	}
	k := min(max(bits.Len64(total/uint64(max(len(rows), 1))), 1)-1, b.numberBits)
	w := wire.NewBitWriter(append(binary.BigEndian.AppendUint32(dst, uint32(len(rows))), byte(k), byte(base)))
	for _, r := range rows {
		if ones := r.number >> k; ones < maxOnes {
			w.Put(1<<(ones+1)-2, int(ones)+1)
			w.Put(r.number&(1<<k-1), k)
		} else {
			w.Put(1<<maxOnes-1, maxOnes)
			w.Put(r.number, b.numberBits+1)
		}
		if !b.counters || r.number > 0 {
			w.Put(r.digest, b.digestBits)
			w.Put(r.time, b.timeWidth(base, r.number))
		}
	}
	return wire.Seal(w.Bytes(), from)
}

// read reads a block of the given number of rows, and checks its checksum. The error wraps [estimate.ErrEncoding].
func (b *blockCodec) read(to *epochReader, data []byte, least, most int) error {
	end := len(data) - 4
	if end < blockHead || crc32.Checksum(data[:end], castagnoli) != binary.BigEndian.Uint32(data[end:]) {
		return fmt.Errorf("%w: checksum", estimate.ErrEncoding)
	}
	n, k, base := int(binary.BigEndian.Uint32(data)), int(data[4]), int(data[5])
	limit := 8 * (end - blockHead)
	if n < least || n > most || n > limit { // a row has a bit
		return fmt.Errorf("%w: %d rows in %d bytes, want %d to %d", estimate.ErrEncoding, n, len(data), least, most)
	}
	data = data[blockHead : len(data)+rowRoom]
	at, ok := 0, k <= b.numberBits && base <= 64
	to.rows = slices.Grow(to.rows[:0], n)
	for ; ok && n > 0; n-- {
		var x row
		if ones := bits.LeadingZeros64(^wire.Bits(data, at, 64)); ones < maxOnes {
			at += ones + 1
			x.number = uint64(ones)<<k | wire.Bits(data, at, k)
			at += k
		} else {
			at += maxOnes
			x.number = wire.Bits(data, at, b.numberBits+1)
			at += b.numberBits + 1
		}
		if !b.counters || x.number > 0 {
			x.digest = wire.Bits(data, at, b.digestBits)
			at += b.digestBits
			width := b.timeWidth(base, x.number)
			x.time = wire.Bits(data, at, width)
			at += width
		}
		ok = x.number <= 1<<b.numberBits && at <= limit
		to.rows = append(to.rows, x)
	}
	if spare := limit - at; !ok || spare >= 8 || wire.Bits(data, at, spare) != 0 {
		return fmt.Errorf("%w: rows", estimate.ErrEncoding)
	}
	return nil
}
