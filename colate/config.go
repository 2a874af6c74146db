package colate

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// Limits of a Config.
const (
	MaxCounters = 1 << 26
	MaxPerFlow  = 4096
	MaxBits     = 63
	MaxVectors  = 8
	MaxShift    = 40
)

// A Config holds every size of a recorder and the identity of its hash. What two
// points must share to be compared is said at [Estimate].
type Config struct {
	// Identity says what packets and flows are hashed with: the
	// [hashing.Fingerprint] of a seed, or that of a [hashing.SipHash]. What is
	// stored carries it, so that it must not be the secret itself. It also
	// enters the choice of a flow's counters, which nobody can follow who does
	// not know the flow's keyed digest: two points with the same Identity and
	// Counters map alike.
	Identity uint64

	// Counters is how many counters a vector has (n), more than PerFlow and at
	// most MaxCounters.
	Counters int

	// PerFlow is how many counters the packets of one flow are spread over
	// (m), an even number from 2 to MaxPerFlow.
	PerFlow int

	// Bits is the width of a counter (b), 8 to MaxBits. Counters of up to 32
	// bits take 4 bytes of memory, wider ones 8; in a store each takes Bits.
	Bits uint8

	// CountBits is how many of a counter's high bits hold its number of
	// packets, 0 to 24 and less than Bits; 0 is the paper's counter, which
	// holds a sum alone. An epoch ends before a count can overflow.
	CountBits uint8

	// Shift sets the time unit to 2^Shift nanoseconds, 0 to MaxShift.
	Shift uint8

	// TimeBits is the width of a time stamp, 1 to Bits-CountBits: the clock
	// in units, modulo 2^TimeBits. An epoch ends before a sum can overflow,
	// which is early unless TimeBits is several bits below the sum's width.
	// 0 lets the sums wrap instead, as registers do: the clock is taken
	// modulo the sum, and no epoch ends because of a sum.
	//
	// Either way a flow's delays are exact so long as those of its and its
	// neighbours' packets in one counter add up to less than half the
	// modulus: 2^(TimeBits-1) units, or 2^(Bits-CountBits-1) if sums wrap.
	// [Estimate] believes a quarter of that, to tell when they are not.
	TimeBits uint8

	// Threshold ends an epoch before the sum of the counters of one of its
	// vectors exceeds it (T), in time units; where sums wrap, before a
	// vector's number of packets does. 0 sets none. An epoch has room for one packet at
	// least, so any other is at least 2^TimeBits-1.
	Threshold uint64

	// Vectors is how many counter vectors share the packets, 1 to MaxVectors:
	// the first records half of the packets, the second a quarter, and so on,
	// the last as many as the one before it. With 1 there is no protection
	// from loss but what CountBits gives.
	Vectors int
}

// DefaultConfig keeps 4 million packets of a point in 2.8 MiB of a store, 6 bits
// a packet: 455,334 counters, 20 to a flow, that each hold a count of up to
// 4,095 packets and a sum of nanoseconds that wraps. Delays in one counter may
// add up to 9 minutes, of which Estimate believes two.
var DefaultConfig = Config{
	Counters:  455_334,
	PerFlow:   20,
	Bits:      52,
	CountBits: 12,
	Threshold: 4_000_000,
	Vectors:   1,
}

// Validate reports the first thing in c that is out of range, by an error
// that wraps [estimate.ErrConfig].
func (c *Config) Validate() error {
	bad := func(field string, got any, want string) error {
		return fmt.Errorf("colate: %w: %s is %v, want %s", estimate.ErrConfig, field, got, want)
	}
	switch {
	case c.PerFlow < 2 || c.PerFlow > MaxPerFlow || c.PerFlow%2 != 0:
		return bad("PerFlow", c.PerFlow, fmt.Sprintf("an even number from 2 to %d", MaxPerFlow))
	case c.Counters <= c.PerFlow || c.Counters > MaxCounters:
		return bad("Counters", c.Counters, fmt.Sprintf("more than PerFlow, %d, and at most %d", c.PerFlow, MaxCounters))
	case c.Bits < 8 || c.Bits > MaxBits:
		return bad("Bits", c.Bits, fmt.Sprintf("8 to %d", MaxBits))
	case c.CountBits > 24 || c.CountBits >= c.Bits:
		return bad("CountBits", c.CountBits, fmt.Sprintf("0 to 24 and below Bits, %d", c.Bits))
	case c.Shift > MaxShift:
		return bad("Shift", c.Shift, fmt.Sprintf("0 to %d", MaxShift))
	case c.TimeBits > c.sumBits():
		return bad("TimeBits", c.TimeBits, fmt.Sprintf("0, or up to the sum's width, %d", c.sumBits()))
	case c.Threshold != 0 && c.Threshold < c.timeMask() && !c.wraps():
		return bad("Threshold", c.Threshold, fmt.Sprintf("0, or at least the largest time stamp, %d", c.timeMask()))
	case c.Vectors < 1 || c.Vectors > MaxVectors:
		return bad("Vectors", c.Vectors, fmt.Sprintf("1 to %d", MaxVectors))
	}
	return nil
}

// wraps reports whether sums wrap, rather than end the epoch.
func (c *Config) wraps() bool { return c.TimeBits == 0 }

// sumBits is the width of the part of a counter that holds the sum.
func (c *Config) sumBits() uint8 { return c.Bits - c.CountBits }

// sumMask selects the sum of a counter.
func (c *Config) sumMask() uint64 { return 1<<c.sumBits() - 1 }

// modulus is the number of bits in which differences of sums are exact.
func (c *Config) modulus() int {
	if c.wraps() {
		return int(c.sumBits())
	}
	return int(c.TimeBits)
}

// timeMask selects from a clock in units what is added to a counter.
func (c *Config) timeMask() uint64 { return 1<<c.modulus() - 1 }

// Unit is the time unit in nanoseconds.
func (c *Config) Unit() float64 { return float64(uint64(1) << c.Shift) }

// Share is the part of all packets that vector k records.
func (c *Config) Share(k int) float64 {
	if k == c.Vectors-1 && k > 0 {
		k--
	} else if c.Vectors == 1 {
		return 1
	}
	return 1 / float64(uint64(2)<<k)
}

// MemoryBits is how many bits the counters of a point take in hardware and,
// beside a header, in a store: Vectors × Counters × Bits.
func (c *Config) MemoryBits() int64 {
	return int64(c.Vectors) * int64(c.Counters) * int64(c.Bits)
}

// choice is the number j, 0 to PerFlow-1, of the counter of its flow that a
// packet is added to. The paper draws it at random; drawn from the digest, two
// points agree on it, without which their counters cannot be subtracted.
func choice(p hashing.Packet, perFlow uint64) uint64 {
	return hashing.Row(uint64(p), perFlow)
}

// position is H(f, j) (§3.1): where a flow's counter j is in each vector.
func position(identity uint64, f hashing.Flow, j, counters uint64) uint64 {
	return hashing.Row(hashing.Mix(uint64(f)^identity, j), counters)
}
