package kernel

import (
	"errors"
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
)

var (
	// ErrUnsupported means that the package does not support the architecture. It supports little-endian ones:
	// amd64, arm64, riscv64, loong64, 386, arm.
	ErrUnsupported = errors.New("not supported on this system")

	// ErrPrivilege means that the process lacks CAP_BPF, CAP_PERFMON or CAP_NET_ADMIN, which root has.
	ErrPrivilege = errors.New("not permitted")

	// ErrKernel means that the kernel or the interface lacks a requested feature.
	ErrKernel = errors.New("not offered by this kernel")

	// ErrOffload means that packets passed in bundles that the point cannot separate into packets. The
	// interval's other packets were counted.
	ErrOffload = errors.New("bundles of segments that cannot be told apart")

	// ErrDetached means that an interface that the point was attached to went away. What it counted until then
	// is in the interval.
	ErrDetached = errors.New("interface is gone")

	// ErrStep means that the wall clock was set during the interval, or during an earlier one that was not
	// released, so that its times mean nothing.
	ErrStep = errors.New("the clock was set during the interval")
)

// A Hook is the place on an interface where packets are counted.
type Hook uint8

const (
	// Ingress sees packets as they come in from the driver, after the card or the kernel may have merged them
	// (GRO).
	Ingress Hook = iota + 1

	// Egress sees packets on their way out, before the interface's queue (qdisc), so that the time they wait
	// there is part of the delay to the next point.
	Egress

	// XDP sees packets as they come in, before everything else. It is the earliest and the cheapest hook, and
	// nothing is merged yet. It needs Linux 5.18.
	XDP
)

// String returns the name of the hook.
func (h Hook) String() string {
	if h < Ingress || h > XDP {
		return fmt.Sprintf("Hook(%d)", uint8(h))
	}
	return [...]string{"ingress", "egress", "XDP"}[h-Ingress]
}

// A Clock is the clock that stamps packets.
type Clock uint8

const (
	// Wall is the time since 1970 by the system's clock. Packets are stamped with the time since the machine
	// started, and each rotation measures the offset between the two, so that setting the clock does not go
	// unnoticed: see ErrStep. Use it for points on two machines.
	Wall Clock = iota

	// Boot is the time since the machine started, including sleep. Use it for points on one machine.
	Boot
)

// A Config says what a Point counts, and by which clock.
type Config struct {
	// Seed is the seed for hashing packets and flows. It must be the same at both points, and secret if
	// somebody may craft traffic. See [Digest].
	Seed uint64

	// LDA configures the cells. Its Identity is zero or [Fingerprint], which New sets.
	LDA lda.Config

	// Clock is the clock that stamps packets.
	Clock Clock
}

// DefaultConfig has the cells of [lda.DefaultConfig].
var DefaultConfig = Config{LDA: lda.DefaultConfig}

// Validate reports what is out of range. The error wraps [estimate.ErrConfig].
func (c *Config) Validate() error {
	if err := c.LDA.Validate(); err != nil {
		return fmt.Errorf("kernel: %w", err)
	}
	want := Fingerprint(c.Seed)
	if id := c.LDA.Identity; id != 0 && id != want {
		return c.invalid("LDA.Identity", id, fmt.Sprintf("0 or the fingerprint %d", want))
	}
	if c.Clock > Boot {
		return c.invalid("Clock", c.Clock, "Wall or Boot")
	}
	if size := c.laneSize(); size > maxMemory/2 {
		return c.invalid("the memory of a processor", size, fmt.Sprintf("at most %d bytes", maxMemory/2))
	}
	return nil
}

func (c *Config) invalid(field string, got any, want string) error {
	return estimate.Invalid("kernel", field, got, want)
}

// A processor's lane has its counters and some scratch space, then the cells of the LDA.
const (
	cellSize     = 16
	countersSize = 128
	maxMemory    = 1 << 28 // the verifier lets a program address this much
)

func (c *Config) ldaCells() int { return c.LDA.MemorySize() / cellSize }

// laneSize returns the number of bytes that one processor takes for one interval. It is a multiple of a cache
// line, so that no two processors share one.
func (c *Config) laneSize() int {
	const line = 64
	return (countersSize + cellSize*c.ldaCells() + line - 1) / line * line
}

// Counters counts the frames that a Point skipped, by reason, and the packets that came in bundles.
type Counters struct {
	NotIP     uint64 // frames that carry no IP, such as ARP
	Truncated uint64 // frames that end inside their headers
	Malformed uint64 // frames whose headers contradict themselves
	Deep      uint64 // frames with more headers, or rarer ones, than the program follows
	Bundles   uint64 // bundles of segments not counted: see ErrOffload
	Segments  uint64 // packets counted from bundles
}
