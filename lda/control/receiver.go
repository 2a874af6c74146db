package control

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/session"
	"github.com/hoplag/hoplag/lda"
)

// Errors of intervals and of control packets. [Report.Err] wraps one of these, or the error of [lda.Estimate].
var (
	// ErrStart: the Start marker was lost, or arrived after the End.
	ErrStart = errors.New("start marker missing")
	// ErrEnd: the End marker was lost, or arrived after the next Start.
	ErrEnd = errors.New("end marker missing")
	// ErrParts: a part of the synopsis did not arrive between its interval's Start and the next interval's End.
	ErrParts = errors.New("parts of the synopsis missing")
	// ErrStep: a point's clock was set during the interval.
	ErrStep = errors.New("clock was set")
	// ErrForged: a control packet lacks the tag of the key.
	ErrForged = session.ErrForged
	// ErrPassed: markers belong to a session or an interval that has passed. Either a stranger replays them, or
	// the Sender was restarted with a number that is not greater. It is reported once for every three markers.
	ErrPassed = errors.New("session or interval has passed")
	// ErrTurn: Start was called during an interval, or End outside one.
	ErrTurn = errors.New("out of turn")
)

// A Report is the outcome of an interval.
type Report struct {
	// Interval is the interval's number. Those of which nothing arrived are reported together, First to Interval.
	First, Interval uint64

	Session uint64     // session of the Sender
	Err     error      // nil if Result is good
	Result  lda.Result // zero if the synopsis did not arrive

	// Outside is how many packets arrived between the last End and this interval's Start. A Sender that paused
	// did not count them. If the Start was late, it did, and as many of Result.Lost were not lost.
	Outside uint64
}

// A Receiver is the downstream point; see [Sender]. Give it the control packets, the markers at their place in
// the stream of packets. In each session, from the first marker that it follows, it reports on every interval
// exactly once, in order: the result, or why there is none. It holds at most three aggregators and encodings.
//
// Control packets carry a checksum, and a tag if both points have a key. Without a key, anyone who can send a
// control packet can make up an interval, but cannot silence the Receiver: it returns to a Sender after three
// markers in a row. By the same rule, three old markers in a row set it back, and the intervals that they begin
// are reported again. With a key they do not.
//
// A Receiver is not safe for concurrent use, with one exception: while one goroutine calls Update, another may
// call Receive with parts, because the last part of a synopsis makes Receive decode and compare all cells.
// Calls of Receive must not overlap; markers are for the goroutine that calls Update. The zero value panics.
type Receiver struct {
	identity uint64
	most     int // bytes of a synopsis
	key      session.Key
	reports  []Report // of the call of Receive or Flush

	bound   bool   // a session is known
	session uint64 // the one that is followed
	next    uint64 // its intervals before this one have begun
	strange int    // markers, one after another, that do not follow on it
	open    *slot  // of the interval between Start and End, or free
	outside uint64 // packets since the last End
	waiting *slot  // for its synopsis

	up     *lda.Aggregator // the synopsis, decoded
	packed []byte          // and its parts together
}

// A slot is an interval in the making. Two take turns.
type slot struct {
	down           *lda.Aggregator // empty except for the interval's packets
	used, clockSet bool
	interval       uint64
	outside        uint64   // packets that arrived before its Start
	parts          [][2]int // where each part is in data, empty until it arrives
	came           int
	data           []byte // the parts, in the order in which they arrived
}

// whole reports whether all of the synopsis has arrived.
func (s *slot) whole() bool { return s.came > 0 && s.came == len(s.parts) }

// NewReceiver returns a Receiver for a Sender with an equal Config. The error wraps [estimate.ErrConfig].
func NewReceiver(c lda.Config) (*Receiver, error) {
	up, err := lda.New(c)
	if err != nil {
		return nil, err
	}
	one, _ := lda.New(c) // no error: c is valid
	two, _ := lda.New(c)
	return &Receiver{identity: c.Identity, most: mostPacked(&c), up: up, open: &slot{down: one}, waiting: &slot{down: two}}, nil
}

// SetKey makes the Receiver accept only control packets that a Sender with the same secret key has tagged.
func (r *Receiver) SetKey(key [16]byte) { r.key = session.NewKey(key) }

// Update does what that of [lda.Aggregator] does. Between intervals it only counts it, for [Report.Outside].
func (r *Receiver) Update(p hashing.Packet, t int64) {
	if r.open.used {
		r.open.down.Update(p, t)
	} else {
		r.outside++
	}
}

// ClockSet says that this point's clock was set: the sums of the open interval mix two clocks, and are refused.
func (r *Receiver) ClockSet() { r.open.clockSet = r.open.used }

// Receive takes a control packet and appends the reports that follow from it. If it rejects the packet, the
// error wraps [estimate.ErrEncoding], [estimate.ErrMismatch] or [ErrForged]; the interval is still good if an
// intact copy arrives. A packet that arrives late or twice is no error.
func (r *Receiver) Receive(data []byte, reports []Report) ([]Report, error) {
	r.reports = reports
	var f session.Frame
	err := f.Parse(data, &r.key)
	switch {
	case err != nil:
	case f.Fingerprint != r.identity:
		err = fmt.Errorf("%w: Identity %016x, here %016x: another seed", estimate.ErrMismatch, f.Fingerprint, r.identity)
	case f.Kind == session.Part:
		err = r.part(&f)
	case !r.follow(&f):
	case f.Kind == session.Start:
		r.start(&f)
	default:
		r.end(&f)
	}
	if r.waiting.whole() {
		r.finish(r.waiting, nil)
	}
	if err != nil {
		err = fmt.Errorf("control: %w", err)
	}
	return r.reports, err
}

// Flush reports on the undecided intervals. Call it when you expect no more control packets.
func (r *Receiver) Flush(reports []Report) []Report {
	r.reports = reports
	r.finish(r.waiting, nil)
	r.finish(r.open, ErrEnd)
	return r.reports
}

const (
	maxAhead   = 8 // intervals that a marker may be ahead of the next one
	convincing = 3 // markers of another session in a row that make it the present one
)

// follow reports whether a marker belongs to the session that is followed, which it may begin. A greater
// session is that of a Sender that was restarted, and is followed at once. A marker of a lower session, or far
// from the present interval, may come from a Sender whose clock was set back, or from a stranger: others must
// follow it, and none of the present session. With a key nobody can make up a marker, only send one again, and
// a Sender that was restarted with a number that it had before looks the same.
func (r *Receiver) follow(f *session.Frame) bool {
	keyed, same := r.key.Size() > 0, r.bound && f.Session == r.session
	switch {
	case same && f.Interval+1 >= r.next && (keyed || f.Interval <= r.next+maxAhead):
		r.strange = 0
		return true
	case !r.bound, f.Session > r.session:
	case r.strange+1 < convincing:
		r.strange++
		return false
	case keyed:
		r.strange = 0
		r.report(Report{Session: f.Session, First: f.Interval, Interval: f.Interval, Err: ErrPassed})
		return false
	}
	r.Flush(r.reports)
	if same {
		r.skip(f.Interval)
	}
	r.bound, r.session, r.next, r.strange = true, f.Session, f.Interval, 0
	return true
}

// start opens an interval. If another one is open, its End was lost.
func (r *Receiver) start(f *session.Frame) {
	if f.Interval < r.next {
		return
	}
	s := r.open
	if s.used {
		r.Flush(r.reports)
	}
	r.skip(f.Interval)
	r.next = f.Interval + 1
	*s = slot{down: s.down, used: true, interval: f.Interval, outside: r.outside, parts: s.parts[:0], data: s.data[:0]}
	r.outside = 0
}

// end closes an interval. If the one before it still waits for its synopsis, that will not come.
func (r *Receiver) end(f *session.Frame) {
	s := r.open
	switch {
	case s.used && s.interval == f.Interval:
		r.finish(r.waiting, nil)
		s.clockSet = s.clockSet || f.ClockSet
		r.open, r.waiting = r.waiting, s
	case f.Interval >= r.next: // not even the Start of this interval arrived
		r.Flush(r.reports)
		r.skip(f.Interval + 1)
	}
}

// part takes a part of a synopsis, even before the interval's End has arrived.
func (r *Receiver) part(f *session.Frame) error {
	all := []*slot{r.waiting, r.open}
	i := slices.IndexFunc(all, func(s *slot) bool { return s.used && s.interval == f.Interval && f.Session == r.session })
	if i < 0 {
		return nil
	}
	s, n := all[i], int(f.Parts)
	if len(s.parts) == 0 && n <= r.most {
		s.parts = slices.Grow(s.parts, n)[:n]
		clear(s.parts)
	}
	from, to := len(s.data), len(s.data)+len(f.Payload)
	switch {
	case n != len(s.parts) || to > r.most:
		return fmt.Errorf("%w: part %d of %d, up to byte %d, want one of %d, up to byte %d at most",
			estimate.ErrEncoding, f.Part, f.Parts, to, len(s.parts), r.most)
	case s.parts[f.Part][1] > 0:
		return nil
	}
	s.parts[f.Part], s.data = [2]int{from, to}, append(s.data, f.Payload...)
	s.came++
	return nil
}

// finish reports on a slot's interval, if there is one, by what has arrived of it, or says why it is unusable.
func (r *Receiver) finish(s *slot, why error) {
	switch {
	case !s.used:
		return
	case why != nil:
	case !s.whole():
		why = ErrParts
	case s.clockSet:
		why = ErrStep
	}
	s.used = false
	report := Report{Session: r.session, First: s.interval, Interval: s.interval, Err: why, Outside: s.outside}
	if why == nil {
		r.packed = r.packed[:0]
		for _, part := range s.parts {
			r.packed = append(r.packed, s.data[part[0]:part[1]]...)
		}
		r.up.Reset()
		if report.Err = r.up.AddPacked(r.packed); report.Err == nil {
			report.Result, report.Err = lda.Estimate(r.up, s.down)
		}
	}
	s.down.Reset()
	r.report(report)
}

// skip reports the intervals before next whose Start never arrived.
func (r *Receiver) skip(next uint64) {
	if first := r.next; next > first {
		r.finish(r.waiting, nil) // its parts are due before the End that was lost
		r.next = next
		r.report(Report{Session: r.session, First: first, Interval: next - 1, Err: ErrStart})
	}
}

// report adds the outcome of an interval.
func (r *Receiver) report(report Report) {
	if report.Err != nil {
		report.Err = fmt.Errorf("control: %w", report.Err)
	}
	r.reports = append(r.reports, report)
}
