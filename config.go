package hoplag

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"runtime"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

// A Config says how a [Point] measures. The zero value is good except for the
// Key: without a Key, anyone who can reach a point can read it and answer in
// its place. Points that are compared need the same Key, Cut and Cells.
type Config struct {
	// Key is the secret that the points share, of any length. Packets are hashed
	// and records are signed with what is derived from it; the Key itself never
	// travels. Use 16 random bytes or more, which cannot be guessed.
	Key string

	// Name is what reports call this point, at most 255 bytes.
	Name string

	// Class is the name in reports and metrics of what passes here, if there
	// is a point for each of several classes. It has at most 255 bytes.
	Class string

	// Cut is how often the point cuts off what it counted and keeps it for
	// followers to fetch: 1 ms to an hour, or 0 for 100 ms. Cuts are aligned to
	// the wall clock. With shorter cuts a lost packet spoils less, and there is
	// more to send.
	Cut time.Duration

	// Report is the length of the intervals of reports: a multiple of Cut, or 0
	// for ten cuts.
	Report time.Duration

	// Cells are the sizes of the counters; the zero value stands for
	// [lda.DefaultConfig]. The Key sets their Identity.
	Cells lda.Config

	// Flows is the greatest number of flows to tell apart in a report, up to a
	// million, or 0 for none. Each costs 128 bytes per direction and shard, and 5
	// KB per direction at the point that makes reports.
	Flows int

	// History is the number of bytes of cuts to keep for followers that come late:
	// 4 KiB to 1 GiB, or 0 for 4 MiB.
	History int
}

// withDefaults returns the Config with zeros replaced.
func (c Config) withDefaults() Config {
	if c.Cut == 0 {
		c.Cut = 100 * time.Millisecond
	}
	if c.Report == 0 {
		c.Report = 10 * c.Cut
	}
	if c.Cells == (lda.Config{}) {
		c.Cells = lda.DefaultConfig
		c.Cells.DigestBits = 20
	}
	if c.History == 0 {
		c.History = 4 << 20
	}
	return c
}

// Validate reports what is out of range. The error wraps
// [estimate.ErrConfig].
func (c Config) Validate() error {
	c = c.withDefaults()
	bad := func(field string, got any, want string) error {
		return estimate.Invalid("hoplag", field, got, want)
	}
	switch {
	case len(c.Name) > 255:
		return bad("Name", fmt.Sprintf("%d bytes long", len(c.Name)), "at most 255")
	case len(c.Class) > 255:
		return bad("Class", fmt.Sprintf("%d bytes long", len(c.Class)), "at most 255")
	case c.Cut < time.Millisecond || c.Cut > time.Hour:
		return bad("Cut", c.Cut, "1ms to 1h, or 0 for 100ms")
	case c.Report < c.Cut || c.Report%c.Cut != 0 || c.Report > 24*time.Hour:
		return bad("Report", c.Report, fmt.Sprintf("a multiple of Cut, which is %v, of at most 24h, or 0 for ten cuts", c.Cut))
	case c.Flows < 0 || c.Flows > maxFlows:
		return bad("Flows", c.Flows, "0 to 1048576")
	case c.History < 4<<10 || c.History > 1<<30:
		return bad("History", c.History, "4096 to 1073741824 bytes, or 0 for 4194304")
	}
	cells := c.lda()
	if err := cells.Validate(); err != nil {
		return fmt.Errorf("hoplag: Cells: %w", err)
	}
	return nil
}

// MemorySize returns the greatest number of bytes that a point takes: counters
// for both directions, twice for every shard and once more, logs of what
// passed, and the history of cuts.
func (c Config) MemorySize() int {
	c = c.withDefaults()
	cells, flows := c.lda(), c.lds()
	tally := cells.MemorySize()
	if c.Flows > 0 {
		tally += flows.MemorySize()
	}
	const logs = maxLogs * logSize * 24 // for when many goroutines are interrupted
	return 2*(2*c.shards()+1)*tally + 2*c.shards()*logs + c.History
}

// shards returns how many parts of a direction can be written to at once.
func (c Config) shards() int { return min(runtime.GOMAXPROCS(0), 8) }

// lda returns the Config of the counters of all packets.
func (c Config) lda() lda.Config {
	cells := c.Cells
	cells.Identity = hashing.Fingerprint(c.seed())
	return cells
}

// seed returns the seed that packets and flows are hashed with.
func (c Config) seed() uint64 { return c.derive("packets") }

// derive derives from the key a number that reveals nothing about other such
// numbers.
func (c Config) derive(purpose string) uint64 {
	return binary.BigEndian.Uint64(c.deriveKey(purpose))
}

func (c Config) deriveKey(purpose string) []byte {
	sum := sha256.Sum256([]byte("hoplag 1 " + purpose + "\x00" + c.Key))
	return sum[:]
}
