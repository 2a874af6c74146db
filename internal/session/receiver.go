package session

import (
	"errors"
	"fmt"
	"iter"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/wire"
)

// A Point holds the downstream point's synopses: two, in slots 0 and 1, which
// take turns.
type Point[R any] interface {
	// Open directs the packets from now on to a slot, which is empty, as the
	// payload of the Start says. An error refuses it.
	Open(slot int, start []byte) error
	// Idle directs the packets nowhere.
	Idle()
	// Compare compares the parts of the upstream point's synopsis with a slot.
	Compare(slot int, parts iter.Seq[[]byte]) (R, error)
	// Discard empties a slot.
	Discard(slot int)
}

// A Report is the outcome of an interval.
type Report[R any] struct {
	First, Interval uint64 // intervals without any sign are reported together
	Session         uint64
	Start           string // payload of the Start
	Started         bool   // the Start came
	Err             error
	Result          R
}

// Counters counts the control packets that were not used.
type Counters struct {
	Corrupt   uint64 // not control packets, or damaged
	Forged    uint64 // without the key's tag
	Foreign   uint64 // of another Config or seed, or tagged although there is no key
	Duplicate uint64
	Stale     uint64 // too late, or of another session
}

// A Receiver follows the downstream point through many intervals. See
// [Sender]. It is for one goroutine, except that another one may call Receive
// with parts.
type Receiver[R any] struct {
	pkg         string
	point       Point[R]
	key         Key
	bound       bool // a session is known
	now         track
	before      track // the session that was left for it
	rival       track
	counters    Counters
	trouble     error // the error of the last frame that was rejected
	slots       [2]slot
	open        int // index of the slot of the interval between Start and End, or free; the other waits for its synopsis
	fingerprint uint64
	parts       int // at most
	bytes       int // of all of them, at most
}

// slot is an interval in the making.
type slot struct {
	used, clockSet bool
	interval       uint64
	start          string // payload of the Start
	data           []byte // of the parts, one after another
	have           []span // by part
	parts, came    int    // parts is 0 until known
}

// span is where a part is in the data of a slot: nowhere if both are 0.
type span struct{ from, to int }

// all returns the parts that came.
func (s *slot) all(yield func([]byte) bool) {
	for _, at := range s.have[:s.parts] {
		if at.to > 0 && !yield(s.data[at.from:at.to]) {
			return
		}
	}
}

// NewReceiver returns a Receiver of synopses of at most so many parts and bytes for
// a package's point, whose Config has the fingerprint.
func NewReceiver[R any](pkg string, point Point[R], parts, bytes int, fingerprint uint64) *Receiver[R] {
	return &Receiver[R]{pkg: pkg, point: point, fingerprint: fingerprint, parts: min(parts, MaxParts), bytes: bytes}
}

// SetKey makes the receiver accept only frames with the key's tag from now on.
func (r *Receiver[R]) SetKey(key Key) { r.key = key }

// ClockSet reports that the point's clock was set. It spoils the open
// interval.
func (r *Receiver[R]) ClockSet() {
	s := &r.slots[r.open]
	s.clockSet = s.used
}

// Counters returns how many control packets were not used.
func (r *Receiver[R]) Counters() Counters { return r.counters }

// Receive takes a control packet and appends the reports that follow from it.
// The error says why the packet was rejected.
func (r *Receiver[R]) Receive(data []byte, reports []Report[R]) ([]Report[R], error) {
	var f Frame
	if err := r.read(data, &f); err != nil {
		return reports, r.reject(err)
	}
	if f.Kind == Part {
		return r.part(&f, reports)
	}
	if !r.bound {
		r.bound, r.now = true, track{session: f.Session, next: f.Interval}
	}
	switch r.judge(&f) {
	case fresh:
		reports = r.adopt(&f, reports)
	case stale:
		r.counters.Stale++
		return reports, nil
	case repeated:
		r.counters.Stale++
		return append(reports, Report[R]{
			Session: f.Session, First: f.Interval, Interval: f.Interval, Err: fmt.Errorf("%s: %w", r.pkg, ErrPassed),
		}), nil
	}
	if f.Kind == Start {
		return r.start(&f, reports)
	}
	return r.end(&f, reports), nil
}

// reject remembers the error of a control packet for the next report.
func (r *Receiver[R]) reject(err error) error {
	r.trouble = fmt.Errorf("control packet: %w", err)
	return fmt.Errorf("%s: %w", r.pkg, r.trouble)
}

// read parses a frame and counts its errors.
func (r *Receiver[R]) read(data []byte, f *Frame) error {
	err := f.Parse(data, &r.key)
	if err == nil && f.Kind == Feedback {
		err = fmt.Errorf("%w: feedback is for senders", estimate.ErrEncoding)
	}
	if err != nil {
		r.count(err)
		return err
	}
	if f.Fingerprint != r.fingerprint {
		r.counters.Foreign++
		return fmt.Errorf("%w: fingerprint %016x, here %016x: other sizes, widths or seed",
			estimate.ErrMismatch, f.Fingerprint, r.fingerprint)
	}
	return nil
}

// late counts a marker that cannot be used.
func (r *Receiver[R]) late(again bool) {
	if again {
		r.counters.Duplicate++
	} else {
		r.counters.Stale++
	}
}

// start opens an interval. If another one is open, its End was lost.
func (r *Receiver[R]) start(f *Frame, reports []Report[R]) ([]Report[R], error) {
	if f.Interval < r.now.next {
		r.late(r.slots[r.open].used && r.slots[r.open].interval == f.Interval)
		return reports, nil
	}
	if r.slots[r.open].used {
		reports = r.Flush(reports)
	}
	if err := r.point.Open(r.open, f.Payload); err != nil {
		r.count(err)
		return reports, r.reject(err)
	}
	reports = r.skip(f.Interval, reports)
	r.now.next = f.Interval + 1
	s := &r.slots[r.open]
	s.used, s.clockSet, s.interval, s.parts = true, false, f.Interval, 0
	if s.start != string(f.Payload) { // which allocates nothing
		s.start = string(f.Payload)
	}
	return reports, nil
}

// end closes an interval. If the one before still waits for its synopsis, it
// does so in vain.
func (r *Receiver[R]) end(f *Frame, reports []Report[R]) []Report[R] {
	open, pending := &r.slots[r.open], &r.slots[1-r.open]
	switch {
	case open.used && open.interval == f.Interval:
		reports = r.due(reports)
		open.clockSet = open.clockSet || f.ClockSet
		r.open = 1 - r.open
		r.point.Idle()
		if open.parts > 0 && open.came == open.parts {
			reports = r.decide(reports)
		}
		return reports
	case f.Interval < r.now.next:
		r.late(pending.used && pending.interval == f.Interval)
		return reports
	}
	// Not even the Start of this interval came.
	reports = r.Flush(reports)
	return r.skip(f.Interval+1, reports)
}

// part takes a part of a synopsis, even before the End has come.
func (r *Receiver[R]) part(f *Frame, reports []Report[R]) ([]Report[R], error) {
	index := 1 - r.open
	if s := &r.slots[index]; !s.used || s.interval != f.Interval {
		index = r.open
	}
	s := &r.slots[index]
	if !s.used || s.interval != f.Interval || f.Session != r.now.session {
		r.counters.Stale++
		return reports, nil
	}
	if s.parts == 0 && int(f.Parts) <= r.parts {
		s.parts, s.came, s.data = int(f.Parts), 0, s.data[:0]
		s.have = append(s.have[:0], make([]span, s.parts)...)
	}
	from := len(s.data)
	switch to := from + len(f.Payload); {
	case int(f.Parts) != s.parts || to == from:
		r.counters.Corrupt++
		return reports, r.reject(fmt.Errorf("%w: part %d of %d, want one of %d", estimate.ErrEncoding, f.Part, f.Parts, s.parts))
	case s.have[f.Part].to > 0:
		r.counters.Duplicate++
		return reports, nil
	case to > r.bytes:
		r.counters.Corrupt++
		return reports, r.reject(fmt.Errorf("%w: parts of %d bytes, want at most %d", estimate.ErrEncoding, to, r.bytes))
	default:
		s.have[f.Part] = span{from, to}
	}
	s.data = append(s.data, f.Payload...)
	s.came++
	if index != r.open && s.came == s.parts {
		reports = r.decide(reports)
	}
	return reports, nil
}

// due decides the waiting interval by what has come of its synopsis.
func (r *Receiver[R]) due(reports []Report[R]) []Report[R] {
	s := &r.slots[1-r.open]
	if s.used && s.parts > 0 && s.came > 0 {
		return r.decide(reports)
	}
	return r.give(1-r.open, ErrParts, reports)
}

// decide reports on the waiting interval.
func (r *Receiver[R]) decide(reports []Report[R]) []Report[R] {
	index := 1 - r.open
	s := &r.slots[index]
	if s.clockSet {
		return r.give(index, ErrStep, reports)
	}
	report := Report[R]{Session: r.now.session, First: s.interval, Interval: s.interval, Start: s.start, Started: true}
	report.Result, report.Err = r.point.Compare(index, s.all)
	return r.finish(index, report, reports)
}

// give reports that a slot's interval, if there is one, is unusable.
func (r *Receiver[R]) give(index int, why error, reports []Report[R]) []Report[R] {
	s := &r.slots[index]
	if !s.used {
		return reports
	}
	report := Report[R]{Session: r.now.session, First: s.interval, Interval: s.interval, Start: s.start, Started: true, Err: r.because(why)}
	return r.finish(index, report, reports)
}

// finish frees a slot.
func (r *Receiver[R]) finish(index int, report Report[R], reports []Report[R]) []Report[R] {
	r.slots[index].used = false
	if index == r.open {
		r.point.Idle()
	}
	r.point.Discard(index)
	r.trouble = nil
	return append(reports, report)
}

// skip reports the intervals before the next one whose Start never came.
func (r *Receiver[R]) skip(next uint64, reports []Report[R]) []Report[R] {
	if next > r.now.next {
		reports = r.due(reports) // its parts are due before the End that was lost
		reports = append(reports, Report[R]{Session: r.now.session, First: r.now.next, Interval: next - 1, Err: r.because(ErrStart)})
		r.now.next, r.trouble = next, nil
	}
	return reports
}

func (r *Receiver[R]) because(why error) error {
	if r.trouble != nil {
		return fmt.Errorf("%s: %w; last rejected: %w", r.pkg, why, r.trouble)
	}
	return fmt.Errorf("%s: %w", r.pkg, why)
}

// Flush decides or gives up the waiting intervals, when no more control
// packets are expected.
func (r *Receiver[R]) Flush(reports []Report[R]) []Report[R] {
	reports = r.due(reports)
	return r.give(r.open, ErrEnd, reports)
}

// AppendFeedback appends, for the Sender's Feedback, a record of what was lost
// in an interval.
func (r *Receiver[R]) AppendFeedback(dst []byte, session, interval, sent, lost uint64) []byte {
	var counts [16]byte
	payload := wire.AppendUint(wire.AppendUint(counts[:0], sent, 8), lost, 8)
	f := Frame{Kind: Feedback, Fingerprint: r.fingerprint, Session: session, Interval: interval, Payload: payload}
	return f.Append(dst, &r.key)
}

// AppendGreater appends, for the Sender's Feedback, that a session greater than the
// present one is asked for.
func (r *Receiver[R]) AppendGreater(dst []byte, session, interval uint64) []byte {
	var next [8]byte
	f := Frame{Kind: Feedback, Fingerprint: r.fingerprint, Session: session, Interval: interval,
		Payload: wire.AppendUint(next[:0], r.now.session+1, 8)}
	return f.Append(dst, &r.key)
}

// count counts a frame that could not be read.
func (r *Receiver[R]) count(err error) {
	switch {
	case errors.Is(err, ErrForged):
		r.counters.Forged++
	case errors.Is(err, estimate.ErrMismatch):
		r.counters.Foreign++
	default:
		r.counters.Corrupt++
	}
}
