//go:build linux

package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/estimate"
)

// A watch is a tap at each of the two places, and what they reported so far.
type watch struct {
	o      *options
	points [2]*hoplag.Point
	taps   [2]*tap
	last   seen
}

// settle is the longest wait for the last rows, some of which take three reports.
const settle = 6 * time.Second

// watchRings measures with rings.
func watchRings(ctx context.Context, o *options, out *output) (err error) {
	w := &watch{o: o}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.open(); err != nil {
		return err
	}
	following, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	ctx, end := o.begin(ctx)
	var over atomic.Int64 // when nothing more was expected
	go func() {
		w.until(ctx)
		w.atOnce(func() error {
			now := time.Now().UnixNano()
			w.taps[0].until, w.taps[1].until = now, now
			return nil
		})
		var both sync.WaitGroup
		both.Go(w.taps[1].stop)
		both.Go(w.taps[0].stop)
		both.Wait()
		over.Store(time.Now().UnixNano())
		select {
		case <-following.Done():
		case <-time.After(settle):
		}
		cancel()
		close(stopped)
	}()
	ask := func(_ context.Context, request []byte) ([]byte, error) { return w.points[0].Answer(request) }
	for r := range w.points[1].Follow(following, ask) {
		err = out.row(w.row(r))
		if at := over.Load(); err != nil || at > 0 && r.Start.Add(r.Length).UnixNano() >= at {
			cancel()
		}
	}
	end()
	<-stopped
	s := w.seen()
	return errors.Join(err, out.end(&total{seen: s, Missing: int64(s.Sent+s.Dropped[0]) - int64(s.Received+s.Dropped[1])}))
}

// until waits until the context is done, and looks for interfaces that went away.
func (w *watch) until(ctx context.Context) {
	tick := time.NewTicker(w.o.cut)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			w.taps[1].look()
			w.taps[0].look()
		}
	}
}

// open opens everything, and begins at both places at once, so that nothing looks lost that was not, and nothing
// that was lost is missed.
func (w *watch) open() (err error) {
	w.o.key = cmp.Or(w.o.key, rand.Text())
	places := [2]place{w.o.from, w.o.to}
	for i := range places {
		if w.points[i], err = hoplag.NewPoint(w.o.config(places[i])); err != nil {
			return err
		}
		if w.taps[i], err = openTap(places[i], w.o, w.points[i]); err != nil {
			return err
		}
	}
	return w.atOnce(func() error {
		for i, t := range w.taps {
			if err := t.ring.begin(); err != nil {
				return fmt.Errorf("%v: %w", places[i], err)
			}
		}
		now := time.Now().UnixNano()
		w.taps[0].since, w.taps[1].since = now, now
		return nil
	})
}

// atOnce calls a function while neither tap counts, so that both begin, and end, at the same time.
func (w *watch) atOnce(f func() error) error {
	for _, t := range w.taps {
		t.flows.Lock()
		defer t.flows.Unlock()
	}
	return f()
}

// close closes everything that was opened.
func (w *watch) close() (err error) {
	for i := range w.taps {
		if w.taps[i] != nil {
			err = errors.Join(err, w.taps[i].close())
		}
		if w.points[i] != nil {
			w.points[i].Close()
		}
	}
	return err
}

// seen adds up what both taps saw since the beginning.
func (w *watch) seen() (s seen) {
	for i, t := range w.taps {
		_, s.Dropped[i] = t.ring.statistics()
		s.PassedOver += t.others.Load()
		s.Bundles += t.bundles.Load()
	}
	s.Sent, s.Received = w.taps[0].counted.Load(), w.taps[1].counted.Load()
	return s
}

// row returns what a report and the taps say about a second.
func (w *watch) row(r hoplag.Report) *row {
	now := w.seen()
	row := &row{Report: r, seen: now.plus(w.last, -1)}
	w.last = now
	for i, t := range w.taps {
		row.Dropped[i] = t.ring.droppedBefore(r.Start.Add(r.Length))
	}
	d := &row.Report.Forth
	row.Sent, row.Received = d.Sent, d.Received
	switch {
	case !errors.Is(d.Err, estimate.ErrClocks), d.Mean >= 0 && row.Dropped != [2]uint64{}: // records were late then
	case d.Mean < 0:
		d.Err = turned(w.o.from, w.o.to)
	default: // late records hide how early packets come
		d.Err = fmt.Errorf("%w, or are the places the wrong way round?", d.Err)
	}
	d.Flows = d.Flows[:min(len(d.Flows), mostFlows)]
	for _, f := range d.Flows {
		row.Names = append(row.Names, w.taps[1].flows.name(f.Flow))
	}
	row.problem(r.Err, w.taps[0].problem(), w.taps[1].problem())
	return row
}
