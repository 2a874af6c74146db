//go:build linux

package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/internal/programs"
)

// A watch is a tap at each of the two places, and what they reported so far.
type watch struct {
	o      *options
	points [2]*hoplag.Point
	taps   [2]*tap
	stores [2]*colate.Store

	mu      sync.Mutex
	flows   programs.FlowTable // that passed, with -keep
	written time.Time          // when they were last written
	last    seen
}

// settle is how much longer the second place is watched than the first, for
// packets on their way.
const settle = time.Second

// keepConfig describes the counters of each place that -keep stores every
// second: at most 128 KiB, a few bytes for each counter that saw something.
var keepConfig = colate.Config{
	Counters: 16384, PerFlow: 16, Bits: 64, CountBits: 14, DigestBits: 20, Shift: 6, OneIn: 64, Samples: 4096, Period: int64(time.Second),
}

// watchRings measures with rings.
func watchRings(ctx context.Context, o *options, out *output) (err error) {
	w := &watch{o: o, written: time.Now()}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.open(out); err != nil {
		return err
	}
	following, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	ctx, end := o.begin(ctx)
	go func() {
		<-ctx.Done()
		w.taps[0].stop()
		pause(following, settle)
		w.taps[1].stop()
		pause(following, 2*settle) // until losses are known to be losses
		cancel()
		close(stopped)
	}()
	ask := func(_ context.Context, request []byte) ([]byte, error) { return w.points[0].Answer(request) }
	for r := range w.points[1].FollowOver(following, ask) {
		err = out.row(w.row(r))
		if o.keep != "" && time.Since(w.written) > time.Minute {
			err = errors.Join(err, w.writeFlows())
		}
		if err != nil {
			cancel()
		}
	}
	end()
	<-stopped
	s := w.seen()
	return errors.Join(err, out.end(&total{seen: s, Missing: int64(s.Sent+s.Dropped[0]) - int64(s.Received+s.Dropped[1])}))
}

// pause waits for a time, or until the context is done.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// open opens everything, the second place before the first one, so that
// nothing looks lost that was not.
func (w *watch) open(out *output) (err error) {
	w.o.key = cmp.Or(w.o.key, rand.Text())
	places := [2]place{w.o.from, w.o.to}
	for _, i := range []int{1, 0} {
		if w.points[i], err = hoplag.NewPoint(w.o.config(places[i])); err != nil {
			return err
		}
		var keep func(programs.FlowRecord)
		if w.o.keep != "" {
			if err := w.keepAt(i, out); err != nil {
				return err
			}
			keep = func(f programs.FlowRecord) { w.keepFlow(f, i) }
		}
		if w.taps[i], err = openTap(places[i], w.o, w.points[i], keep); err != nil {
			return err
		}
	}
	if w.o.keep != "" {
		out.say("keeping what passes; ask later: go run ./examples/colate rank -dir %s -seed %d", w.o.keep, w.points[0].Seed())
	}
	return nil
}

// keepAt keeps what passes a place where examples/colate looks for it.
func (w *watch) keepAt(i int, out *output) (err error) {
	dir := filepath.Join(w.o.keep, [2]string{"ingress", "egress"}[i])
	if w.stores[i], err = colate.OpenStore(dir, colate.StoreOptions{}); err != nil {
		return err
	}
	for _, m := range w.stores[i].Summary().Missing {
		out.say("damaged: %v", m.Err)
	}
	return w.points[i].Keep(w.stores[i], keepConfig, func(err error) { w.taps[i].failed(err) })
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
		if w.stores[i] != nil {
			err = errors.Join(err, w.stores[i].Close())
		}
	}
	if w.o.keep != "" && w.taps[0] != nil {
		err = errors.Join(err, w.writeFlows())
	}
	return err
}

// maxFlows is the largest number of flows that the program remembers.
const maxFlows = 1 << 18

// keepFlow adds to what is known about a flow. Those count that arrived.
func (w *watch) keepFlow(f programs.FlowRecord, place int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f.Packets *= uint64(place)
	if w.flows.Len() < maxFlows {
		w.flows.Add(f)
	}
}

// writeFlows writes the list of flows where examples/colate looks for it.
func (w *watch) writeFlows() error {
	for _, t := range w.taps {
		t.flows.keepAll()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written = time.Now()
	return w.flows.Write(w.o.keep)
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
	d := &row.Report.Forth
	row.Sent, row.Received = d.Sent, d.Received
	d.Flows = d.Flows[:min(len(d.Flows), mostFlows)]
	for _, f := range d.Flows {
		row.Names = append(row.Names, w.taps[1].flows.name(f.Flow))
	}
	row.problem(r.Err, w.taps[0].problem(), w.taps[1].problem())
	return row
}
