//go:build !linux

package main

import (
	"context"
	"fmt"

	"github.com/hoplag/hoplag/lda/kernel"
)

const device = ""

type cable struct{ sender, receiver string }

func newCable(float64) (*cable, error)          { return nil, explain(fmt.Errorf("%w", kernel.ErrUnsupported)) }
func (c *cable) remove()                        {}
func in(namespace string, f func() error) error { return f() }

type traffic struct{}

func newTraffic(*cable) (*traffic, error)                { return nil, kernel.ErrUnsupported }
func (t *traffic) send(context.Context, float64)         {}
func (t *traffic) receive()                              {}
func (t *traffic) row(bool) (mean *float64, lost *int64) { return nil, nil }
func (t *traffic) close()                                {}
