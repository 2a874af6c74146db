//go:build linux

package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/programs"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/kernel"
)

// inside is a point in the kernel at each of the two places.
type inside struct {
	places [2]place
	points [2]*kernel.Point
	all    *lda.Accumulator // of a second
	cuts   int              // since the points began
	sum    seen             // since the beginning
	now    second
	ended  []second // that wait until it is known what was on its way when they ended
}

// A second is what counters say of a row.
type second struct {
	seen
	began   time.Time
	length  time.Duration // or more, on a busy machine
	begins  bool
	problem error // the latest
}

// settling is the number of cuts for which packets that were on their way when the
// points began may be counted as extra: twice as long as package lda waits for a packet.
const settling = 16

// watchKernel measures with points in the kernel.
func watchKernel(ctx context.Context, o *options, out *output) (err error) {
	m := &inside{places: [2]place{o.from, o.to}}
	defer m.close()
	if err := m.open(cmp.Or(o.key, rand.Text())); err != nil {
		return err
	}
	ctx, stop := o.begin(ctx)
	defer stop()
	tick := time.NewTicker(o.cut)
	defer tick.Stop()
	m.now.began = time.Now()
	var end time.Time // set once only the fate of packets on their way is still open
	for end.IsZero() || len(m.ended) > 0 && time.Now().Before(end) {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		switch err := errors.Join(m.compare()...); {
		case err == nil:
		case errors.Is(err, kernel.ErrOffload), errors.Is(err, kernel.ErrStep), errors.Is(err, kernel.ErrDetached):
			m.now.problem = err
		default:
			return err
		}
		over := ctx.Err() != nil
		if over || end.IsZero() && time.Since(m.now.began) >= time.Second {
			m.end()
		}
		if over {
			ctx, end = context.WithoutCancel(ctx), time.Now().Add(settle)
		}
		for m.due() {
			if err := out.row(m.row()); err != nil {
				return err
			}
		}
	}
	for len(m.ended) > 0 {
		if err := out.row(m.row()); err != nil {
			return err
		}
	}
	return out.end(&total{seen: m.sum, Missing: int64(m.sum.Sent) - int64(m.sum.Received)})
}

// open loads the points and attaches them.
func (m *inside) open(key string) (err error) {
	c := kernel.DefaultConfig
	c.Clock = kernel.Boot // one clock for both
	c.LDA = cells
	c.Seed = uint64(hashing.Digest(0, []byte(key)))
	for i := range m.points {
		if m.points[i], err = kernel.New(c); err == nil {
			err = m.attach(i)
		}
		if err != nil {
			return fmt.Errorf("%v: %w", m.places[i], permitted(err))
		}
	}
	if m.all, err = lda.NewAccumulator(m.points[0].Config().LDA); err != nil {
		return err
	}
	// Both begin with one rotation: what only one of them has counted so far, because
	// it was attached first, is not a loss.
	of, errs := m.rotate()
	m.release(of)
	m.all.Gap()
	return errors.Join(errs...)
}

func (m *inside) attach(i int) error {
	p, hook := m.places[i], kernel.Ingress
	if p.out {
		hook = kernel.Egress
	}
	return programs.In(p.namespace, func() error { return m.points[i].Attach(p.device, hook) })
}

func (m *inside) close() {
	for _, p := range m.points {
		if p != nil {
			p.Close()
		}
	}
}

// rotate ends an interval at both points, at the second one first, so that no
// packet that passes in between seems to arrive before it is sent.
func (m *inside) rotate() (of [2]*kernel.Interval, errs []error) {
	errs = make([]error, len(of))
	m.points[1].Cut()
	m.points[0].Cut()
	for i, p := range m.points {
		of[i], errs[i] = p.Rotate()
	}
	return of, errs
}

func (m *inside) release(of [2]*kernel.Interval) {
	for i, interval := range of {
		if interval != nil {
			m.points[i].Release(interval)
		}
	}
}

// compare adds an interval to the others. Packets on their way do not count as
// lost. If a place is gone, it is looked for again.
func (m *inside) compare() []error {
	of, errs := m.rotate()
	defer m.release(of)
	if of[0] == nil || of[1] == nil {
		return errs
	}
	for _, interval := range of {
		c := interval.Counters
		m.now.PassedOver += c.NotIP + c.Truncated + c.Malformed + c.Deep
		m.now.Bundles += c.Bundles
	}
	m.now.begins = m.now.begins || m.cuts < settling
	m.cuts++
	if err := m.all.Add(of[0].Start, of[0].End, of[0].Aggregator, of[1].Aggregator); err != nil {
		return append(errs, err)
	}
	for i, err := range errs {
		if errors.Is(err, kernel.ErrDetached) && m.attach(i) == nil {
			m.all.Gap()
			m.cuts = 0
		}
	}
	return errs
}

// end ends a second.
func (m *inside) end() {
	m.all.End()
	now := time.Now()
	m.now.length = now.Sub(m.now.began)
	m.ended = append(m.ended, m.now)
	m.now = second{began: now}
}

// due reports whether the first second that has ended is fully known, or has waited for too long.
func (m *inside) due() bool {
	if len(m.ended) == 0 || m.all.Settled() || len(m.ended) > 3 {
		return len(m.ended) > 0
	}
	r, _ := m.all.Estimate()
	return r.Sent+r.Received+r.Outstanding == 0
}

// row returns what is known of the first second that has ended.
func (m *inside) row() *row {
	of := m.ended[0]
	m.ended = m.ended[1:]
	result, err := m.all.Estimate()
	d := hoplag.Traffic{
		Mean: result.Mean, Sent: result.Sent, Received: result.Received, Lost: result.Lost, Err: err,
		StdDev: result.StdDev, Extra: result.Extra, Outstanding: result.Outstanding,
	}
	switch certain := result.MeanInterval(0.999); {
	case d.Sent+d.Received == 0:
		d.Err = hoplag.ErrIdle
	case err == nil && certain.High < 0:
		d.Err = turned(m.places[0], m.places[1])
	case err == nil:
		d.Mean, d.MeanInterval95, d.Certain = max(0, d.Mean), result.MeanInterval(0.95), certain
		d.MeanInterval95.Low, d.Certain.Low = max(0, d.MeanInterval95.Low), max(0, d.Certain.Low)
		for _, p := range []float64{0.5, 0.9, 0.99} {
			if q, err := m.all.Quantile(p, 0.95); err == nil {
				d.Quantiles = append(d.Quantiles, q)
			}
		}
	}
	of.Sent, of.Received = d.Sent, d.Received
	m.sum = m.sum.plus(of.seen, 1)
	if of.begins {
		d.Lost, d.Extra, d.LossUnknown = 0, 0, true
	}
	m.all.Reset()
	r := &row{seen: of.seen, Report: hoplag.Report{
		Number: of.began.Unix(), Start: of.began, Length: of.length, From: m.places[0].String(), To: m.places[1].String(),
		Begins: of.begins, Forth: d, Back: hoplag.Traffic{Err: hoplag.ErrIdle},
	}}
	r.problem(of.problem)
	return r
}
