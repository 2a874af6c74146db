//go:build linux

package main

import (
	"encoding/binary"
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
	place    place
	record   func(hashing.Flow, time.Time, ...hashing.Packet) // to a point
	seed     uint64
	identify *hashing.Identifier
	to       netip.Prefix // count only packets to these addresses, if it is valid
	rings    []*ring
	tables   []*table // what each ring saw
	done     sync.WaitGroup
	end      sync.Once

	counted, others, bundles atomic.Uint64 // since the beginning

	mu       sync.Mutex
	failures error // since somebody looked
}

// openTap opens a place's rings, and starts reporting to the point.
func openTap(p place, o *options, point *hoplag.Point, keep func(programs.FlowRecord)) (*tap, error) {
	t := newTap(p, o, point)
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

func newTap(p place, o *options, point *hoplag.Point) *tap {
	seed := point.Seed()
	return &tap{
		place: p, record: point.RecordIn, seed: seed, to: o.net,
		identify: hashing.NewIdentifier(seed, hashing.LinkEthernet, hashing.Tunnels{}),
	}
}

// burst is how many frames are identified at once.
const burst = 32

// take reports a block of packets to the point. It belongs to one ring.
func (t *tap) take(flows *table, packets iter.Seq[captured]) {
	var frames [burst][]byte
	var times [burst]int64
	n, bundles := 0, uint64(0)
	flows.Lock()
	defer flows.Unlock()
	for c := range packets {
		if c.bundle {
			bundles++
			continue
		}
		frames[n], times[n] = c.frame, c.at
		if n++; n == burst {
			t.report(flows, frames[:n], times[:n])
			n = 0
		}
	}
	t.report(flows, frames[:n], times[:n])
	t.bundles.Add(bundles)
}

// report reports frames to the point. Packets are identified without their
// transport checksum, which a sending host leaves to the network card.
func (t *tap) report(flows *table, frames [][]byte, times []int64) {
	var packets [burst]hashing.Packet
	var ids [burst]hashing.Flow
	var at [burst]int
	var frame hashing.Frame
	parse := func(i int) error { return frame.ParseWith(hashing.LinkEthernet, frames[i], &hashing.Tunnels{}) }
	for i, f := range frames {
		if !clearChecksum(f) {
			at[i] = -1
		}
	}
	odd := at
	n := t.identify.Frames(frames, packets[:], ids[:], at[:])
	counted := n
	for j, i := range at[:n] {
		if odd[i] != 0 && parse(i) == nil {
			packets[j] = kernel.Digest(t.seed, &frame)
		}
		if f := flows.find(ids[j], times[i]); (f == nil || t.to.IsValid()) && parse(i) == nil {
			if t.to.IsValid() && !t.to.Contains(frame.Tuple.Destination().Addr().Unmap()) {
				counted--
				continue
			}
			if f == nil {
				flows.add(ids[j], &frame.Tuple, times[i])
			}
		}
		t.record(ids[j], time.Unix(0, times[i]), packets[j])
	}
	t.counted.Add(uint64(counted))
	t.others.Add(uint64(len(frames) - counted))
}

// clearChecksum clears the transport checksum of TCP or UDP over Ethernet in a
// plain frame, of which it is the last header, and reports whether it did.
func clearChecksum(b []byte) bool {
	const ethernet, ipv4, ipv6 = 14, 20, 40
	if len(b) < ethernet+ipv6+8 {
		return false
	}
	at, proto := ethernet+ipv4, b[ethernet+9]
	switch kind := binary.BigEndian.Uint16(b[12:]); {
	case kind == 0x86dd:
		at, proto = ethernet+ipv6, b[ethernet+6]
	case kind != 0x0800 || b[ethernet] != 0x45 || binary.BigEndian.Uint16(b[ethernet+6:])&0x3fff != 0:
		return false
	}
	switch proto {
	case 6:
		at += 16
	case 17:
		at += 6
	default:
		return proto == 1 || proto == 58 // ICMP, whose checksum nobody leaves to others
	}
	if len(b) < at+2 {
		return false
	}
	b[at], b[at+1] = 0, 0
	return true
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
