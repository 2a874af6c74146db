package kernel

import (
	"fmt"
	"syscall"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
)

// A Point counts packets in the kernel. Only one goroutine at a time may call Rotate, Attach and Close; another
// one may call Release.
type Point struct {
	config  Config
	lanes   int
	cells   int // descriptors of maps
	control int
	barrier *barrier

	memory      []uint64 // of the cells: two halves, each of all lanes
	flags       []uint64 // of the control map
	sum         []uint64 // of a half's lanes, cells only
	rotation    *estimate.Rotation[*Interval]
	clock       clock
	carry       error // of a rotation while the reader was busy
	programs    map[programKind]int
	closers     []func() // in reverse
	attachments []*attachment
	closed      bool
	isCut       bool // since Rotate
	half        int  // what was cut
	processor   int  // number of lanes that have a processor

	after func(*program) // in tests: see program
}

// New makes a Point that is not attached yet. The error wraps [estimate.ErrConfig], [ErrPrivilege], [ErrKernel]
// or [ErrUnsupported].
func New(c Config) (*Point, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.LDA.Identity = Fingerprint(c.Seed)
	p := &Point{config: c, programs: make(map[programKind]int)}
	if err := p.open(); err != nil {
		p.Close()
		return nil, fmt.Errorf("kernel: %w", err)
	}
	return p, nil
}

// open creates the maps and maps them into memory.
func (p *Point) open() (err error) {
	if p.processor, err = processors(); err != nil {
		return err
	}
	for p.lanes = 1; p.lanes < p.processor; p.lanes *= 2 {
	}
	size := 2 * p.lanes * p.config.laneSize() // for the present interval and the one before
	if size > maxMemory {
		return fmt.Errorf("%w: %d bytes for %d processors, want at most %d: fewer cells", estimate.ErrConfig, size, p.processor, maxMemory)
	}
	if p.rotation, err = estimate.NewRotation(newInterval, p.config.LDA); err != nil {
		return err
	}
	if p.cells, p.memory, err = p.openMap(size); err != nil {
		return err
	}
	if p.control, p.flags, err = p.openMap(controlSize); err != nil {
		return err
	}
	if p.barrier, err = newBarrier(); err != nil {
		return err
	}
	p.closers = append(p.closers, p.barrier.close)
	p.sum = make([]uint64, 2*p.config.ldaCells())
	p.clock = clock{kind: p.config.Clock}
	return p.clock.begin()
}

// openMap creates a map of one value, and maps it into memory.
func (p *Point) openMap(size int) (descriptor int, memory []uint64, err error) {
	if descriptor, err = newMap(arrayMap, 4, uint32(size), 1, mappable); err != nil {
		return -1, nil, err
	}
	p.closers = append(p.closers, func() { syscall.Close(descriptor) })
	memory, unmap, err := mapMemory(descriptor, size)
	if err == nil {
		p.closers = append(p.closers, unmap)
	}
	return descriptor, memory, err
}

// Config returns the Config that the Point was made with, including the Identity that New set.
func (p *Point) Config() Config { return p.config }

// Close detaches the Point from all hooks and frees its memory in the kernel. What was counted since the last
// Rotate is lost. A second Close does nothing.
func (p *Point) Close() error {
	for _, a := range p.attachments {
		syscall.Close(a.link)
	}
	for i := len(p.closers) - 1; i >= 0; i-- {
		p.closers[i]()
	}
	p.attachments, p.closers, p.closed = nil, nil, true
	return nil
}

// An Interval is what a Point counted between two rotations. Its aggregator is an ordinary one: encode, merge
// and compare it like that of any other point with the same Config.
type Interval struct {
	Aggregator *lda.Aggregator
	Counters   Counters

	// Start and End are when the interval began and ended, by the Point's clock. Packets stamped within some
	// microseconds of either may belong to the neighbouring interval.
	Start, End int64

	// ClockError is the possible error of the timestamps' offset to the wall clock, in nanoseconds. It is the
	// same for all stamps, in all intervals, until the clock is set. It is zero for clocks other than Wall.
	ClockError int64
}

// Reset empties the interval, for the Rotation that holds it.
func (i *Interval) Reset() {
	i.Aggregator.Reset()
	*i = Interval{Aggregator: i.Aggregator}
}

func newInterval(c lda.Config) (*Interval, error) {
	a, err := lda.New(c)
	return &Interval{Aggregator: a}, err
}
