package rli

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A Method is a way to estimate the delay of a packet.
type Method uint8

// The methods.
const (
	// Auto interpolates within busy periods of the link, and like Linear until the link is known and while
	// straight lines are closer to the references.
	Auto   Method = iota
	Linear        // interpolates between the references on both sides: RLI's estimator, eq. (1)
	Left          // uses the delay of the reference before: the RLI-L estimator, without a buffer
	methods
)

// Limits of a Config.
const (
	maxRate   = 1_000_000_000_000_000 // bits per second
	maxBuffer = 1 << 24
	maxFlows  = 1 << 26
	maxSize   = 1 << 16 // bytes of a reference packet
)

// A Config holds every size of a receiver. Receivers can be merged if theirs are equal.
type Config struct {
	// Identity identifies what flows are hashed with: the [hashing.Fingerprint] of a seed or of a
	// [hashing.SipHash]. Encodings carry it, so it must not be the secret itself.
	Identity uint64
	// Rate is the rate of the link in bits per second, up to 10^15, or 0 if unknown: what sizes add to delays
	// is then learned from references, and with Auto the rate itself: see [Receiver.Rate].
	Rate int64
	// Injector identifies the injector whose references the receiver takes. If several send to one place, use a
	// receiver for each, and report the others' packets to it with Pass.
	Injector       uint32
	ReferenceBytes int    // size of a reference packet, 1 to 65,536, counted as other packets' are
	Method         Method // how delays are estimated
	// Buffer is the number of packets that can wait for the next reference: 1 to 2^24, and at least the injector's longest
	// distance, Every or Sparse plus a quarter, twice if references may be lost; 0 with Left. What a full one holds is doubtful.
	Buffer int
	// Flows is the number of flow records, 1 to 2^26. When all are in use, a new flow replaces one that is old
	// or has few packets, or goes unrecorded: see Counts.
	Flows int
}

// DefaultConfig is for a link of unknown rate and references in UDP over IPv4.
var DefaultConfig = Config{ReferenceBytes: 28 + ReferenceSize, Method: Auto, Buffer: 1024, Flows: 65536}

// Validate reports what is out of range. The error wraps [estimate.ErrConfig].
func (c *Config) Validate() error {
	bad := func(field string, got any, want string) error { return estimate.Invalid("rli", field, got, want) }
	switch {
	case c.Method >= methods:
		return bad("Method", uint8(c.Method), "one of the methods")
	case c.Rate < 0 || c.Rate > maxRate:
		return bad("Rate", c.Rate, "0 to 10^15")
	case c.ReferenceBytes < 1 || c.ReferenceBytes > maxSize:
		return bad("ReferenceBytes", c.ReferenceBytes, fmt.Sprintf("1 to %d", maxSize))
	case c.Method == Left && c.Buffer != 0:
		return bad("Buffer", c.Buffer, "0 for the left method")
	case c.Method != Left && (c.Buffer < 1 || c.Buffer > maxBuffer):
		return bad("Buffer", c.Buffer, fmt.Sprintf("1 to %d", maxBuffer))
	case c.Flows < 1 || c.Flows > maxFlows:
		return bad("Flows", c.Flows, fmt.Sprintf("1 to %d", maxFlows))
	case max(c.memory(), c.size(int64(c.Flows))) > math.MaxInt: // on 32 bits
		return bad("Flows", c.Flows, fmt.Sprintf("fewer: %d bytes are more than this machine can address", c.memory()))
	}
	return nil
}

// slots returns the places in the table of flows: a power of two, of which flows take three quarters.
func (c *Config) slots() int {
	n := group
	for n/4*3 < c.Flows {
		n *= 2
	}
	return n
}

// MemorySize returns the number of bytes that a receiver takes, within a few hundred.
func (c *Config) MemorySize() int { return int(min(c.memory(), math.MaxInt)) }

// EncodedSize returns the number of bytes in a receiver's encoding if all records are in use.
func (c *Config) EncodedSize() int { return int(min(c.size(int64(c.Flows)), math.MaxInt)) }

func (c *Config) memory() int64 {
	size := int64(c.slots())*(recordSize+1) + int64(max(c.Buffer, 1))*heldSize + square*cellSize + twins*twinSize
	if c.Method == Auto {
		size += int64(c.Buffer+1)*periodSize + spreadSize
	}
	return size
}

// made panics if something was not made by its constructor: the zero value has no sizes.
func made(ok bool, what string) {
	if !ok {
		panic("rli: the zero " + what + ", which its constructor did not make")
	}
}
