package rli

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A Method is how a receiver estimates the delay of a packet.
type Method uint8

// The methods.
const (
	// Auto is BusyAware where Config.Rate is known, and Linear where not.
	Auto Method = iota
	// BusyAware interpolates within busy periods of the link, and is Linear
	// as long as the link has not shown that it may be believed; see the
	// package's text. It needs Config.Rate.
	BusyAware
	// Linear interpolates between the references on both sides: the RLI
	// estimator, eq. (1).
	Linear
	// Left takes the delay of the reference before: the RLI-L estimator. It
	// needs no buffer.
	Left
	methods
)

var methodNames = [methods]string{"auto", "busy-aware", "linear", "left"}

// String returns the method's name in lower case.
func (m Method) String() string {
	if m < methods {
		return methodNames[m]
	}
	return "unknown method"
}

// Limits of a Config.
const (
	maxRate    = 1_000_000_000_000_000 // bits per second
	maxBuffer  = 1 << 24
	maxFlows   = 1 << 26
	maxBuckets = 1 << 10
	maxFloor   = 1 << 40 // ns

	maxHistograms = 1 << 24
	maxTimeout    = 1 << 62 // ns
	maxSize       = 1 << 16 // bytes of a reference packet
)

// A Config holds every size of a receiver. Two receivers can be merged only
// if their Configs are equal.
type Config struct {
	// Identity says what flows are hashed with: the [hashing.Fingerprint] of
	// a seed, or that of a [hashing.SipHash]. Encodings carry it, so that it
	// must not be the secret itself. It also starts the draws of Hold.
	Identity uint64

	// Rate is the rate of the link whose far end or transmitter the receiver
	// is at, in bits per second, up to 10^15; 0 where it is not known: then
	// sizes of packets make no difference to their estimates, and Method must
	// be Linear or Left.
	Rate int64

	// Injector is whose references the receiver takes; those of others only
	// count as departures, and in Counts.Foreign. Where several injectors send
	// to one place, there is a receiver for each of them, which is told of the
	// others' packets by Pass; and where one sender sends to several places, it
	// has an injector for each of them.
	Injector uint32

	// ReferenceBytes is the size of a reference packet on the link, counted
	// as the sizes of other packets are; 1 to 65,536.
	ReferenceBytes int

	// Overhead is how many bytes the link sends with every packet that its size
	// does not count, 0 to 1,024: 4 for a checksum of Ethernet, 24 with preamble
	// and gap. Where references show another one, that is used.
	Overhead int

	// Method is how packets are estimated.
	Method Method

	// Tolerance is by how many nanoseconds time stamps may be off, 1 to
	// 10^6: their resolution, plus the jitter of whoever takes them. BusyAware
	// reads a longer gap as an idle link, and a larger contradiction as a
	// link that must not be believed. Where references show that stamps are off
	// by more, it is more.
	Tolerance int64

	// Buffer is for how many packets there is room to await the next
	// reference: 1 to 2^24, at least the injector's longest distance
	// between references; 0 with Left. When it fills up, the packets in it
	// are estimated from what was seen so far, and counted in
	// Counts.Overflowed.
	Buffer int

	// Flows is for how many flows there is room, 1 to 2^26. When it is
	// taken, a packet of another flow may take the place of a record that is
	// old or has few packets, with a probability that is the less, the more
	// packets that has (counted in Counts.Evicted), or is shed (counted in
	// Counts.Shed). All are still part of the total.
	Flows int

	// Sample is the share of the flows that are measured, chosen by their
	// hash, over 0 and up to 1.
	Sample float64

	// Tuples keeps a 5-tuple with every record, for Result.Tuple: see
	// Receiver.UpdateTuple. 37 bytes a flow.
	Tuples bool

	// Hold is the probability that a packet of a sampled flow without a
	// record begins one (sample and hold), over 0 and up to 1. A record once
	// begun takes all packets of its flow.
	Hold float64

	// Inactive and Active are after how many nanoseconds without a packet, or
	// since its first packet, a record is due for [Receiver.Expire]; 0 for
	// never.
	Inactive, Active int64

	// Buckets is the length of the delay histograms, one of each flow and one
	// of the total; 0 for none, up to 1,024. Floor is the delay in
	// nanoseconds, 8 to 2^40, at which their second bucket begins; the first
	// is for all that is less, and the last for all that is more. From Floor
	// on there are 8 buckets to each doubling, so that a quantile is within
	// 1/16 of a delay of that rank. Four bytes a bucket and flow, or, where
	// flows share Histograms, two bytes a bucket of each: 16,384 of 63 buckets are
	// 2 MiB. They must be an even number; 0 for one each. Then a quantile is
	// within the bounds that [Receiver.QuantileInterval] gives.
	Buckets    int
	Floor      int64
	Histograms int
}

// DefaultConfig is for a link whose rate is not known, up to 65,536 flows and
// references of this package's wire form in UDP over IPv4. Set Rate where it is
// known.
var DefaultConfig = Config{
	ReferenceBytes: 28 + ReferenceSize,
	Method:         Auto,
	Tolerance:      2,
	Buffer:         1024,
	Flows:          65536,
	Sample:         1,
	Hold:           1,
}

// Validate reports what is out of range. The error wraps [estimate.ErrConfig].
func (c *Config) Validate() error {
	bad := func(field string, got any, want string) error { return estimate.Invalid("rli", field, got, want) }
	share := func(p float64) bool { return p > 0 && p <= 1 }
	switch {
	case c.Method >= methods:
		return bad("Method", uint8(c.Method), "one of the methods")
	case c.Rate < 0 || c.Rate > maxRate:
		return bad("Rate", c.Rate, "0 to 10^15")
	case c.Rate == 0 && c.Method == BusyAware:
		return bad("Rate", c.Rate, "1 to 10^15 for the busy-aware method")
	case c.ReferenceBytes < 1 || c.ReferenceBytes > maxSize:
		return bad("ReferenceBytes", c.ReferenceBytes, fmt.Sprintf("1 to %d", maxSize))
	case c.Overhead < 0 || c.Overhead > 1024:
		return bad("Overhead", c.Overhead, "0 to 1024")
	case c.Tolerance < 1 || c.Tolerance > 1e6:
		return bad("Tolerance", c.Tolerance, "1 to 10^6")
	case c.Method == Left && c.Buffer != 0:
		return bad("Buffer", c.Buffer, "0 for the left method")
	case c.Method != Left && (c.Buffer < 1 || c.Buffer > maxBuffer):
		return bad("Buffer", c.Buffer, fmt.Sprintf("1 to %d", maxBuffer))
	case c.Flows < 1 || c.Flows > maxFlows:
		return bad("Flows", c.Flows, fmt.Sprintf("1 to %d", maxFlows))
	case !share(c.Sample):
		return bad("Sample", c.Sample, "over 0, up to 1")
	case !share(c.Hold):
		return bad("Hold", c.Hold, "over 0, up to 1")
	case c.Inactive < 0 || c.Inactive > maxTimeout:
		return bad("Inactive", c.Inactive, "0 to 2^62")
	case c.Active < 0 || c.Active > maxTimeout:
		return bad("Active", c.Active, "0 to 2^62")
	case c.Buckets < 0 || c.Buckets > maxBuckets || c.Buckets == 1:
		return bad("Buckets", c.Buckets, fmt.Sprintf("0 or 2 to %d", maxBuckets))
	case c.Buckets == 0 && c.Floor != 0:
		return bad("Floor", c.Floor, "0 without Buckets")
	case c.Buckets > 0 && (c.Floor < 8 || c.Floor > maxFloor):
		return bad("Floor", c.Floor, "8 to 2^40")
	case c.checkHistograms() != nil:
		return c.checkHistograms()
	case max(c.memory(), c.size(int64(c.Flows))) > math.MaxInt: // of 32 bits
		return bad("Flows", c.Flows, fmt.Sprintf("fewer: %d bytes are more than this machine can address", c.memory()))
	}
	return nil
}

// method is that which Method stands for.
func (c *Config) method() Method {
	switch {
	case c.Method != Auto:
		return c.Method
	case c.Rate > 0:
		return BusyAware
	}
	return Linear
}

// slots is how many places the table of flows has: a power of two of which
// the flows take three quarters at most, so that searches are short.
func (c *Config) slots() int {
	n := group
	for n/4*3 < c.Flows {
		n *= 2
	}
	return n
}

// MemorySize is how many bytes a receiver takes in memory, but for a few
// hundred.
func (c *Config) MemorySize() int { return int(min(c.memory(), math.MaxInt)) }

// EncodedSize is how many bytes the encoding of a receiver takes where all
// records are in use.
func (c *Config) EncodedSize() int { return int(min(c.size(int64(c.Flows)), math.MaxInt)) }

// buckets is the length of the histogram of each flow's own.
func (c *Config) buckets() int {
	if c.Histograms > 0 {
		return 0
	}
	return c.Buckets
}

// tupleSize is that of a hashing.Tuple in memory.
const tupleSize = 38

func (c *Config) memory() int64 {
	size := int64(c.slots())*(recordSize+1+4*int64(c.buckets())) + 8*int64(c.Buckets)
	size += int64(c.Histograms) * (2*int64(c.Buckets) + 1)
	size += int64(max(c.Buffer, 1)) * heldSize
	if c.Tuples {
		size += (int64(c.slots()) + int64(max(c.Buffer, 1))) * tupleSize
	}
	if c.method() == BusyAware {
		size += int64(c.Buffer+1) * periodSize
	}
	return size
}
