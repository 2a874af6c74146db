package estimate

import (
	"errors"
	"sync/atomic"
)

var (
	// ErrBusy: the synopsis of an earlier interval has not been given back, so
	// there is none to go on with. The present interval continues.
	ErrBusy = errors.New("the synopsis of an earlier interval is still in use")
	// ErrRelease: what was released is not out with a reader: it belongs to
	// another Rotation, is being updated, or was released before.
	ErrRelease = errors.New("released, but not handed out by this rotation")
)

// A Rotation measures one interval after another without a pause. It holds two
// synopses: while the writer updates one, a reader has the other, which holds
// the interval before.
//
//	r, err := lda.NewRotation(config)
//	r.Active().Update(packet, now) // the writer, for every packet
//	done, err := r.Rotate()        // the writer, at the end of an interval
//	r.Release(done)                // the reader, when it has sent or compared it
//
// Active and Rotate are for one goroutine, the writer. Release is for any
// goroutine. Neither ever waits for the other.
type Rotation[S Resetter] struct {
	synopses [2]S
	states   [2]atomic.Uint32
	active   uint32 // index of the one that is updated
}

// A Resetter is a synopsis that can be emptied.
type Resetter interface {
	comparable
	Reset()
}

// States of a synopsis. Only the writer makes one active or hands it out, and
// only a Release that found it out empties it.
const (
	empty uint32 = iota
	active
	out
	emptying
)

// NewRotation returns a Rotation of two synopses that make returns. It passes
// on make's error. It is for the packages of synopses, which each have their
// own NewRotation.
func NewRotation[S Resetter](make func() (S, error)) (*Rotation[S], error) {
	r := new(Rotation[S])
	for i := range r.synopses {
		s, err := make()
		if err != nil {
			return nil, err
		}
		r.synopses[i] = s
	}
	r.states[r.active].Store(active)
	return r, nil
}

// Active is the synopsis of the present interval, for the writer to update.
func (r *Rotation[S]) Active() S { return r.synopses[r.active] }

// Rotate ends the interval. It returns the synopsis that was active, which is
// the caller's until it is released, and makes the other one active. It takes
// the same time whatever their size. If the other one is not back yet, the
// error is [ErrBusy], and the present interval continues.
func (r *Rotation[S]) Rotate() (S, error) {
	next := 1 - r.active
	if !r.states[next].CompareAndSwap(empty, active) {
		var none S
		return none, ErrBusy
	}
	done := r.active
	r.active = next
	r.states[done].Store(out)
	return r.synopses[done], nil
}

// Release empties a synopsis that Rotate returned and gives it back. For
// anything else the error is [ErrRelease], and nothing is touched.
func (r *Rotation[S]) Release(s S) error {
	for i := range r.synopses {
		if r.synopses[i] == s && r.states[i].CompareAndSwap(out, emptying) {
			s.Reset()
			r.states[i].Store(empty)
			return nil
		}
	}
	return ErrRelease
}
