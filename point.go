package hoplag

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"

	"github.com/hoplag/hoplag/hashing"
)

// A Point is a place that packets or messages pass. Its own method Passed is
// for those on their way from the first point to the last, Back.Passed for
// those on the way back; see [Direction]. If both directions are reported, the
// points' clocks need not agree.
//
// Any number of goroutines may call its methods.
type Point struct {
	*Direction            // from the first point to the last
	Back       *Direction // and back

	config Config
	clock  *timeline
	seal   sealer
	total  [2]*tally // room to add up a cut in
	census census

	closing chan struct{}
	closed  sync.WaitGroup

	mu      sync.Mutex
	history history
	waiting chan struct{} // closed at the next cut

	// Used by the goroutine that cuts.
	session uint64
	through int64 // the latest cut
	discard bool  // the current cut began before the session
}

// NewPoint returns a point that works until [Point.Close]. The error wraps
// [estimate.ErrConfig].
func NewPoint(c Config) (*Point, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return newPoint(c.withDefaults(), newTimeline()), nil
}

func newPoint(c Config, clock *timeline) *Point {
	p := &Point{
		config:  c,
		clock:   clock,
		seal:    newSealer(c),
		closing: make(chan struct{}),
		history: history{limit: c.History},
		waiting: make(chan struct{}),
	}
	empty := func() *tally { return newTally(&p.config) }
	p.Direction = newDirection(clock, c.seed(), c.shards(), empty)
	p.Back = newDirection(clock, c.seed(), c.shards(), empty)
	p.total = [2]*tally{empty(), empty()}
	p.begin()
	p.closed.Add(1)
	go p.work()
	return p
}

// Close stops the point. It no longer counts what passes, and followers learn
// nothing more.
func (p *Point) Close() error {
	p.mu.Lock()
	select {
	case <-p.closing:
	default:
		close(p.closing)
	}
	p.mu.Unlock()
	p.closed.Wait()
	for _, d := range []*Direction{p.Direction, p.Back} {
		if k := d.kept.Swap(nil); k != nil {
			d.fold()
			k.close()
		}
	}
	return nil
}

// Config returns the configuration of the point, with zeros replaced.
func (p *Point) Config() Config { return p.config }

// Seed returns the seed that the point hashes with, for [hashing.Frame.Digest],
// [hashing.Tuple.Flow] and the like. Like the Key, it is a secret.
func (p *Point) Seed() uint64 { return p.seed }

// Packet returns the identity of the message with this id, for
// [Direction.Record].
func (p *Point) Packet(id []byte) hashing.Packet { return hashing.Digest(p.seed, id) }

// Flow returns the identity of the flow with this name, for
// [Direction.PassedIn].
func (p *Point) Flow(name []byte) hashing.Flow {
	return hashing.Flow(hashing.Digest(p.seed^flowSeed, name))
}

// flowSeed separates flows from packets of the same name.
const flowSeed = 0x9e3779b97f4a7c15

// begin begins a session: cuts of one session hold all packets between them,
// by one clock that did not step.
func (p *Point) begin() {
	var random [8]byte
	rand.Read(random[:]) // never fails
	p.session = binary.BigEndian.Uint64(random[:])
	p.through = p.number(p.clock.now()) - 1
}

// number returns the number of the cut that a time belongs to.
func (p *Point) number(t int64) int64 { return floorDiv(t, int64(p.config.Cut)) }

// floorDiv returns a/b rounded down, for b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// work cuts at every multiple of Config.Cut.
func (p *Point) work() {
	defer p.closed.Done()
	timer := time.NewTimer(p.untilCut())
	defer timer.Stop()
	for {
		select {
		case <-p.closing:
			return
		case <-timer.C:
		}
		p.cut()
		timer.Reset(p.untilCut())
	}
}

func (p *Point) untilCut() time.Duration {
	now := p.clock.now()
	return time.Duration((p.number(now)+1)*int64(p.config.Cut) - now)
}

// cut ends a cut, if it is time, and keeps its record.
func (p *Point) cut() {
	ended := p.number(p.clock.now()) - 1
	if ended <= p.through {
		return // the timer was early
	}
	for i, d := range []*Direction{p.Direction, p.Back} {
		p.total[i].reset()
		for _, s := range d.shards {
			t := s.rotate()
			p.total[i].merge(t)
			s.release(t)
		}
		if k := d.kept.Load(); k != nil {
			k.cut(p.clock.now())
		}
		if p.config.Flows > 0 {
			p.census.add(i, p.total[i].seen, ended, ended-3*int64(p.config.Report/p.config.Cut))
		}
	}
	if !p.discard {
		p.keep(stored{p.session, ended, p.clock.wall.Load(), p.seal.record(p.session, p.through, ended, p.total)})
	}
	p.through = ended
	p.discard = false
	if p.clock.follow() {
		// Goroutines that read the clock before it was set may still log
		// packets, so the session begins with a cut that is thrown away.
		p.begin()
		p.discard = true
	}
}

// keep adds a record to the history and wakes those who wait for it.
func (p *Point) keep(s stored) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.history.add(s)
	close(p.waiting)
	p.waiting = make(chan struct{})
}
