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

// blockTime is the number of milliseconds after which the kernel hands over a
// block of packets that is not full.
const blockTime = 10

// A tap reports to a point what the rings at one place see.
type tap struct {
	place  place
	point  *hoplag.Point
	to     netip.Prefix // count only packets to these addresses, if it is valid
	rings  []*ring
	tables []*table // what each ring saw
	keeper *keeper  // nil without -keep
	done   sync.WaitGroup
	end    sync.Once

	counted, others, bundles atomic.Uint64 // since the beginning
	failures                 failures
}

// openTap opens a place's rings, and starts reporting to the point.
func openTap(p place, o *options, point *hoplag.Point, keeper *keeper) (*tap, error) {
	t := &tap{place: p, point: point, keeper: keeper, to: o.net}
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
			t.failures.add(r.run(func(packets iter.Seq[captured]) { t.take(flows, packets) }))
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
	if t.keeper != nil {
		t.keeper.Lock()
		defer t.keeper.Unlock()
	}
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
		packet := kernel.Digest(seed, &frame)
		t.point.RecordIn(id, time.Unix(0, c.at), packet)
		if t.keeper != nil {
			t.keeper.add(id, packet, c.at)
		}
	}
	t.counted.Add(counted)
	t.others.Add(others)
	t.bundles.Add(bundles)
}

// drops returns how many packets the kernel found no room for.
func (t *tap) drops() (n uint64) {
	for _, r := range t.rings {
		n += r.drops()
	}
	return n
}

// stop ends the capture. What the kernel has put into the rings is still
// taken.
func (t *tap) stop() {
	t.end.Do(func() {
		for _, r := range t.rings {
			t.failures.add(r.drain())
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
	return t.failures.take()
}

// problem returns what went wrong since the last call, such as that the
// interface is down.
func (t *tap) problem() error {
	err := t.failures.take()
	for _, r := range t.rings {
		err = errors.Join(err, r.problem())
	}
	if err != nil {
		err = fmt.Errorf("%v: %w", t.place, err)
	}
	if t.keeper != nil {
		err = errors.Join(err, t.keeper.failures.take())
	}
	return err
}
