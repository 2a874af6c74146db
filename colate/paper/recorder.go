package paper

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// A Config holds every size of a recorder.
type Config struct {
	// Identity keys the hash that maps a flow to its counters. Two points with
	// the same Identity and Counters map flows alike.
	Identity uint64
	// Counters is the number of counters (n): more than PerFlow and at most 2^26.
	Counters int
	// PerFlow is the number of counters that the packets of one flow are
	// spread over (m), an even number from 2 to 4,096.
	PerFlow int
	// Bits is the width of a counter (b), 8 to 63.
	Bits uint8
	// TimeBits is the width of a time stamp, 1 to Bits: the clock in
	// nanoseconds, modulo 2^TimeBits.
	TimeBits uint8
}

// Validate reports the first field that is out of range. The error wraps
// [estimate.ErrConfig].
func (c *Config) Validate() error {
	bad := func(field string, got any, want string, args ...any) error {
		return estimate.Invalid("paper", field, got, fmt.Sprintf(want, args...))
	}
	switch {
	case c.PerFlow < 2 || c.PerFlow > 4096 || c.PerFlow%2 != 0:
		return bad("PerFlow", c.PerFlow, "an even number from 2 to 4,096")
	case c.Counters <= c.PerFlow || c.Counters > 1<<26:
		return bad("Counters", c.Counters, "more than PerFlow, %d, and at most 2^26", c.PerFlow)
	case c.Bits < 8 || c.Bits > 63:
		return bad("Bits", c.Bits, "8 to 63")
	case c.TimeBits < 1 || c.TimeBits > c.Bits:
		return bad("TimeBits", c.TimeBits, "1 to Bits, %d", c.Bits)
	}
	return nil
}

// A Recorder is one point in one epoch (§3.1). Make one with New; it never
// grows. It has a single writer and no locks.
type Recorder struct {
	config Config
	sums   []uint64
	fill   uint64 // the sum of all time stamps (t_X)
	over   bool   // a counter overflowed
}

// New returns an empty recorder. The error wraps [estimate.ErrConfig].
func New(c Config) (*Recorder, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Recorder{config: c, sums: make([]uint64, c.Counters)}, nil
}

// Config returns the configuration that the recorder was made with.
func (r *Recorder) Config() Config { return r.config }

// Update records that packet p of flow f passed at time t, in nanoseconds
// since an epoch that all points share.
//
// The paper draws j at random. Here the packet's digest decides, so that two
// points agree.
func (r *Recorder) Update(f hashing.Flow, p hashing.Packet, t int64) {
	at := r.position(f, hashing.Row(uint64(p), uint64(r.config.PerFlow)))
	stamp := uint64(t) & (1<<r.config.TimeBits - 1)
	r.sums[at] += stamp
	r.fill += stamp
	r.over = r.over || r.sums[at]>>r.config.Bits != 0
}

// position returns where counter H(f, j) of a flow is (§3.1).
func (r *Recorder) position(f hashing.Flow, j uint64) uint64 {
	return hashing.Row(hashing.Mix(uint64(f)^r.config.Identity, j), uint64(r.config.Counters))
}

// Positions appends to dst where a flow's counters are.
func (r *Recorder) Positions(dst []uint32, f hashing.Flow) []uint32 {
	for j := range uint64(r.config.PerFlow) {
		dst = append(dst, uint32(r.position(f, j)))
	}
	return dst
}

// Counter returns the sum in counter i.
func (r *Recorder) Counter(i int) uint64 { return r.sums[i] }
