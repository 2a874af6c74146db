package lds

import (
	"cmp"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/wire"
)

// Limits of a Config.
const (
	MaxRows    = 8
	maxColumns = 1 << 22
	maxSpread  = 64
	minRate    = 1.0 / (1 << 20)
)

// A Config has all sizes of a sketch. Only sketches of equal Configs can be compared or merged.
type Config struct {
	// Identity identifies what packets and flows are hashed with: the [hashing.Fingerprint] of a seed or of a [hashing.SipHash].
	// Encodings carry it, so it must not be the secret itself. A new seed each interval gives every flow new neighbours.
	Identity uint64

	// Rows is the number of rows (R in the paper), 1 to MaxRows. Each packet updates one cell in each row.
	Rows int

	// Columns is the number of cells in each row (C in section 2, C/R in section 3), 1 to 2^22.
	Columns int

	// Spread is the number of neighbouring cells in a row over which a flow's packets are scattered (k, the
	// length of the virtual LDA), 1 to 64 and at most Columns.
	Spread int

	// Rates holds the fraction of packets that each row samples, 2^-20 to 1, and 0 past Rows. Different ones are the banks of section 4.2.
	Rates [MaxRows]float64

	// Tolerance is how many more packets than the least loaded of a flow's cells another cell may hold and be used
	// with it, as a fraction (α), 0 to 1,000. With a Spread of 1, 0 is best. The paper uses 0.1 with 5.
	Tolerance float64

	// SumBits is the width of a timestamp sum on the wire, 1 to 64. Sums wrap. A cell is trusted up to 2^(SumBits-1) ns ÷ GreatestDelay
	// packets: 3.6 million for 10 s at 56 bits, 14,000 at 48. Clocks may be apart by 2^(SumBits-1) ns ÷ the packets of a cell that has few.
	SumBits uint8

	// GreatestDelay is how far apart delays may be, in nanoseconds. Zero means 10 s.
	GreatestDelay int64

	// DigestBits is the width of a cell's stream digest on the wire, 0 to 32. A cell with as many packets at both
	// points, but not the same ones, passes for usable with probability 2^-DigestBits.
	DigestBits uint8
}

// DefaultConfig suits about 150,000 flows an interval. It has 4 rows of 17,500 cells of 13 bytes, two of which
// sample, for losses. Without these the paper's is slightly more accurate.
var DefaultConfig = Config{
	Rows:       4,
	Columns:    17500,
	Spread:     1,
	Rates:      [MaxRows]float64{1, 1, 0.1, 0.01},
	SumBits:    56,
	DigestBits: 16,
}

// Validate reports what is out of range. The error wraps [estimate.ErrConfig].
func (c *Config) Validate() error {
	var rates error
	for r, rate := range c.Rates {
		least, most := minRate, 1.0
		if r >= c.Rows {
			least, most = 0, 0
		}
		rates = cmp.Or(rates, within(fmt.Sprintf("Rates[%d]", r), rate, least, most))
	}
	if math.Signbit(c.Tolerance) { // -0 equals 0, but encodes differently
		return estimate.Invalid("lds", "Tolerance", c.Tolerance, "0 to 1000")
	}
	return cmp.Or(within("Rows", c.Rows, 1, MaxRows), within("Columns", c.Columns, 1, maxColumns),
		within("Spread", c.Spread, 1, min(maxSpread, c.Columns)), rates, within("Tolerance", c.Tolerance, 0, 1000),
		within("SumBits", c.SumBits, 1, 64), within("DigestBits", c.DigestBits, 0, 32),
		within("GreatestDelay", c.GreatestDelay, 0, math.MaxInt64))
}

func within[number int | int64 | uint8 | float64](field string, got, low, high number) error {
	if got >= low && got <= high {
		return nil
	}
	return estimate.Invalid("lds", field, got, fmt.Sprintf("%v to %v", low, high))
}

// made panics if something was not made by its constructor: nil and the zero value have no cells.
func made(ok bool, what string) {
	if !ok {
		panic("lds: the zero or nil " + what + ", which its constructor did not make")
	}
}

func (c *Config) cellBytes() int {
	return wire.BytesOf(c.SumBits) + countBytes + wire.BytesOf(c.DigestBits)
}
