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
	"github.com/hoplag/hoplag/lda/kernel"
)

// A tap tells a point of what the rings at one place see.
type tap struct {
	place  place
	point  *hoplag.Point
	to     netip.Prefix // count packets to these addresses only, if it is valid
	rings  []*ring
	tables []*table // what each ring saw
	done   sync.WaitGroup
	counters
}

// counters are what passed a tap since the beginning.
type counters struct {
	counted, others, bundles atomic.Uint64

	mu  sync.Mutex
	err error // why a ring ended
}

// openTap opens a place's rings, and begins to tell the point of what they see.
func openTap(p place, o *options, point *hoplag.Point) (*tap, error) {
	t := &tap{place: p, point: point, to: o.net}
	err := in(p.namespace, func() (err error) {
		t.rings, err = openRings(p, o.rings, o.buffer<<20, o.promiscuous)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, r := range t.rings {
		flows := newTable(maxFlows)
		t.tables = append(t.tables, flows)
		t.done.Go(func() {
			if err := r.run(func(packets iter.Seq[captured]) { t.take(flows, packets) }); err != nil {
				t.mu.Lock()
				defer t.mu.Unlock()
				t.err = errors.Join(t.err, err)
			}
		})
	}
	return t, nil
}

// take tells the point of a block of packets. It is one ring's.
//
// Packets are who they are without their transport checksum, which a sending
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
		case frame.ParseDepth(hashing.LinkEthernet, c.frame, 0) != nil:
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

// drops is how many packets the kernel found no room for.
func (t *tap) drops() (n uint64) {
	for _, r := range t.rings {
		n += r.drops()
	}
	return n
}

// stop ends the capture.
func (t *tap) stop() error {
	for _, r := range t.rings {
		r.stop()
	}
	t.done.Wait()
	t.drops() // the last of them
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// close ends the capture and frees the rings.
func (t *tap) close() error {
	err := t.stop()
	for _, r := range t.rings {
		r.close()
	}
	t.rings = nil
	return err
}

// problem is what an interface suffers from, such as that it is down.
func (t *tap) problem() error {
	for _, r := range t.rings {
		if err := r.problem(); err != nil {
			return fmt.Errorf("%v: %w", t.place, err)
		}
	}
	return nil
}
