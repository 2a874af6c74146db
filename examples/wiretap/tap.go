//go:build linux

package main

import (
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/programs"
	"github.com/hoplag/hoplag/lda/kernel"
)

// A tap reports to a point what the rings at one place see.
type tap struct {
	place  place
	point  *hoplag.Point
	to     netip.Prefix // count only packets to these addresses, if it is valid
	rings  []*ring
	tables []*table // what each ring saw
	done   sync.WaitGroup
	end    sync.Once

	counted, others, bundles atomic.Uint64 // since the beginning

	mu       sync.Mutex
	failures error // since somebody looked
}

// openTap opens a place's rings, and starts reporting to the point.
func openTap(p place, o *options, point *hoplag.Point, keep func(programs.FlowRecord)) (*tap, error) {
	t := &tap{place: p, point: point, to: o.net}
	err := programs.In(p.namespace, func() (err error) {
		t.rings, err = openRings(p, o.rings, o.buffer<<20, o.promiscuous)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, r := range t.rings {
		flows := &table{keep: keep}
		t.tables = append(t.tables, flows)
		t.done.Go(func() {
			t.failed(r.run(func(packets iter.Seq[captured]) { t.take(flows, packets) }))
		})
	}
	return t, nil
}

// take reports a block of packets to the point. It belongs to one ring.
//
// Packets are identified without their transport checksum, which a sending
// host leaves to the network card.
func (t *tap) take(flows *table, packets iter.Seq[captured]) {
	var frame hashing.Frame
	var counted, others, bundles uint64
	seed := t.point.Seed()
	flows.Lock()
	defer flows.Unlock()
	for c := range packets {
		switch {
		case c.bundle:
			bundles++
			continue
		case frame.ParseWith(hashing.LinkEthernet, c.frame, &hashing.Tunnels{}) != nil:
			others++
			continue
		case t.to.IsValid() && !t.to.Contains(frame.Tuple.Destination().Addr().Unmap()):
			others++
			continue
		}
		counted++
		id := frame.Tuple.Flow(seed)
		flows.add(id, &frame.Tuple, c.at)
		t.point.RecordIn(id, time.Unix(0, c.at), kernel.Digest(seed, &frame))
	}
	t.counted.Add(counted)
	t.others.Add(others)
	t.bundles.Add(bundles)
}

// drops returns how many packets the kernel found no room for.
func (t *tap) drops() (n uint64) {
	for _, r := range t.rings {
		_, dropped := r.statistics()
		n += dropped
	}
	return n
}

// stop ends the capture. What the kernel has put into the rings is still
// taken.
func (t *tap) stop() {
	t.end.Do(func() {
		for _, r := range t.rings {
			t.failed(r.drain())
			r.stop()
		}
		t.done.Wait()
	})
}

// close ends the capture and frees the rings.
func (t *tap) close() error {
	t.stop()
	for _, r := range t.rings {
		r.close()
	}
	t.rings = nil
	return t.problem()
}

// failed keeps an error for problem.
func (t *tap) failed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = errors.Join(t.failures, err)
}

// problem returns what went wrong since the last call, such as that the
// interface is down.
func (t *tap) problem() error {
	t.mu.Lock()
	err := t.failures
	t.failures = nil
	t.mu.Unlock()
	for _, r := range t.rings {
		err = errors.Join(err, r.problem())
	}
	if err != nil {
		err = fmt.Errorf("%v: %w", t.place, err)
	}
	return err
}
