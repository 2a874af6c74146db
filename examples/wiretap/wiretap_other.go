//go:build !linux

package main

import (
	"errors"
	"iter"

	"github.com/hoplag/hoplag/lda/kernel"
)

func in(_ string, f func() error) error { return f() }

type captured struct {
	at     int64
	frame  []byte
	bundle bool
}

type ring struct{}

func openRings(place, int, int, bool) ([]*ring, error) {
	return nil, errors.Join(errors.New("it needs Linux"), kernel.ErrUnsupported)
}

func (r *ring) run(func(iter.Seq[captured])) error { return nil }
func (r *ring) drops() uint64                      { return 0 }
func (r *ring) problem() error                     { return nil }
func (r *ring) drain() error                       { return nil }
func (r *ring) stop()                              {}
func (r *ring) close()                             {}

type batch struct{ frames [maxBurst][frameSize]byte }

func newBatch(string) (*batch, error) { return nil, kernel.ErrUnsupported }
func (b *batch) send(int) error       { return nil }
func (b *batch) close()               {}
