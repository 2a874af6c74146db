package hoplag

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate"
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

// Keep keeps what passes this way in a store, flow by flow, so that you can
// ask for the delays of any flow months later; see package colate. Each epoch
// of the Config goes there when it ends, until the point is closed. The
// point's Key sets the Config's Identity. The store syncs and removes what is
// old by itself: see [colate.StoreOptions]. What it refuses is lost, and so is
// what passes while it is blocked for longer than an epoch; Keep then calls
// failed, if it is not nil, from another goroutine.
//
// Call Keep before anything passes, and once per direction. The error wraps
// [estimate.ErrConfig].
func (d *Direction) Keep(store *colate.Store, c colate.Config, failed func(error)) error {
	c.Identity = hashing.Fingerprint(d.seed)
	rotation, err := colate.NewRotation(c)
	if err != nil {
		return fmt.Errorf("hoplag: %w", err)
	}
	k := &keeper{rotation: rotation, next: must(colate.New(c)), store: store, failed: failed, period: c.Period, from: math.MinInt64}
	if !d.kept.CompareAndSwap(nil, k) {
		return fmt.Errorf("hoplag: %w: the direction has a store already", estimate.ErrConfig)
	}
	for _, s := range d.shards {
		s.mu.Lock()
		s.keeper = k
		s.mu.Unlock()
	}
	return nil
}

// A keeper records for a store.
type keeper struct {
	mu       sync.Mutex
	rotation *estimate.Rotation[*colate.Recorder]
	next     *colate.Recorder // what passed after the epoch's end and before the cut
	store    *colate.Store
	failed   func(error)
	writing  sync.WaitGroup
	period   int64
	from     int64 // when the epoch began
	late     int   // packets of earlier epochs since the last cut
	early    int   // packets of later epochs than the next
}

// add records the packets with a named flow, each in its own epoch: logs are
// emptied in any order, and a cut comes some time after the end.
func (k *keeper) add(entries []entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.rotation.Active()
	for i := range entries {
		e := &entries[i]
		switch {
		case e.flow == 0:
		case e.time < k.from:
			k.late++
		case r.Due(e.time) && k.next.Due(e.time):
			k.early++ // the store is blocked
		case r.Due(e.time):
			k.next.Update(e.flow, e.packet, e.time)
		default:
			r.Update(e.flow, e.packet, e.time)
		}
	}
}

// cut ends the epoch, if it is over, and starts writing it.
func (k *keeper) cut(now int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.rotation.Active().Due(now) {
		return
	}
	done, err := k.rotation.Rotate()
	if err != nil {
		return // the store is slow: the epoch is cut later
	}
	must(0, k.rotation.Active().Merge(k.next))
	k.next.Reset()
	k.from = now - now%k.period
	if start, _, ok := k.rotation.Active().Span(); ok {
		k.from = min(k.from, start)
	}
	late, early := k.late, k.early
	k.late, k.early = 0, 0
	k.writing.Go(func() {
		k.write(done)
		must(0, k.rotation.Release(done))
		k.tell(late, early)
	})
}

// write writes an epoch to the store.
func (k *keeper) write(done *colate.Recorder) {
	if err := k.store.Append(done); err != nil && k.failed != nil {
		k.failed(fmt.Errorf("hoplag: %w", err))
	}
}

// tell reports how many packets came late, or while the store was blocked.
func (k *keeper) tell(late, early int) {
	if early > 0 && k.failed != nil {
		k.failed(fmt.Errorf("hoplag: %w: %d packets passed while the store was blocked, and are not kept", estimate.ErrNoSamples, early))
	}
	if late > 0 && k.failed != nil {
		k.failed(fmt.Errorf("hoplag: %w: %d packets were recorded after their epoch had ended, and are not kept", estimate.ErrNoSamples, late))
	}
}

// close writes what there is of the current epoch and the next.
func (k *keeper) close() {
	k.writing.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.write(k.rotation.Active())
	k.write(k.next)
	if err := k.store.Sync(); err != nil && k.failed != nil {
		k.failed(fmt.Errorf("hoplag: %w", err))
	}
	k.tell(k.late, k.early)
}
