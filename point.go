package hoplag

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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

	config  Config
	clock   *timeline
	seal    sealer
	census  census
	serving serving
	closing chan struct{}

	mu      sync.Mutex
	timer   *time.Timer
	history history
	waiting chan struct{} // closed at the next cut, nil while nobody waits

	// Used by whoever cuts, under cutting.
	cutting sync.Mutex
	session uint64
	step    int64 // by how much the clock was set when the session began, ns
	through int64 // the latest cut
	current int64 // the cut that is being counted, which may hold several
	discard bool  // the current cut began before the session
}

// ErrClosed says that a point was closed.
var ErrClosed = errors.New("the point is closed")

// NewPoint returns a point that works until [Point.Close]. The error wraps
// [estimate.ErrConfig].
func NewPoint(c Config) (*Point, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	p := &Point{config: c, clock: newTimeline(c.Clock), seal: newSealer(c), closing: make(chan struct{}), history: history{limit: c.History}}
	p.Direction, p.Back = newDirection(&p.config, p.clock), newDirection(&p.config, p.clock)
	p.begin(0)
	p.discard = false
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(p.untilCut(), p.work)
	return p, nil
}

// Close stops the point. It no longer counts what passes, followers learn nothing
// more, and connections to it end.
func (p *Point) Close() error {
	p.mu.Lock()
	if !p.isClosed() {
		close(p.closing)
	}
	p.timer.Stop()
	p.mu.Unlock()
	p.serving.close()
	p.cutting.Lock()
	defer p.cutting.Unlock()
	for _, d := range []*Direction{p.Direction, p.Back} {
		if k := d.kept.Swap(nil); k != nil {
			for _, s := range d.shards {
				s.release(s.rotate(s.end)) // the keeper sees what is in the logs
			}
			k.close()
		}
	}
	return nil
}

func (p *Point) isClosed() bool {
	select {
	case <-p.closing:
		return true
	default:
		return false
	}
}

// Format prints the point's name, and no secret.
func (p *Point) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "hoplag.Point(%q)", p.config.Name) }

// Config returns the configuration of the point, with zeros replaced.
func (p *Point) Config() Config { return p.config }

// Seed returns the seed that the point hashes with unless Config.SipHash is set,
// for [hashing.Frame.Digest], [hashing.Tuple.Flow] and the like. Like the Key, it
// is a secret.
func (p *Point) Seed() uint64 { return p.seed }

// Flow returns the identity of the flow with this name, for
// [Direction.PassedIn].
func (p *Point) Flow(name []byte) hashing.Flow {
	return hashing.Flow(hashing.Digest(p.seed^flowSeed, name))
}

// flowSeed separates flows from packets of the same name.
const flowSeed = 0x9e3779b97f4a7c15

// begin begins a session: cuts of one session hold all packets between them, by
// one clock that did not step. Goroutines that read the clock before it was set
// may still log packets, so what is being counted is thrown away.
func (p *Point) begin(step int64) {
	var random [8]byte
	rand.Read(random[:]) // never fails
	p.session, p.step = binary.BigEndian.Uint64(random[:]), step
	p.current = p.number(p.clock.now())
	p.through, p.discard = p.current-1, true
	for _, d := range [2]*Direction{p.Direction, p.Back} {
		for _, s := range d.shards {
			s.release(s.rotate(p.end()))
			s.release(s.rotate(p.end()))
		}
	}
}

// end is when the current cut ends.
func (p *Point) end() int64 { return (p.current + 1) * int64(p.config.Cut) }

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

// grace is how long after its end a cut is taken, so that those who were
// interrupted between reading the clock and logging a packet are mostly in time.
// Others count in the next cut, with their own stamp.
func (c *Config) grace() time.Duration { return min(c.Cut/10, 5*time.Millisecond) }

func (p *Point) untilCut() time.Duration {
	return time.Duration(p.end()-p.clock.now()) + p.config.grace()
}

// work cuts when it is time. Between cuts an idle point is no more than a timer.
func (p *Point) work() {
	p.cutting.Lock()
	defer p.cutting.Unlock()
	if p.isClosed() {
		return
	}
	p.cut()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isClosed() {
		p.timer.Reset(p.untilCut())
	}
}

// cut ends a cut, if it is time, and keeps what was counted. If it is late, the
// next one holds all that passed since.
func (p *Point) cut() {
	if step := p.clock.follow(); step != 0 {
		p.begin(step)
		return
	}
	now := p.clock.now()
	ended := p.current
	if now < p.end() {
		return // the timer was early
	}
	p.current = max(ended+1, p.number(now-int64(p.config.grace())))
	end := p.end()
	var total [2]*tally
	for i, d := range [2]*Direction{p.Direction, p.Back} {
		for _, s := range d.shards {
			if p.discard { // what the clock before the session stamped, even if it seems later
				s.release(s.rotate(end))
			}
			done := s.rotate(end)
			if !done.empty() && !p.discard {
				if total[i] == nil {
					total[i] = borrowTally(&p.config)
				}
				total[i].addPile(done)
			}
			s.release(done)
		}
		if k := d.kept.Load(); k != nil {
			k.cut(now)
		}
		if t := total[i]; t != nil && p.config.Flows > 0 {
			p.census.add(i, t.seen, ended, ended-3*int64(p.config.Report/p.config.Cut))
		}
	}
	p.keep(total, ended)
	for _, t := range total {
		if t != nil {
			t.giveBack()
		}
	}
	p.through, p.discard = ended, false
}

// keep adds a cut to the history and wakes those who wait for it.
func (p *Point) keep(total [2]*tally, ended int64) {
	s := stored{session: p.session, step: p.step, after: p.through, through: ended, wall: p.clock.wall.Load()}
	if total != [2]*tally{} {
		s.data = p.seal.record(&s, total)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.discard {
		p.history.add(s)
	}
	if p.waiting != nil {
		close(p.waiting)
		p.waiting = nil
	}
}

// A history is the latest cuts of a point for followers to fetch. Cuts in a row in
// which nothing passed are one.
type history struct {
	limit, size int // bytes
	cuts        []stored
}

type stored struct {
	session        uint64
	step           int64
	after, through int64
	wall           int64  // timeline.wall in the session
	data           []byte // the record, nil if nothing passed
}

// storedSize is what a cut takes beside its record.
const storedSize = 64

// latest returns the latest cut, or the zero value.
func (h *history) latest() stored {
	if len(h.cuts) == 0 {
		return stored{}
	}
	return h.cuts[len(h.cuts)-1]
}

// add keeps a cut, and drops the oldest ones if there is no room.
func (h *history) add(s stored) {
	if last := h.latest(); s.data == nil && last.data == nil && last.session == s.session && last.through == s.after {
		h.cuts[len(h.cuts)-1].through = s.through
		return
	}
	h.cuts = append(h.cuts, s)
	h.size += storedSize + len(s.data)
	for h.size > h.limit && len(h.cuts) > 1 {
		h.size -= storedSize + len(h.cuts[0].data)
		h.cuts[0] = stored{}
		h.cuts = h.cuts[1:]
	}
}

// since returns the cuts after a position, as many as fit the limit but at
// least one, and whether there are more. A follower without any cuts begins
// with the latest; one whose cuts are gone continues with the oldest there is.
func (h *history) since(at position, limit int) (found []stored, more bool) {
	cuts := h.cuts
	if at == (position{}) && len(cuts) > 0 {
		cuts = cuts[len(cuts)-1:]
	}
	for i := len(cuts) - 1; i >= 0; i-- {
		if cuts[i].session == at.session && cuts[i].through <= at.through {
			cuts = cuts[i+1:]
			break
		}
	}
	for size := 0; len(found) < len(cuts); {
		next := cuts[len(found)]
		if size += storedSize + len(next.data); size > limit && len(found) > 0 {
			return found, true
		}
		if next.session == at.session && next.data == nil {
			next.after = max(next.after, at.through)
		}
		found = append(found, next)
	}
	return found, false
}

// A position says how far a follower has a point's cuts. The zero value means
// that it has none.
type position struct {
	session uint64
	through int64
}

// A census remembers which flows passed a point in the latest intervals.
type census struct {
	mu   sync.Mutex
	last [2]map[hashing.Flow]int64 // the latest cut that a flow was in, by direction
}

// add takes the flows of a cut, and forgets those that were not seen after the
// cut before.
func (c *census) add(direction int, flows map[hashing.Flow]struct{}, cut, before int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last[direction] == nil {
		c.last[direction] = map[hashing.Flow]int64{}
	}
	last := c.last[direction]
	for f := range flows {
		last[f] = cut
	}
	for f, seen := range last {
		if seen <= before {
			delete(last, f)
		}
	}
}

// since returns the flows that were seen in a cut or later.
func (c *census) since(direction int, cut int64) (flows []hashing.Flow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f, seen := range c.last[direction] {
		if seen >= cut {
			flows = append(flows, f)
		}
	}
	return flows
}

// A timeline tells the time in nanoseconds since 1970. Of the system's clocks it
// reads the monotonic one, which is cheaper than the wall clock and never steps,
// and notices when the wall clock is set.
type timeline struct {
	base time.Time
	wall atomic.Int64 // what the clock said, as far as is known, at base
	user interface{ Now() time.Time }
	next time.Duration // when the clock was last followed, since base
}

// stepLimit is how far a clock may be from where it was, and the time since then,
// before that counts as a step.
const stepLimit = 100 * time.Microsecond

func newTimeline(user interface{ Now() time.Time }) *timeline {
	t := &timeline{base: time.Now(), user: user}
	t.wall.Store(t.set())
	return t
}

// set returns what the clock says that the time at base was.
func (t *timeline) set() int64 {
	now := time.Now()
	if t.user != nil {
		return t.user.Now().UnixNano() - int64(now.Sub(t.base))
	}
	return now.UnixNano() - int64(now.Sub(t.base))
}

// now returns the time.
func (t *timeline) now() int64 {
	if t.user != nil {
		return t.user.Now().UnixNano()
	}
	return t.wall.Load() + t.elapsed()
}

// of returns the timeline's time for a time.Time; if that came from time.Now,
// by the monotonic clock as well.
func (t *timeline) of(at time.Time) int64 {
	if t.user != nil || at == at.Round(0) { // it has no monotonic reading
		return at.UnixNano()
	}
	return t.wall.Load() + int64(at.Sub(t.base))
}

// elapsed returns the time since the timeline began, whatever the clock says.
func (t *timeline) elapsed() int64 { return int64(time.Since(t.base)) }

// follow sets the timeline to the clock if that was stepped, and returns by how
// much, or 0. Two clocks are read one after the other, so a single reading may be
// off because of the scheduler.
func (t *timeline) follow() (step int64) {
	limit := stepLimit
	if t.user != nil {
		at := time.Duration(t.elapsed())
		limit += time.Duration(5 * mostDrift * float64(at-t.next))
		t.next = at
	}
	for range 5 {
		set := t.set()
		if step = set - t.wall.Load(); time.Duration(step).Abs() <= limit {
			if t.user != nil {
				t.wall.Store(set)
			}
			return 0
		}
	}
	t.wall.Add(step)
	return step
}
