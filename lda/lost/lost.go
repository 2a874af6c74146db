// Package lost names the packets that were lost between two points, from the counters that exist anyway and the
// sender's memory of what it sent.
//
//	var trails []areas.Trail // where both points are compared, for each report
//	total.Trails(func(t areas.Trail) { trails = append(trails, t) })
//	f, err := lost.NewFinder(config, trails)
//	memory.Offer(f, hash) // what a [Memory] remembers, or f.Offer for each packet that was sent
//	names := f.Names(lost.Budget)
//	total.TakeOut(names.Lost(config, trails)) // so that losses do not spoil delays
//
// Program examples/twopoint does it, and METHODS.md says how, in section 3. A name is false only if the level is not that of a
// set of the packets offered, as when a duplicate falls in the same cell and cut as a loss, and if one of s other sets has its
// digest of w bits by chance: s/2^w. If no set has the digest, the trail is given up, and a cut for which that chance is more
// than [MostChance] is skipped: digests of 32 bits allow 4,294 sets at a cut, those of 20 bits one. Nor is a packet named if the
// memory lacks one that the cell counted, if several sets fit, or if the budget is used up. One of several packets with the same
// hash is named Repeated.
package lost

import (
	"fmt"
	"math"
	"sync"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

const (
	// MostChance is the greatest chance that a name is false.
	MostChance = 1e-6

	// Budget is how many sets of packets to try for a report: about 2 ms.
	Budget = 1 << 20
)

// A Name is a packet that was lost.
type Name struct {
	Trail, Step int            `json:"-"`       // of which trail, and the interval of which step it was sent in
	ID          uint64         `json:",string"` // as offered; text in JSON, whose numbers have 53 bits
	Packet      hashing.Packet `json:",string"`
	Sent        int64          `json:",string"` // when, in nanoseconds

	// Repeated says that packets with the same hash passed that were not lost. Which of them was lost is not
	// known.
	Repeated bool `json:",omitempty"`
}

// Names are packets that were lost.
type Names struct {
	Names []Name
	Spent int // of the budget
}

// Lost returns what [lda.Accumulator.TakeOut] takes of the names of packets of trails. Repeated ones are left
// out, because it is not known when they were lost.
func (n *Names) Lost(c lda.Config, trails []areas.Trail) (lost []areas.Lost) {
	for i := range n.Names {
		n := &n.Names[i]
		t := &trails[n.Trail]
		if c.Cell(n.Packet) == t.Cell && !n.Repeated { // or the sender is wrong
			lost = append(lost, areas.Lost{Cell: t.Cell, Cut: t.Steps[n.Step].Cut, Digest: digest(&c, n.Packet), Sent: n.Sent})
		}
	}
	return lost
}

// digest returns what a packet adds to the digest of its cell.
func digest(c *lda.Config, p hashing.Packet) uint32 { return uint32(p>>32) & (1<<c.DigestBits - 1) }

// A Finder looks among packets that were sent for those that were lost. It is not safe for concurrent use.
type Finder struct {
	config  lda.Config
	trails  []areas.Trail
	cells   [][]int       // by cell: its trails
	offered [][]candidate // by trail
	from    int64         // of the earliest trail
	until   int64         // of the latest
}

// A candidate is a packet that was sent while a trail went on.
type candidate struct {
	digest uint32
	packet hashing.Packet
	id     uint64
	sent   int64
}

// NewFinder returns a Finder for trails of cells of a Config. The error wraps
// [estimate.ErrConfig], or [estimate.ErrMismatch] if there is no such cell.
func NewFinder(c lda.Config, trails []areas.Trail) (*Finder, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	f := &Finder{config: c, trails: trails, offered: make([][]candidate, len(trails)), from: math.MaxInt64, until: math.MinInt64}
	for _, b := range c.Banks {
		f.cells = append(f.cells, make([][]int, b.Rows)...)
	}
	for i := range trails {
		t := &trails[i]
		if t.Cell < 0 || t.Cell >= len(f.cells) {
			return nil, fmt.Errorf("lost: %w: cell %d of %d", estimate.ErrMismatch, t.Cell, len(f.cells))
		}
		f.cells[t.Cell] = append(f.cells[t.Cell], i)
		f.from, f.until = min(f.from, t.From), max(f.until, end(t))
	}
	return f, nil
}

// end returns when the last packet of a trail was sent.
func end(t *areas.Trail) int64 {
	if len(t.Steps) == 0 {
		return t.From
	}
	return max(t.Until, t.Steps[len(t.Steps)-1].End)
}

func (f *Finder) wants(t int64) bool { return t >= f.from && t < f.until }

// Offer says that a packet, which the sender knows by id, was sent at time t, in nanoseconds.
func (f *Finder) Offer(p hashing.Packet, id uint64, t int64) {
	cell := f.config.Cell(p)
	if cell < 0 || !f.wants(t) {
		return
	}
	for _, i := range f.cells[cell] {
		if trail := &f.trails[i]; t >= trail.From && t < end(trail) {
			f.offered[i] = append(f.offered[i], candidate{digest(&f.config, p), p, id, t})
		}
	}
}

// Names returns the lost packets that it finds by trying as many sets as the budget allows, and forgets what was offered.
func (f *Finder) Names(budget int) (all Names) {
	w := walker{budget: budget}
	for i := range f.trails {
		w.begin(f.offered[i], f.config, f.trails[i].Cell)
		w.follow(i, &f.trails[i], &all.Names)
	}
	clear(f.offered)
	all.Spent = budget - w.budget
	return all
}

// A Memory holds the packets that a point sent last, in 16 bytes each. It grows with their number. Lock it for
// Update; Offer locks it for some packets at a time, so that nobody waits for long.
type Memory struct {
	sync.Mutex
	ring []remembered
	at   int // the next one
	most int
	keep int64
}

// A remembered is a packet that was sent.
type remembered struct {
	id    uint64
	stamp uint64 // the time, above the bit that says whether id is a number
}

func (r *remembered) sent() int64 { return int64(r.stamp) >> 1 }

// NewMemory returns a Memory of at least the last keep nanoseconds, unless these have more than most packets.
func NewMemory(most int, keep int64) *Memory { return &Memory{most: most, keep: keep} }

// Update records that a packet was sent at time t, in nanoseconds. Its id is its hash, or a number.
func (m *Memory) Update(id uint64, number bool, t int64) {
	if m.at == len(m.ring) {
		m.wrap(t)
	}
	stamp := uint64(t) << 1
	if number {
		stamp |= 1
	}
	m.ring[m.at] = remembered{id, stamp}
	m.at++
}

// wrap makes room for the next packet, which is sent at time t.
func (m *Memory) wrap(t int64) {
	n := len(m.ring)
	if n == 0 || n < m.most && t-m.ring[n-(n+3)/4].sent() < m.keep/4 { // by the latest rate
		m.ring = append(m.ring, make([]remembered, max(1, min(max(256, n/8), m.most-n)))...)
		return
	}
	m.at = 0
}

// Offer offers a Finder what is remembered. Ids that are numbers are hashed with hash.
func (m *Memory) Offer(f *Finder, hash func(number uint64) hashing.Packet) {
	var part [512]remembered
	for i, n := 0, len(part); n == len(part); i += n {
		m.Lock()
		n = copy(part[:], m.ring[min(i, len(m.ring)):])
		m.Unlock()
		for j := range part[:n] {
			r := &part[j]
			if p := hashing.Packet(r.id); f.wants(r.sent()) {
				if r.stamp&1 != 0 {
					p = hash(r.id)
				}
				f.Offer(p, r.id, r.sent())
			}
		}
	}
}
