package estimate

import (
	"errors"
	"sync/atomic"
)

var (
	// ErrBusy means that the synopsis of an earlier interval has not been released, so that there is none for
	// the next. The present interval continues.
	ErrBusy = errors.New("the synopsis of an earlier interval is still in use")
	// ErrRelease means that no reader has what was released: it belongs to another Rotation, is being updated,
	// or was released before.
	ErrRelease = errors.New("released, but not handed out by this rotation")
)

// A Rotation measures one interval after another without a pause. It holds two synopses: the writer updates one
// while a reader has the other, which holds the previous interval.
//
//	r, err := estimate.NewRotation(lda.New, config)
//	r.Active().Update(packet, now) // the writer, for every packet
//	done, err := r.Rotate()        // the writer, at the end of an interval
//	r.Release(done)                // the reader, when it has sent or compared it
//
// Only one goroutine, the writer, may call Active and Rotate. Any goroutine may
// call Release. They never wait for each other. The zero value panics.
type Rotation[S resetter] struct {
	synopses [2]S
	active   int               // which of them is being updated
	free     atomic.Bool       // the other one is empty
	out      atomic.Pointer[S] // or with a reader; if neither, it is being emptied
}

// A resetter is a synopsis that can be emptied.
type resetter interface {
	comparable
	Reset()
}

// NewRotation returns a Rotation of two synopses that create makes from the config, or the error of create.
func NewRotation[S resetter, C any](create func(C) (S, error), config C) (*Rotation[S], error) {
	r := new(Rotation[S])
	for i := range r.synopses {
		s, err := create(config)
		if err != nil {
			return nil, err
		}
		r.synopses[i] = s
	}
	r.free.Store(true)
	return r, nil
}

// Active returns the synopsis of the present interval, for the writer to update.
func (r *Rotation[S]) Active() S {
	s := r.synopses[r.active]
	if none := *new(S); s == none {
		panic("estimate: the zero Rotation, which NewRotation did not make")
	}
	return s
}

// Rotate ends the interval. It makes the other synopsis active and returns the one that was active, which the
// caller owns until releasing it. It takes constant time. If the other synopsis has not been released, the
// error is [ErrBusy] and the present interval continues.
func (r *Rotation[S]) Rotate() (S, error) {
	r.Active() // panics, if it is the zero value
	if !r.free.CompareAndSwap(true, false) {
		return *new(S), ErrBusy
	}
	done := &r.synopses[r.active]
	r.active = 1 - r.active
	r.out.Store(done)
	return *done, nil
}

// Release empties a synopsis that Rotate returned and gives it back. For
// anything else it does nothing and returns [ErrRelease].
func (r *Rotation[S]) Release(s S) error {
	if done := r.out.Load(); done == nil || *done != s || !r.out.CompareAndSwap(done, nil) {
		return ErrRelease
	}
	s.Reset()
	r.free.Store(true)
	return nil
}
