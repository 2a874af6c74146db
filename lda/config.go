package lda

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

const (
	maxBanks = len(Config{}.Banks)
	maxRows  = 1 << 24
	maxShift = 32
)

// unsampled is the number of cells that share the packets that no bank samples. There are enough that counting
// them is not one long chain of additions to one address. It is a power of two.
const unsampled = 16

// A Config holds every size of an aggregator and the identity of its packet digests. Two aggregators can be
// compared or merged only if their Configs are equal.
type Config struct {
	// Identity says how packets are hashed: the [hashing.Fingerprint] of the seed, or that of a
	// [hashing.SipHash], so that two points that hash differently get an error. Encodings carry it: never put
	// the secret itself here. 0 says nothing.
	Identity uint64

	// Banks are the arrays of cells, by ascending Shift. Unused ones come last and have no Rows.
	Banks [4]Bank

	// SumBits is the width of a sum of timestamps in the encoding, 1 to 64. Estimate finds out how often sums
	// wrapped, as long as the delays in the cell with the fewest packets, including the clocks' offset, add up
	// to less than 2^(SumBits-1) ns: 549 s at 40, and 292 years at 64.
	SumBits uint8

	// DigestBits is the width w of a cell's stream digest, from 0 to 32. One cell in 2^w that gained as many
	// packets as it lost looks usable. In a bank at most 32 less Shift bits differ from packet to packet. With
	// 0, Estimate refuses intervals in which packets arrived that were not sent.
	DigestBits uint8
}

// A Bank is one array of cells and the share of the packets that it samples.
type Bank struct {
	// Rows is the number of cells (m in the paper), a power of two up to
	// 2^24. The low-order bits of a packet's hash choose the row.
	Rows int

	// Shift sets the sampling, up to 32: this bank takes the packets whose hash
	// begins with at least Shift zeros, but fewer than the next bank's Shift. So it
	// samples 2^-Shift of the packets, less what the next ones take.
	Shift uint8
}

// DefaultConfig suits 10^4 to 10^7 packets an interval, losses of 0 to 30 %, delays of 1 µs to 10 s and any offset between clocks.
// It takes 70 KiB on the wire. At any of these loads and losses, most cells of some bank are usable, and 220 to 460 cells hold a
// single packet, whose delays give quantiles up to p97 ([Accumulator.Quantile]). A p99 takes two or three intervals, or banks of
// 1,024, 2,048, 2,048 and 2,048 rows; a Config from [Plan] does better if you know your traffic.
var DefaultConfig = Config{
	Banks:      [...]Bank{{Rows: 2048, Shift: 0}, {Rows: 1024, Shift: 4}, {Rows: 1024, Shift: 8}, {Rows: 1024, Shift: 12}},
	SumBits:    64,
	DigestBits: 16,
}

// Validate reports what is out of range. The error wraps [estimate.ErrConfig].
func (c *Config) Validate() error {
	bad := func(field string, got any, want string) error { return estimate.Invalid("lda", field, got, want) }
	badBank := func(j int, field string, got any, want string) error {
		return bad(fmt.Sprintf("Banks[%d].%s", j, field), got, want)
	}
	for j, b := range c.Banks {
		switch {
		case b == Bank{} && j > 0:
		case b.Rows < 1 || b.Rows > maxRows || bits.OnesCount(uint(b.Rows)) != 1:
			return badBank(j, "Rows", b.Rows, fmt.Sprintf("a power of two from 1 to %d", maxRows))
		case b.Shift > maxShift:
			return badBank(j, "Shift", b.Shift, fmt.Sprintf("0 to %d", maxShift))
		case j > 0 && c.Banks[j-1].Rows == 0:
			return badBank(j, "Rows", b.Rows, fmt.Sprintf("0, since Banks[%d] has none", j-1))
		case j > 0 && b.Shift <= c.Banks[j-1].Shift:
			return badBank(j, "Shift", b.Shift, fmt.Sprintf("more than Banks[%d].Shift, which is %d", j-1, c.Banks[j-1].Shift))
		}
	}
	if c.SumBits < 1 || c.SumBits > 64 {
		return bad("SumBits", c.SumBits, "1 to 64")
	}
	if c.DigestBits > 32 {
		return bad("DigestBits", c.DigestBits, "0 to 32")
	}
	return nil
}

// banks returns the number of banks.
func (c *Config) banks() int {
	n := 0
	for n < maxBanks && c.Banks[n].Rows > 0 {
		n++
	}
	return n
}

// cells returns the number of cells in all banks.
func (c *Config) cells() int { return c.first(maxBanks) }

// first returns the number of the first cell of a bank.
func (c *Config) first(bank int) (n int) {
	for _, b := range c.Banks[:bank] {
		n += b.Rows
	}
	return n
}

// allCells also counts the cells of unsampled packets.
func (c *Config) allCells() int { return c.cells() + unsampled }

// MemorySize returns the number of bytes that the cells of an aggregator take in memory.
func (c *Config) MemorySize() int { return 16 * c.allCells() }

// rate returns the share of the packets that bank j samples (p).
func (c *Config) rate(j int) float64 {
	p := math.Ldexp(1, -int(c.Banks[j].Shift))
	if j+1 < c.banks() {
		p -= math.Ldexp(1, -int(c.Banks[j+1].Shift))
	}
	return p
}

// sampledRate returns the share of the packets that all banks together sample.
func (c *Config) sampledRate() float64 { return math.Ldexp(1, -int(c.Banks[0].Shift)) }

// Cell returns the number of the cell of packet p, counted through all banks, or -1 if no bank samples it.
func (c *Config) Cell(p hashing.Packet) int {
	for j := c.banks() - 1; j >= 0; j-- {
		if b := c.Banks[j]; bits.LeadingZeros64(uint64(p)|1) >= int(b.Shift) {
			return c.first(j) + int(p)&(b.Rows-1)
		}
	}
	return -1
}

// digestMask returns the bits of a tally that hold the stream digest.
func (c *Config) digestMask() uint64 {
	return (1<<c.DigestBits - 1) << 32
}

// same returns an error that says how another Config differs from this one.
func (c *Config) same(other *Config) error {
	if *c == *other {
		return nil
	}
	field, there, here := "Identity", any(other.Identity), any(c.Identity)
	for i, b := range c.Banks {
		if o := other.Banks[i]; o.Rows != b.Rows {
			field, there, here = fmt.Sprintf("Banks[%d].Rows", i), o.Rows, b.Rows
		} else if o.Shift != b.Shift {
			field, there, here = fmt.Sprintf("Banks[%d].Shift", i), o.Shift, b.Shift
		}
	}
	if other.SumBits != c.SumBits {
		field, there, here = "SumBits", other.SumBits, c.SumBits
	} else if other.DigestBits != c.DigestBits {
		field, there, here = "DigestBits", other.DigestBits, c.DigestBits
	}
	return fmt.Errorf("lda: %w: %s is %v there, %v here", estimate.ErrMismatch, field, there, here)
}
