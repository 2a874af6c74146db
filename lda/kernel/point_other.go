//go:build !linux

package kernel

import (
	"fmt"

	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lds"
)

// A Point counts packets in the kernel, on Linux.
type Point struct{ config Config }

// An Interval is what a Point counted between two rotations.
type Interval struct {
	Aggregator *lda.Aggregator
	Sketch     *lds.Sketch
	Counters   Counters
	Start, End int64
	ClockError int64
}

// New returns [ErrUnsupported].
func New(c Config) (*Point, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("kernel: %w: want Linux", ErrUnsupported)
}

// Config returns the zero Config.
func (p *Point) Config() Config { return p.config }

// Attach returns [ErrUnsupported].
func (p *Point) Attach(name string, hook Hook) error { return fmt.Errorf("kernel: %w", ErrUnsupported) }

// Rotate returns [ErrUnsupported].
func (p *Point) Rotate() (*Interval, error) { return nil, fmt.Errorf("kernel: %w", ErrUnsupported) }

// Release returns [ErrUnsupported].
func (p *Point) Release(i *Interval) error { return fmt.Errorf("kernel: %w", ErrUnsupported) }

// Close does nothing.
func (p *Point) Close() error { return nil }
