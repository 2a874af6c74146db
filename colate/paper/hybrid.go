package paper

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// A Hybrid keeps one vector's counters in two memories, as §1.4 suggests. The
// low bits of each are in a narrow counter of a small fast memory. The high
// bits are in a wide counter of a large slow memory, which is touched only if
// the narrow counter carries or a time stamp is itself wider. It counts the
// accesses to both, to show what the split costs. Its sums are those of a
// [Recorder] with the same Config until an epoch of the Recorder ends.
//
// It models the memories, and is not a Recorder: read it with Sum. It ends no
// epochs. It has a single writer and no locks.
type Hybrid struct {
	config Config
	bits   uint8
	narrow []uint32
	wide   []uint32

	fast, slow uint64
}

// NewHybrid returns an empty hybrid vector. Its narrow counters have the given
// width, 1 to 31 bits and below Bits; the wide ones hold the rest, at most 32
// bits. Vectors must be 1. The error wraps [estimate.ErrConfig].
func NewHybrid(c Config, narrowBits uint8) (*Hybrid, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Vectors != 1 {
		return nil, estimate.Invalid("paper", "Vectors", c.Vectors, "1 for a hybrid")
	}
	if narrowBits < 1 || narrowBits > 31 || narrowBits >= c.Bits || c.Bits-narrowBits > 32 {
		return nil, fmt.Errorf("paper: %w: narrow counters are %d bits, want 1 to 31, below Bits, %d, and within 32 of it",
			estimate.ErrConfig, narrowBits, c.Bits)
	}
	return &Hybrid{config: c, bits: narrowBits, narrow: make([]uint32, c.Counters), wide: make([]uint32, c.Counters)}, nil
}

// Update records a packet as [Recorder.Update] does.
func (h *Hybrid) Update(f hashing.Flow, p hashing.Packet, t int64) {
	c := &h.config
	stamp := uint64(t>>(c.Shift&63)) & c.timeMask()
	at := position(c.Identity, f, hashing.Row(uint64(p), uint64(c.PerFlow)), uint64(c.Counters))
	mask := uint64(1)<<h.bits - 1
	low := uint64(h.narrow[at]) + stamp&mask
	h.narrow[at] = uint32(low & mask)
	h.fast++
	if carry := stamp>>h.bits + low>>h.bits; carry != 0 {
		wideMask := uint64(1)<<(c.Bits-h.bits) - 1
		h.wide[at] = uint32((uint64(h.wide[at]) + carry) & wideMask)
		h.slow++
	}
}

// Sum returns the sum in counter i, in units, modulo 2^Bits.
func (h *Hybrid) Sum(i int) uint64 {
	return uint64(h.wide[i])<<h.bits | uint64(h.narrow[i])
}

// Traffic returns the number of updates to the fast and to the slow memory.
func (h *Hybrid) Traffic() (fast, slow uint64) { return h.fast, h.slow }
