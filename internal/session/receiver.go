package session

import (
	"errors"
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/wire"
)

// A Point holds the downstream point's synopses: two, in slots 0 and 1, which
// take turns.
type Point[R any] interface {
	// Known reports whether the synopses can have the Config with the
	// fingerprint.
	Known(fingerprint uint64) bool
	// Open directs the packets from now on to a slot, which is empty.
	Open(slot int, fingerprint uint64)
	// Idle directs the packets nowhere.
	Idle()
	// Compare compares the upstream point's record with a slot.
	Compare(slot int, record *Record) (R, error)
	// Discard empties a slot.
	Discard(slot int)
}

// A Report is the outcome of an interval.
type Report[R any] struct {
	First, Interval uint64 // intervals without any sign are reported together
	Session         uint64
	Fingerprint     uint64 // 0 if the Start did not come
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
}

// slot is an interval in the making.
type slot struct {
	used, clockSet bool
	interval       uint64
	fingerprint    uint64
	record         Record
	missing        int
}

// A Record is the encoding of a synopsis, of which some parts may be missing.
type Record struct {
	Data  []byte
	have  []bool // by part
	parts int    // 0 until known
}

// Has reports whether the bytes from one up to another have come.
func (r *Record) Has(from, to int) bool {
	if r.parts == 0 {
		return false
	}
	size := len(r.Data)
	first := int(uint64(from) * uint64(r.parts) / uint64(size))
	for i := max(0, first-1); i < r.parts; i++ {
		low, high := PartBounds(size, i, r.parts)
		if low >= to {
			break
		}
		if high > from && !r.have[i] {
			return false
		}
	}
	return true
}

// NewReceiver returns a Receiver of synopses of size bytes for a package's
// point. Feedback is about the Config with the fingerprint.
func NewReceiver[R any](pkg string, point Point[R], size int, fingerprint uint64) *Receiver[R] {
	r := &Receiver[R]{pkg: pkg, point: point, fingerprint: fingerprint}
	for i := range r.slots {
		r.slots[i].record = Record{Data: make([]byte, size), have: make([]bool, min(size, MaxParts))}
	}
	return r
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
	present, fresh := r.judge(&f)
	if fresh {
		reports = r.adopt(&f, reports)
	} else if !present {
		r.counters.Stale++
		return reports, nil
	}
	if f.Kind == Start {
		return r.start(&f, reports), nil
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
	if !r.point.Known(f.Fingerprint) {
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
func (r *Receiver[R]) start(f *Frame, reports []Report[R]) []Report[R] {
	if f.Interval < r.now.next {
		r.late(r.slots[r.open].used && r.slots[r.open].interval == f.Interval)
		return reports
	}
	if r.slots[r.open].used {
		reports = r.Flush(reports)
	}
	reports = r.skip(f.Interval, reports)
	r.now.next = f.Interval + 1
	s := &r.slots[r.open]
	s.used, s.clockSet, s.interval, s.fingerprint, s.record.parts = true, false, f.Interval, f.Fingerprint, 0
	r.point.Open(r.open, f.Fingerprint)
	return reports
}

// end closes an interval. If the one before still waits for its synopsis, it
// does so in vain.
func (r *Receiver[R]) end(f *Frame, reports []Report[R]) []Report[R] {
	open, pending := &r.slots[r.open], &r.slots[1-r.open]
	switch {
	case open.used && open.interval == f.Interval && open.fingerprint == f.Fingerprint:
		reports = r.due(reports)
		open.clockSet = open.clockSet || f.ClockSet
		r.open = 1 - r.open
		r.point.Idle()
		if open.record.parts > 0 && open.missing == 0 {
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
	if !s.used || s.interval != f.Interval || s.fingerprint != f.Fingerprint || f.Session != r.now.session {
		r.counters.Stale++
		return reports, nil
	}
	record := &s.record
	parts, i := int(f.Parts), int(f.Part)
	if record.parts == 0 && parts <= len(record.have) {
		record.parts, s.missing = parts, parts
		clear(record.have)
	}
	from, to := 0, 0
	if parts == record.parts {
		from, to = PartBounds(len(record.Data), i, parts)
	}
	if to-from != len(f.Payload) || parts != record.parts {
		r.counters.Corrupt++
		return reports, r.reject(fmt.Errorf("%w: part %d of %d has %d bytes, want %d of %d",
			estimate.ErrEncoding, i, parts, len(f.Payload), to-from, record.parts))
	}
	if record.have[i] {
		r.counters.Duplicate++
		return reports, nil
	}
	record.have[i] = true
	s.missing--
	copy(record.Data[from:to], f.Payload)
	if index != r.open && s.missing == 0 {
		reports = r.decide(reports)
	}
	return reports, nil
}

// due decides the waiting interval by what has come of its synopsis.
func (r *Receiver[R]) due(reports []Report[R]) []Report[R] {
	s := &r.slots[1-r.open]
	if s.used && s.record.parts > 0 && s.missing < s.record.parts {
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
	report := Report[R]{Session: r.now.session, First: s.interval, Interval: s.interval, Fingerprint: s.fingerprint}
	report.Result, report.Err = r.point.Compare(index, &s.record)
	return r.finish(index, report, reports)
}

// give reports that a slot's interval, if there is one, is unusable.
func (r *Receiver[R]) give(index int, why error, reports []Report[R]) []Report[R] {
	s := &r.slots[index]
	if !s.used {
		return reports
	}
	report := Report[R]{Session: r.now.session, First: s.interval, Interval: s.interval, Fingerprint: s.fingerprint, Err: r.because(why)}
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
