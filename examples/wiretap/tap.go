//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/programs"
	"github.com/hoplag/hoplag/lda/kernel"
)

// A tap reports to a point what a ring at one place sees.
type tap struct {
	place        place
	promiscuous  bool
	record       func(hashing.Flow, time.Time, ...hashing.Packet) // to a point
	seed         uint64
	identify     *hashing.Identifier
	to           netip.Prefix // count only packets to these addresses, if it is valid
	ring         *ring
	flows        table // what it saw
	since, until int64 // count packets of that time, ns; the lock of flows guards it
	done         sync.WaitGroup
	end          sync.Once

	counted, others, bundles atomic.Uint64 // since the beginning

	mu       sync.Mutex
	failures error // since somebody looked
	away     error // the interface went away, and what finding it again said last
}

// openTap opens a place's ring, and reports to the point what that holds once it begins.
func openTap(p place, o *options, point *hoplag.Point) (*tap, error) {
	t := newTap(p, o, point)
	err := programs.In(p.namespace, func() (err error) {
		t.ring, err = openRing(p, o.buffer<<20, o.promiscuous)
		return err
	})
	if err != nil {
		return nil, err
	}
	t.done.Go(func() { t.failed(t.ring.run(t.take)) })
	return t, nil
}

func newTap(p place, o *options, point *hoplag.Point) *tap {
	seed := point.Seed()
	return &tap{
		until: math.MaxInt64, place: p, promiscuous: o.promiscuous, record: point.Record, seed: seed, to: o.net,
		identify: hashing.NewIdentifier(seed, hashing.LinkEthernet, hashing.Tunnels{}),
	}
}

// burst is how many frames are identified at once.
const burst = 32

// take reports a block of packets to the point.
func (t *tap) take(packets iter.Seq[captured]) {
	var frames [burst][]byte
	var times [burst]int64
	n, bundles := 0, uint64(0)
	t.flows.Lock()
	defer t.flows.Unlock()
	for c := range packets {
		switch {
		case c.at < t.since || c.at >= t.until:
			continue
		case c.bundle:
			bundles++
			continue
		case !clearChecksum(c.frame):
			t.report([][]byte{c.frame}, []int64{c.at}, true)
			continue
		}
		frames[n], times[n] = c.frame, c.at
		if n++; n == burst {
			t.report(frames[:], times[:], false)
			n = 0
		}
	}
	t.report(frames[:n], times[:n], false)
	t.bundles.Add(bundles)
}

// report reports frames to the point. Packets are identified without their transport checksum, which a sending host leaves
// to the network card; it is cleared already, unless the frames are odd.
func (t *tap) report(frames [][]byte, times []int64, odd bool) {
	var packets [burst]hashing.Packet
	var ids [burst]hashing.Flow
	var at [burst]int
	var frame hashing.Frame
	n := t.identify.Frames(frames, packets[:], ids[:], at[:])
	counted := n
	for j, i := range at[:n] {
		known := t.flows.has(ids[j])
		if odd || !known || t.to.IsValid() {
			if frame.ParseWith(hashing.LinkEthernet, frames[i], &hashing.Tunnels{}) != nil {
				panic("a frame that was parsed is not")
			}
			if t.to.IsValid() && !t.to.Contains(frame.Tuple.Destination().Addr().Unmap()) {
				counted--
				continue
			}
			if odd {
				packets[j] = kernel.Digest(t.seed, &frame)
			}
			if !known {
				t.flows.add(ids[j], &frame.Tuple)
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
	if len(b) < ethernet+ipv4+8 {
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
		return proto == 1 || proto == 58 // ICMP, whose checksum no network card computes
	}
	if len(b) < at+2 {
		return false
	}
	b[at], b[at+1] = 0, 0
	return true
}

// stop ends the capture. What the kernel has put into the ring is still taken.
func (t *tap) stop() {
	t.end.Do(func() {
		t.failed(t.ring.drain())
		t.ring.stop()
		t.done.Wait()
	})
}

// close ends the capture and frees the ring.
func (t *tap) close() error {
	t.stop()
	err := t.problem()
	t.ring.close()
	return err
}

// look finds the interface again if it went away.
func (t *tap) look() {
	if t.ring.bound().Ifindex >= 0 {
		return
	}
	err := programs.In(t.place.namespace, func() error { return t.ring.find(t.place, t.promiscuous) })
	if err == nil {
		err = t.ring.begin()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.away = errors.Join(errors.New("the interface went away"), err)
}

// failed keeps an error for problem.
func (t *tap) failed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = errors.Join(t.failures, err)
}

// problem returns what went wrong since the last call, such as that the interface is down.
func (t *tap) problem() error {
	t.mu.Lock()
	err := errors.Join(t.failures, t.ring.problem(), t.away)
	t.failures, t.away = nil, nil
	t.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("%v: %w", t.place, err)
	}
	return err
}
