package colate

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// A sample is one packet, kept by itself.
type sample struct {
	flow uint32 // its key
	tag  uint32 // below the recorder's limit
	at   int64
}

// key returns the bits by which samples of a flow are found. Flows may be small
// numbers.
func (c *Config) key(f hashing.Flow) uint32 {
	return uint32(hashing.Mix(uint64(f)^c.Identity, 1<<32) >> 32)
}

// tagOf returns the bits of a packet that decide whether it is sampled, and tell
// it from others: both points sample alike.
func tagOf(p hashing.Packet) uint32 { return uint32(p >> 32) }

// limit returns the tag from which on packets are not sampled.
func (c *Config) limit() uint32 {
	if c.OneIn == 0 {
		return 0
	}
	return uint32(min(1<<32/uint64(c.OneIn), 1<<32-1))
}

// sample keeps a packet whose tag is below the limit, if need be after making
// room.
func (r *Recorder) sample(s sample) {
	if len(r.samples) >= r.config.Samples {
		r.makeRoom()
	}
	if s.tag < r.limit {
		r.samples = append(r.samples, s)
	}
}

// makeRoom forgets copies of a packet but for two, and then packets beyond half the limit.
func (r *Recorder) makeRoom() {
	slices.SortFunc(r.samples, compareSamples)
	kept := r.samples[:0]
	for _, s := range r.samples {
		if n := len(kept); n < 2 || kept[n-2].flow != s.flow || kept[n-2].tag != s.tag {
			kept = append(kept, s)
		}
	}
	r.samples = kept
	for len(r.samples) > r.config.Samples*3/4 {
		r.limitTo(r.limit / 2)
	}
}

func compareSamples(a, b sample) int {
	return cmp.Or(cmp.Compare(a.flow, b.flow), cmp.Compare(a.tag, b.tag), cmp.Compare(a.at, b.at))
}

func (r *Recorder) limitTo(limit uint32) {
	r.limit, r.rare = limit, uint64(limit)<<32
	r.samples = slices.DeleteFunc(r.samples, func(s sample) bool { return s.tag >= limit })
}

// sampleBlocks returns the number of blocks for so many samples. A flow's
// samples are in one block, which its hash says.
func sampleBlocks(samples int) int { return (samples + blockCounters - 1) / blockCounters }

func sampleBlock(flow uint32, blocks int) int { return int(uint64(flow) * uint64(blocks) >> 32) }

// A sampleCodec encodes blocks of samples, as SPEC.md describes.
type sampleCodec struct {
	k, tagBits, shift uint
	start             int64
	blocks            int
}

func newSampleCodec(c *Config, start int64, limit uint32, samples int) sampleCodec {
	return sampleCodec{
		k: uint(32 - bits.Len32(uint32(max(samples-1, 0)))), tagBits: uint(bits.Len32(max(limit, 1) - 1)), shift: uint(c.Shift),
		start: start >> c.Shift, blocks: sampleBlocks(samples),
	}
}

// sorted returns the samples in their order in an encoding.
func (r *Recorder) sorted() []sample {
	all := slices.Clone(r.samples)
	shift := r.config.Shift
	slices.SortFunc(all, func(a, b sample) int {
		return cmp.Or(cmp.Compare(a.flow, b.flow), cmp.Compare(a.at>>shift, b.at>>shift), cmp.Compare(a.tag, b.tag))
	})
	return all
}

func (s *sampleCodec) time(at int64) uint64 {
	later := at>>s.shift - s.start
	return uint64(later<<1) ^ uint64(later>>63)
}

// append appends a block.
func (s *sampleCodec) append(dst []byte, samples []sample) []byte {
	from, base := len(dst), 0
	for _, x := range samples {
		base = max(base, bits.Len64(s.time(x.at)))
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(samples)))
	w, last := bitWriter{dst: append(dst, byte(base))}, uint32(0)
	for _, x := range samples {
		w.putCount(uint64(x.flow-last), s.k, 32)
		w.put(uint64(x.tag), s.tagBits)
		w.put(s.time(x.at), uint(base))
		last = x.flow
	}
	return w.seal(from)
}

// read appends the samples of a block, and checks it. The error wraps
// [estimate.ErrEncoding].
func (s *sampleCodec) read(dst []sample, data []byte, block int) ([]sample, error) {
	bad := fmt.Errorf("%w: block %d of samples", estimate.ErrEncoding, block)
	r, ok := openBits(data, 5, nil)
	if !ok {
		return dst, bad
	}
	n, base, last := binary.BigEndian.Uint32(data), uint(data[4]), uint64(0)
	if base > 56 || uint64(n)*uint64(1+s.k+s.tagBits+base) > uint64(r.limit) {
		return dst, bad
	}
	for range n {
		last += r.count(s.k, 32)
		tag, time := r.take(s.tagBits), r.take(base)
		if r.at > r.limit || last >= 1<<32 || sampleBlock(uint32(last), s.blocks) != block {
			return dst, bad
		}
		later := int64(time>>1) ^ -int64(time&1)
		dst = append(dst, sample{uint32(last), uint32(tag), (s.start + later) << s.shift})
	}
	if !r.ended() {
		return dst, bad
	}
	return dst, nil
}
