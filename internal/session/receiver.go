package session

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/hoplag/hoplag/estimate"
)

// The reasons why an interval is unusable; lda/control documents them.
var (
	ErrStart  = errors.New("start marker missing")
	ErrEnd    = errors.New("end marker missing")
	ErrParts  = errors.New("parts of the synopsis missing")
	ErrStep   = errors.New("clock was set")
	ErrPassed = errors.New("session or interval has passed")
	ErrForged = errors.New("tag missing or wrong")
)

// Slots hold the downstream point's synopses: two, in slots 0 and 1, which take
// turns.
type Slots interface {
	// Open directs the packets from now on to a slot, which is empty, as the
	// payload of the Start says. An error refuses it.
	Open(slot int, start []byte) error
	// Idle directs the packets nowhere.
	Idle()
	// Report takes the outcome of an interval, and empties its slot.
	Report(Report)
}

// A Report is the outcome of an interval.
type Report struct {
	First, Interval uint64 // intervals without any sign are reported together
	Session         uint64
	Slot            int              // of the interval, or None if its Start never came
	Err             error            // why the interval is unusable, or nil
	Parts           iter.Seq[[]byte] // of the upstream point's synopsis, to compare with the slot's
}

// None is no slot.
const None = -1

// Counters counts the control packets that were not used.
type Counters struct {
	Corrupt   uint64 // not control packets, or damaged
	Forged    uint64 // without the key's tag
	Foreign   uint64 // of another Config or seed, or tagged although there is no key
	Duplicate uint64 // parts that came again
	Stale     uint64 // too late, markers that came again, or of another session
}

// A Receiver follows the intervals of a sender, and reports on each once, in
// order. It is for one goroutine, except that another one may call Receive with
// parts.
type Receiver struct {
	Slots       Slots
	Fingerprint uint64 // of the Config that both points were made with
	Parts       int    // of a synopsis, at most
	Bytes       int    // of all its parts, at most
	Key         Key
	Counters    Counters

	bound   bool // a session is known
	now     track
	before  track // what was left for it
	strange int   // markers, one after another, that do not follow on it
	trouble error // why the last frame was rejected
	slots   [2]slot
	early   [][]byte // parts that came before the start of their interval, with as many bytes as a slot at most
	open    int      // index of the slot of the interval between Start and End, or free; the other waits for its synopsis
}

// A track is a session and how far it has come.
type track struct {
	session uint64
	next    uint64 // intervals before have begun
}

// slot is an interval in the making.
type slot struct {
	used, clockSet bool
	interval       uint64
	parts          [][]byte // none until known how many there are, each empty until it came
	came, bytes    int
}

func (s *slot) all(yield func([]byte) bool) {
	for _, part := range s.parts {
		if len(part) > 0 && !yield(part) {
			return
		}
	}
}

// ClockSet reports that the point's clock was set: it spoils the open interval.
func (r *Receiver) ClockSet() { r.slots[r.open].clockSet = r.slots[r.open].used }

// Greater returns a session number that a restarted sender may have.
func (r *Receiver) Greater() uint64 { return r.now.session + 1 }

// Receive takes a control packet. The error says why it was rejected.
func (r *Receiver) Receive(data []byte) error {
	var f Frame
	err := f.Parse(data, &r.Key)
	switch {
	case err != nil:
	case f.Fingerprint != r.Fingerprint:
		err = fmt.Errorf("%w: fingerprint %016x, here %016x: other sizes, widths or seed", estimate.ErrMismatch, f.Fingerprint, r.Fingerprint)
	case f.Kind == Part && f.Session == r.now.session && f.Interval >= r.now.next && r.holdBack(f.Interval, data):
	case f.Kind == Part:
		err = r.part(&f)
	case f.Kind == Feedback:
		err = fmt.Errorf("%w: feedback is for senders", estimate.ErrEncoding)
	case !r.follow(&f):
		r.Counters.Stale++
	case f.Kind == Start:
		err = r.start(&f)
	default:
		r.end(&f)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrForged):
		r.Counters.Forged++
	case errors.Is(err, estimate.ErrMismatch):
		r.Counters.Foreign++
	default:
		r.Counters.Corrupt++
	}
	r.trouble = fmt.Errorf("control packet: %w", err)
	return r.trouble
}

const (
	// maxAhead is how many intervals a marker may be ahead of the next.
	maxAhead = 8
	// convincing is how many markers of another session, one after another and
	// without one of the present session, make it the present one.
	convincing = 3
)

// follow reports whether a marker belongs to the present session, which may
// begin with it. A greater session belongs to a sender that was restarted, and
// is followed at once. A marker of a lower session, or far from the present
// interval, may come from a sender whose clock was set back, or from a
// stranger: others must follow it, and none of the present session.
//
// With a key nobody can make up a marker, only send one again; it then belongs
// to an interval or a session that has passed. A sender that was restarted with
// a number that it had before looks the same, so it is told, by feedback, which
// number is greater.
func (r *Receiver) follow(f *Frame) bool {
	same := f.Session == r.now.session
	switch {
	case !r.bound:
		r.bound, r.now = true, track{f.Session, f.Interval}
	case same && f.Interval+1 >= r.now.next && (r.Key.set || f.Interval <= r.now.next+maxAhead):
	case f.Session > r.now.session:
		r.adopt(f)
	default:
		if r.strange++; r.strange < convincing {
			return false
		}
		if r.Key.set {
			r.strange = 0
			r.Slots.Report(Report{Session: f.Session, First: f.Interval, Interval: f.Interval, Slot: None, Err: ErrPassed})
			return false
		}
		r.adopt(f)
	}
	r.strange = 0
	return true
}

// adopt makes a marker's session the present one, and reports the intervals of
// it that were missed.
func (r *Receiver) adopt(f *Frame) {
	r.Flush()
	if f.Session != r.now.session {
		was := r.now
		r.now = track{session: f.Session}
		if r.before.session == f.Session {
			r.now = r.before
		}
		r.before = was
	}
	r.now.next = min(r.now.next, f.Interval)
	r.skip(f.Interval)
}

// start opens an interval. If another one is open, its End was lost.
func (r *Receiver) start(f *Frame) error {
	if f.Interval < r.now.next {
		r.Counters.Stale++
		return nil
	}
	s := &r.slots[r.open]
	if s.used {
		r.Flush()
	}
	if err := r.Slots.Open(r.open, f.Payload); err != nil {
		return err
	}
	r.skip(f.Interval)
	r.now.next = f.Interval + 1
	*s = slot{used: true, interval: f.Interval, parts: s.parts[:0]}
	early := r.early
	r.early = nil
	for _, data := range early { // those of later intervals are held back again
		_ = r.Receive(data)
	}
	return nil
}

// holdBack keeps a part that came before the start of its interval, if there is room.
func (r *Receiver) holdBack(interval uint64, data []byte) bool {
	size := len(data)
	for _, d := range r.early {
		size += len(d)
	}
	if interval >= r.now.next+maxAhead || size > r.Bytes {
		return false
	}
	r.early = append(r.early, bytes.Clone(data))
	return true
}

// end closes an interval. If the one before still waits for its synopsis, it
// does so in vain.
func (r *Receiver) end(f *Frame) {
	s := &r.slots[r.open]
	switch {
	case s.used && s.interval == f.Interval:
		r.due()
		s.clockSet = s.clockSet || f.ClockSet
		r.open = 1 - r.open
		r.Slots.Idle()
		if s.came > 0 && s.came == len(s.parts) {
			r.due()
		}
	case f.Interval < r.now.next:
		r.Counters.Stale++
	default: // not even the Start of this interval came
		r.Flush()
		r.skip(f.Interval + 1)
	}
}

// part takes a part of a synopsis, even before the markers have come.
func (r *Receiver) part(f *Frame) error {
	of := func(s *slot) bool { return s.used && s.interval == f.Interval && f.Session == r.now.session }
	s, waiting := &r.slots[1-r.open], true
	if !of(s) {
		s, waiting = &r.slots[r.open], false
	}
	if !of(s) {
		r.Counters.Stale++
		return nil
	}
	if n := int(f.Parts); len(s.parts) == 0 && n <= r.Parts {
		s.parts = slices.Grow(s.parts, n)[:n] // with what they took before
		for i := range s.parts {
			s.parts[i] = s.parts[i][:0]
		}
	}
	bytes := s.bytes + len(f.Payload)
	switch {
	case int(f.Parts) != len(s.parts) || len(f.Payload) == 0 || bytes > r.Bytes:
		return fmt.Errorf("%w: part %d of %d, up to byte %d, want one of %d, up to byte %d at most",
			estimate.ErrEncoding, f.Part, f.Parts, bytes, len(s.parts), r.Bytes)
	case len(s.parts[f.Part]) > 0:
		r.Counters.Duplicate++
		return nil
	}
	s.parts[f.Part], s.bytes = append(s.parts[f.Part], f.Payload...), bytes
	if s.came++; waiting && s.came == len(s.parts) {
		r.due()
	}
	return nil
}

// Flush decides or gives up the waiting intervals, when no more control
// packets are expected.
func (r *Receiver) Flush() {
	r.due()
	r.finish(r.open, ErrEnd)
}

// due decides the interval that waits for its synopsis by what has come of it.
func (r *Receiver) due() {
	switch s := &r.slots[1-r.open]; {
	case s.came == 0:
		r.finish(1-r.open, ErrParts)
	case s.clockSet:
		r.finish(1-r.open, ErrStep)
	default:
		r.finish(1-r.open, nil)
	}
}

// finish reports on a slot's interval, if there is one: why it is unusable, or
// what came of it.
func (r *Receiver) finish(index int, why error) {
	s := &r.slots[index]
	if !s.used {
		return
	}
	s.used = false
	if index == r.open {
		r.Slots.Idle()
	}
	r.report(Report{First: s.interval, Interval: s.interval, Slot: index, Err: why, Parts: s.all})
}

// skip reports the intervals before the next one whose Start never came.
func (r *Receiver) skip(next uint64) {
	if first := r.now.next; next > first {
		r.due() // its parts are due before the End that was lost
		r.now.next = next
		r.report(Report{First: first, Interval: next - 1, Slot: None, Err: ErrStart})
	}
}

func (r *Receiver) report(report Report) {
	report.Session = r.now.session
	if report.Err != nil && r.trouble != nil {
		report.Err = fmt.Errorf("%w; last rejected: %w", report.Err, r.trouble)
	}
	r.trouble = nil
	r.Slots.Report(report)
}
