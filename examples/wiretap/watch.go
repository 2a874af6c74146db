package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/hashing"
)

// A watch is a tap at each of the two places, and what they reported so far.
type watch struct {
	o       *options
	places  [2]place
	points  [2]*hoplag.Point
	taps    [2]*tap
	keepers [2]*keeper
	written time.Time // when the flows were last written

	last seen
}

// settle is how much longer the second place is watched than the first, for
// packets on their way.
const settle = time.Second

// watchRings measures with rings.
func watchRings(ctx context.Context, o *options, out *output, stderr io.Writer) (err error) {
	w := &watch{o: o, places: [2]place{o.from, o.to}, written: time.Now()}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.open(); err != nil {
		return err
	}
	if o.keep != "" {
		const later = "wiretap: keeping what passes; ask later: go run ./examples/colate rank -dir %s -seed %d\n"
		fmt.Fprintf(stderr, later, o.keep, w.points[0].Seed())
		for _, k := range w.keepers {
			for _, d := range k.store.Damages() {
				fmt.Fprintf(stderr, "wiretap: damaged: %v\n", d)
			}
		}
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
		if err = errors.Join(out.row(w.row(&r)), w.remember()); err != nil {
			cancel()
		}
	}
	end()
	<-stopped
	return errors.Join(err, out.end(w.total()))
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
func (w *watch) open() (err error) {
	key := w.o.key
	if key == "" {
		key = rand.Text()
	}
	for i, p := range w.places {
		config := hoplag.Config{
			Key: hoplag.NewKey(key), Name: p.String(), Flows: w.o.flows, Cut: w.o.cut, Report: time.Second, Cells: cells, History: 16 << 20,
		}
		if w.points[i], err = hoplag.NewPoint(config); err != nil {
			return err
		}
	}
	for _, i := range []int{1, 0} {
		if w.o.keep != "" {
			if w.keepers[i], err = newKeeper(w.o.keep, storeNames[i], w.o.epoch, w.points[i].Seed()); err != nil {
				return err
			}
		}
		if w.taps[i], err = openTap(w.places[i], w.o, w.points[i], w.keepers[i]); err != nil {
			return err
		}
	}
	return nil
}

// close closes everything that was opened.
func (w *watch) close() (err error) {
	for i := range w.taps {
		if w.taps[i] != nil {
			err = errors.Join(err, w.taps[i].close())
		}
		if w.keepers[i] != nil {
			err = errors.Join(err, w.keepers[i].close())
		}
		if w.points[i] != nil {
			w.points[i].Close()
		}
	}
	if w.o.keep != "" && w.taps[0] != nil {
		err = errors.Join(err, writeFlows(w.o.keep, w.taps[0].tables, w.taps[1].tables))
	}
	return err
}

// remember regularly writes the list of flows, or forgets those that are over.
func (w *watch) remember() error {
	if time.Since(w.written) < time.Minute {
		return nil
	}
	w.written = time.Now()
	if w.o.keep != "" {
		return writeFlows(w.o.keep, w.taps[0].tables, w.taps[1].tables)
	}
	for _, t := range w.taps {
		for _, flows := range t.tables {
			flows.forget(w.written.Add(-time.Minute).UnixNano())
		}
	}
	return nil
}

// seen adds up what both taps saw since the beginning.
func (w *watch) seen() seen {
	from, to := w.taps[0], w.taps[1]
	return seen{
		Sent: from.counted.Load(), Received: to.counted.Load(),
		DroppedFrom: from.drops(), DroppedTo: to.drops(),
		PassedOver: from.others.Load() + to.others.Load(), Bundles: from.bundles.Load() + to.bundles.Load(),
	}
}

// row returns what a report and the taps say about a second.
func (w *watch) row(report *hoplag.Report) *row {
	now := w.seen()
	d := &report.Forth
	r := &row{Time: report.Start, seen: now.less(w.last)}
	w.last = now
	r.Sent, r.Received, r.Lost, r.Extra, r.UnknownFlows = d.Sent, d.Received, d.Lost, d.Extra, d.UnknownFlows
	r.Begins = report.Begins
	problem := errors.Join(report.Err, w.taps[0].problem(), w.taps[1].problem())
	if d.Err != nil && !errors.Is(d.Err, hoplag.ErrIdle) {
		problem = errors.Join(problem, d.Err)
	}
	r.problem(problem)
	if d.Err != nil {
		return r
	}
	r.Mean, r.Low, r.High, r.StdDev = known(d.Mean), known(d.MeanInterval95.Low), known(d.MeanInterval95.High), known(d.StdDev)
	for _, q := range d.Quantiles {
		r.quantile(q.P, q.Delay)
	}
	for _, f := range d.Flows[:min(len(d.Flows), mostFlows)] {
		r.Flows = append(r.Flows, flowRow{
			Flow: w.name(f.Flow), Mean: f.Mean, Low: known(f.MeanInterval95.Low), High: known(f.MeanInterval95.High),
			Share: f.Share, Sent: f.Sent, Lost: f.Lost, Overdue: f.Overdue,
		})
	}
	return r
}

// name returns a flow's name, if it is known yet.
func (w *watch) name(id hashing.Flow) string {
	if f, ok := find(w.taps[1].tables, id); ok {
		return name(&f.tuple)
	}
	return fmt.Sprintf("%016x", uint64(id))
}

// total returns the total of what passed.
func (w *watch) total() *total {
	s := w.seen()
	return &total{seen: s, Missing: int64(s.Sent+s.DroppedFrom) - int64(s.Received+s.DroppedTo)}
}
