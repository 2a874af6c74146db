package colate

import (
	"cmp"
	"slices"

	"github.com/hoplag/hoplag/hashing"
)

// A sample is one packet, kept by itself.
type sample struct {
	flow uint32 // its key
	tag  uint32 // below the recorder's limit
	at   int64
}

// key returns the bits by which samples of a flow are found. Flows may be small numbers.
func (c *Config) key(f hashing.Flow) uint32 {
	return uint32(hashing.Mix(uint64(f)^c.Identity, 1<<32) >> 32)
}

// tagOf returns the bits of a packet that decide whether it is sampled and distinguish it from others: both
// points sample alike.
func tagOf(p hashing.Packet) uint32 { return uint32(p >> 32) }

// limit returns the tag from which on packets are not sampled.
func (c *Config) limit() uint32 {
	if c.OneIn == 0 {
		return 0
	}
	return uint32(min(1<<32/uint64(c.OneIn), 1<<32-1))
}

// sample keeps a packet whose tag is below the limit, if need be after making room.
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

// sampleBlocks returns the number of blocks for a number of samples. A flow's samples are in one block, which
// its hash says.
func sampleBlocks(samples int) int { return (samples + blockCounters - 1) / blockCounters }

func sampleBlock(flow uint32, blocks int) int { return int(uint64(flow) * uint64(blocks) >> 32) }

// firstKey returns the first key of a block.
func firstKey(block, blocks int) uint64 {
	return (uint64(block)<<32 + uint64(blocks) - 1) / uint64(blocks)
}
