package kernel

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Cut ends the interval, and Rotate returns it, which takes some milliseconds. If one process has two points,
// cut both, right after each other, before you rotate either, beginning with the one that packets pass last:
// otherwise packets that pass in between would seem to arrive before they are sent. A second Cut before Rotate
// does nothing.
func (p *Point) Cut() {
	if p.isCut || p.closed {
		return
	}
	p.isCut, p.half = true, int(p.flags[controlActive/8]&1)
	atomic.StoreUint64(&p.flags[controlActive/8], uint64(1-p.half))
	p.clock.cut()
}

// Rotate returns what was counted in the interval until Cut, or until now. The interval belongs to the caller
// until Release. Counting continues, with each packet in exactly one interval: one word switches the programs
// to other cells, and then Rotate waits for a few milliseconds until the last program that may have seen the
// old word has ended. Reading takes some 20 µs for each processor that saw packets, with the cells of
// [lda.DefaultConfig].
//
// If the interval before was not released, the error is [estimate.ErrBusy], and what was counted becomes part
// of the next interval. With [ErrStep], [ErrOffload] and [ErrDetached] there is an interval, which must be
// released, but its times or its number of packets are not reliable.
func (p *Point) Rotate() (*Interval, error) {
	if p.closed {
		return nil, fmt.Errorf("kernel: %w", syscall.EBADF)
	}
	p.Cut()
	if err := p.barrier.wait(); err != nil {
		return nil, fmt.Errorf("kernel: %w", err)
	}
	p.isCut = false
	i := p.rotation.Active()
	offset, err := p.clock.check()
	if i.Start == 0 {
		i.Start = p.clock.first + offset
	}
	i.End, i.ClockError = p.clock.last+offset, p.clock.uncertainty
	p.collect(i, p.half, uint64(offset))
	p.carry = errors.Join(p.carry, err)
	done, err := p.rotation.Rotate()
	if err != nil {
		return nil, fmt.Errorf("kernel: %w", err)
	}
	err, p.carry = p.carry, nil
	if done.Counters.Bundles > 0 {
		err = errors.Join(err, fmt.Errorf("%w: %d of them; want: ethtool -K INTERFACE tso off gso off gro off lro off",
			ErrOffload, done.Counters.Bundles))
	}
	if err = errors.Join(err, p.detached()); err != nil {
		return done, fmt.Errorf("kernel: %w", err)
	}
	return done, nil
}

// Release empties an interval that Rotate returned, for reuse. For anything else the error is
// [estimate.ErrRelease].
func (p *Point) Release(i *Interval) error {
	if err := p.rotation.Release(i); err != nil {
		return fmt.Errorf("kernel: %w", err)
	}
	return nil
}

// collect adds the lanes of a half to an interval and empties them. It adds offset to each packet's time.
func (p *Point) collect(i *Interval, half int, offset uint64) {
	stride := p.config.laneSize() / 8
	clear(p.sum)
	for lane := range p.processor {
		words := p.memory[(half*p.lanes+lane)*stride:][:stride]
		addCounters(&i.Counters, words)
		cells := words[countersSize/8:][:len(p.sum)]
		for j, v := range cells {
			p.sum[j] += v
		}
		clear(words)
	}
	for j := 0; j < len(p.sum) && offset != 0; j += 2 {
		p.sum[j] += offset * uint64(uint32(p.sum[j+1]))
	}
	i.Aggregator.AddCells(p.sum) // its error concerns the length, which is right
}

func addCounters(c *Counters, words []uint64) {
	c.Truncated += words[counterTruncated]
	c.NotIP += words[counterNotIP]
	c.Malformed += words[counterMalformed]
	c.Deep += words[counterDeep]
	c.Bundles += words[counterBundles]
	c.Segments += words[counterSegments]
}

// A barrier waits for programs. The kernel promises, since 4.20, that after a map in a map has been exchanged
// no program still runs that may have seen the old one; it promises this to readers of snapshots, such as this
// one.
type barrier struct {
	outer int
	inner [2]int
	turn  int
}

func newBarrier() (*barrier, error) {
	b := &barrier{outer: -1, inner: [2]int{-1, -1}}
	for i := range b.inner {
		descriptor, err := newMap(arrayMap, 4, 4, 1, 0)
		if err != nil {
			b.close()
			return nil, err
		}
		b.inner[i] = descriptor
	}
	attributes := struct{ kind, key, value, entries, flags, inner uint32 }{arrayOfMapsMap, 4, 4, 1, 0, uint32(b.inner[0])}
	descriptor, err := bpf(mapCreate, unsafe.Pointer(&attributes), unsafe.Sizeof(attributes))
	if err != nil {
		b.close()
		return nil, explain("map of maps", err)
	}
	b.outer = descriptor
	return b, nil
}

func (b *barrier) wait() error {
	b.turn = 1 - b.turn
	return explain("exchanging a map", updateMap(b.outer, 0, uint32(b.inner[b.turn])))
}

func (b *barrier) close() {
	for _, descriptor := range append(b.inner[:], b.outer) {
		if descriptor >= 0 {
			syscall.Close(descriptor)
		}
	}
}
