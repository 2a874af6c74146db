package paper

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// Limits of a Config.
const (
	MaxCounters = 1 << 26 // in all vectors together
	MaxPerFlow  = 4096
	MaxBits     = 63
	MaxVectors  = 8
	MaxShift    = 40
)

// A Config holds every size of a recorder.
type Config struct {
	// Identity keys the hash that maps a flow to its counters. Two points with
	// the same Identity and Counters map flows alike.
	Identity uint64

	// Counters is the number of counters in a vector (n): more than PerFlow.
	// All vectors together have at most MaxCounters.
	Counters int

	// PerFlow is the number of counters that the packets of one flow are
	// spread over (m), an even number from 2 to MaxPerFlow.
	PerFlow int

	// Bits is the width of a counter (b), 8 to MaxBits.
	Bits uint8

	// Shift sets the time unit to 2^Shift nanoseconds, 0 to MaxShift.
	Shift uint8

	// TimeBits is the width of a time stamp, 1 to Bits: the clock in units,
	// modulo 2^TimeBits. An epoch ends before a counter can overflow, which is
	// early unless TimeBits is several bits below Bits.
	TimeBits uint8

	// Threshold ends an epoch before the sum of the counters of one of its
	// vectors exceeds it (T), in time units. Zero means no threshold. An epoch
	// has room for at least one packet, so any other threshold is at least
	// 2^TimeBits-1.
	Threshold uint64

	// Vectors is the number of counter vectors that share the packets, 1 to
	// MaxVectors. The first records half of the packets, the second a quarter,
	// and so on; the last records as many as the one before it. A single
	// vector has no protection from loss.
	Vectors int
}

// Validate reports the first field that is out of range. The error wraps
// [estimate.ErrConfig].
func (c *Config) Validate() error {
	bad := func(field string, got any, want string, args ...any) error {
		return estimate.Invalid("paper", field, got, fmt.Sprintf(want, args...))
	}
	switch {
	case c.PerFlow < 2 || c.PerFlow > MaxPerFlow || c.PerFlow%2 != 0:
		return bad("PerFlow", c.PerFlow, "an even number from 2 to %d", MaxPerFlow)
	case c.Vectors < 1 || c.Vectors > MaxVectors:
		return bad("Vectors", c.Vectors, "1 to %d", MaxVectors)
	case c.Counters <= c.PerFlow || c.Counters > MaxCounters/c.Vectors:
		return bad("Counters", c.Counters, "more than PerFlow, %d, and at most %d", c.PerFlow, MaxCounters/c.Vectors)
	case c.Bits < 8 || c.Bits > MaxBits:
		return bad("Bits", c.Bits, "8 to %d", MaxBits)
	case c.Shift > MaxShift:
		return bad("Shift", c.Shift, "0 to %d", MaxShift)
	case c.TimeBits < 1 || c.TimeBits > c.Bits:
		return bad("TimeBits", c.TimeBits, "1 to Bits, %d", c.Bits)
	case c.Threshold != 0 && c.Threshold < c.timeMask():
		return bad("Threshold", c.Threshold, "0, or at least the largest time stamp, %d", c.timeMask())
	}
	return nil
}

// timeMask returns the bits of a clock in units that are added to a counter.
func (c *Config) timeMask() uint64 { return 1<<c.TimeBits - 1 }

// Unit returns the time unit in nanoseconds.
func (c *Config) Unit() float64 { return float64(uint64(1) << c.Shift) }

// Share returns the fraction of all packets that vector k records.
func (c *Config) Share(k int) float64 {
	if k == c.Vectors-1 && k > 0 {
		k--
	} else if c.Vectors == 1 {
		return 1
	}
	return 1 / float64(uint64(2)<<k)
}

// MemoryBits returns the number of bits that the counters of a point take in
// hardware.
func (c *Config) MemoryBits() int64 {
	return int64(c.Vectors) * int64(c.Counters) * int64(c.Bits)
}

// position returns where counter H(f, j) of a flow is in each vector (§3.1).
func position(identity uint64, f hashing.Flow, j, counters uint64) uint64 {
	return hashing.Row(hashing.Mix(uint64(f)^identity, j), counters)
}
