package lds

import "errors"

// ErrBusy: the sketch of the previous interval has not been given back, so
// there is none for the next. The present interval goes on.
var ErrBusy = errors.New("lds: the previous interval's sketch is still in use")

// A Pair is two sketches in turn, for one interval after another without a
// pause: while one is updated, the other, which has the interval before, is
// read. The writer calls Active and Rotate, from one goroutine; Release may be
// called from another.
//
// Both points rotate at the same time by their clocks, or on a mark in the
// stream. A packet that is under way at that moment is in different intervals
// at the two points; the cells it fell in then are lossy or reordered in both
// intervals, and are left out of the estimates.
type Pair struct {
	config Config
	active *Sketch
	spare  chan *Sketch // holds the other sketch, empty, unless a reader has it
}

// NewPair returns a pair of empty sketches. The error wraps
// [estimate.ErrConfig].
func NewPair(c Config) (*Pair, error) {
	active, err := New(c)
	if err != nil {
		return nil, err
	}
	p := &Pair{config: c, active: active, spare: make(chan *Sketch, 1)}
	p.spare <- newSketch(c)
	return p, nil
}

// Active is the sketch of the present interval, to be updated.
func (p *Pair) Active() *Sketch { return p.active }

// Rotate ends the interval: it returns the sketch that was active, which is
// the caller's until it gives it to Release, and makes the other active. It
// takes the same time whatever the size. If the other is not back yet it returns
// ErrBusy, and nothing has changed.
func (p *Pair) Rotate() (*Sketch, error) {
	select {
	case next := <-p.spare:
		done := p.active
		p.active = next
		return done, nil
	default:
		return nil, ErrBusy
	}
}

// Release empties a sketch that Rotate returned and gives it back. It returns
// [estimate.ErrMismatch] for a sketch of another Config.
func (p *Pair) Release(s *Sketch) error {
	if s.config != p.config {
		return mismatch(s.config, p.config)
	}
	s.Reset()
	select {
	case p.spare <- s:
		return nil
	default:
		return errors.New("lds: a sketch was released that this pair did not hand out")
	}
}
