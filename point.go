package hoplag

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hoplag/hoplag/hashing"
)

// A Point is a place that packets or messages pass. Its own method Passed is for those on their way from the first point to the last,
// Back.Passed for those on the way back; see [Direction]. If both directions are reported, the points' clocks need not agree. Everything
// that passes a point in a direction must come from, or go to, the same other point: use a Point for each of several.
//
// Any number of goroutines may call its methods. [NewPoint] makes a Point; the zero value panics.
type Point struct {
	*Direction            // from the first point to the last
	Back       *Direction // and back

	config Config
	clock  *timeline
	seal   *sealer
	open   context.Context // until the last cut is made
	shut   context.CancelFunc

	mu      sync.Mutex
	history *history
	waiting chan struct{} // closed at the next cut

	// Used by whoever cuts, under cutting.
	cutting sync.Mutex
	timer   *time.Timer
	session uint64
	step    int64 // by how much the clock was set when the session began, ns
	through int64 // the latest cut
	current int64 // the cut that is being counted, which may hold several
	discard bool  // the current cut began before the session
	grace   time.Duration
	idle    int64 // cuts in a row in which nothing passed
}

var errClosed = errors.New("the point is closed")

// NewPoint returns a point that works until [Point.Close]. The error wraps [estimate.ErrConfig].
func NewPoint(c Config) (*Point, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	p := &Point{config: c, clock: newTimeline(c.Clock), seal: newSealer(c), history: newHistory(c.History), waiting: make(chan struct{})}
	p.open, p.shut = context.WithCancel(context.Background())
	p.Direction, p.Back = newDirection(&p.config, p.clock), newDirection(&p.config, p.clock)
	p.cutting.Lock()
	defer p.cutting.Unlock()
	p.begin(0)
	p.discard = false
	p.timer = time.AfterFunc(p.untilCut(), p.work)
	return p, nil
}

// Close stops the point. It no longer counts what passes, and followers learn nothing
// more, but [Point.Records] yields what passed since the latest cut.
func (p *Point) Close() error {
	p.cutting.Lock()
	defer p.cutting.Unlock()
	if p.open.Err() == nil { // not closed before
		p.timer.Stop()
		p.cut(true)
		p.shut()
	}
	return nil
}

func (p *Point) directions() [2]*Direction { return [2]*Direction{p.Direction, p.Back} }

// Seed returns the seed that the point hashes with unless Config.SipHash is set, for [hashing.Frame.Digest],
// [hashing.Tuple.Flow] and the like. Like the Key, it is a secret.
func (p *Point) Seed() uint64 { return p.hash.seed }

// Flow returns the identity of the flow with this name, for [Direction.Passed].
func (p *Point) Flow(name []byte) hashing.Flow {
	return hashing.Flow(hashing.Digest(p.hash.seed^flowSeed, name))
}

// flowSeed separates flows from packets of the same name.
const flowSeed = 0x9e3779b97f4a7c15

// begin begins a session: cuts of one session hold all packets between them, by one clock that did not step. Goroutines that
// read the clock before it was set may still log packets, so what is being counted is thrown away.
func (p *Point) begin(step int64) {
	p.session, p.step = randomNumber(), step
	p.current = p.number(p.clock.now())
	p.through, p.discard = p.current-1, true
	for _, d := range p.directions() {
		d.drop(p.through)
	}
}

func (p *Point) end() int64 { return (p.current + 1) * int64(p.config.Cut) }

func (p *Point) number(t int64) int64 { return floorDiv(t, int64(p.config.Cut)) }

// long returns the last of the cuts that are made as one, which begins with a given cut. A point that was idle
// for a report makes one cut of all of a report, or of a second if that is shorter.
func (c *Config) long(cut, idle int64) int64 {
	report, many := int64(c.Report/c.Cut), max(1, int64(time.Second/c.Cut))
	for report%many != 0 {
		many--
	}
	if idle < many {
		return cut
	}
	return (floorDiv(cut, many)+1)*many - 1
}

// grace is the least time from a cut's end until it is taken, so that those who were interrupted between reading the clock
// and logging a packet are mostly in time. Others count in the next cut, with their own stamp, and the point waits longer.
func (c *Config) grace() time.Duration { return min(c.Cut/10, 5*time.Millisecond) }

// mostGrace is the most that a point waits, in cuts.
const mostGrace = 5

func (p *Point) untilCut() time.Duration { return time.Duration(p.end()-p.clock.now()) + p.grace }

// work cuts when it is time. Between cuts an idle point is no more than a timer.
func (p *Point) work() {
	p.cutting.Lock()
	defer p.cutting.Unlock()
	if p.open.Err() == nil {
		p.cut(false)
		p.timer.Reset(p.untilCut())
	}
}

// cut ends a cut, if it is time or the last one, and keeps what was counted. If it is late, the next one holds all that passed since.
func (p *Point) cut(last bool) {
	if step := p.clock.follow(); step != 0 {
		p.begin(step)
		return
	}
	now, ended := p.clock.now(), p.current
	if now < p.end() && !last {
		return // the timer was early
	}
	var total [2]*tally
	var late [2]uint32
	for i, d := range p.directions() {
		if p.discard { // what the clock before the session stamped, even if it seems later
			d.drop(ended)
		} else {
			total[i], late[i] = d.rotate(ended)
		}
	}
	if p.grace = max(p.grace*998/1000, p.config.grace()); late != [2]uint32{} { // some packets came too late
		p.grace = min(2*p.grace, mostGrace*p.config.Cut)
	}
	if p.idle++; total != [2]*tally{} {
		p.idle = 0
	}
	p.current = p.config.long(max(ended+1, p.number(now-int64(p.grace))), p.idle)
	p.keep(total, late, ended)
	p.through, p.discard = ended, false
}

func (p *Point) keep(total [2]*tally, late [2]uint32, ended int64) {
	s := stored{interval: interval{p.session, p.step, p.through, ended, late}, mark: mark{p.clock.wall.Load(), p.clock.next}}
	if total != [2]*tally{} {
		s.data = p.seal.record(&s.interval, total)
	}
	for _, t := range total {
		t.giveBack()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.discard {
		p.history.add(s, p.clock.elapsed())
	}
	close(p.waiting)
	p.waiting = make(chan struct{})
}
