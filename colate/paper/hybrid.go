package paper

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// A Hybrid keeps one vector's counters in two memories, as §1.4 suggests: the
// low bits of each in a narrow counter of a small fast memory, the high bits in a
// wide counter of a large slow one, which is touched only when the narrow one
// carries or a time stamp is itself wider. It counts both traffics, to tell
// what a division of the bits costs. Its sums are those of a [Recorder] with
// the same Config until an epoch of that ends.
//
// It is a model of the memories, to be read by Sum, and no Recorder: it ends
// no epochs. Single writer, no locks.
type Hybrid struct {
	config Config
	bits   uint8
	narrow []uint32
	wide   []uint32

	fast, slow uint64
}

// NewHybrid returns an empty hybrid vector with narrow counters of the given
// width, 1 to 31 bits and below Bits, and wide ones that hold the rest, at
// most 32 bits. Vectors must be 1. The error wraps
// [estimate.ErrConfig].
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

// Sum is the sum in counter i, in units, modulo 2^Bits.
func (h *Hybrid) Sum(i int) uint64 {
	return uint64(h.wide[i])<<h.bits | uint64(h.narrow[i])
}

// Traffic returns how many updates the fast and the slow memory have seen.
func (h *Hybrid) Traffic() (fast, slow uint64) { return h.fast, h.slow }
