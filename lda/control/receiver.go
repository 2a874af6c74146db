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

// Errors of intervals and of control packets. A Report's Err wraps one of these, or
// the error of [lda.Estimate].
var (
	// ErrStart says that the Start marker was lost, or came after the End.
	ErrStart = errors.New("start marker missing")
	// ErrEnd says that the End marker was lost, or came after the next Start.
	ErrEnd = errors.New("end marker missing")
	// ErrParts says that not all parts of the synopsis came before the next interval
	// ended, or some came before their interval's Start.
	ErrParts = errors.New("parts of the synopsis missing")
	// ErrStep says that a point's clock was set during the interval.
	ErrStep = errors.New("clock was set")
	// ErrForged says that a control packet lacks the tag of the key.
	ErrForged = session.ErrForged
	// ErrPassed says that markers come of a session, or of intervals, that have
	// passed: a stranger repeats them, or the Sender was restarted with a number
	// that is not greater. The Receiver says so once for three markers.
	ErrPassed = errors.New("session or interval has passed")
	// ErrTurn says that Start was called during an interval, or End outside one.
	ErrTurn = errors.New("out of turn")
)

// A Report is the outcome of an interval.
type Report struct {
	// Interval is the number of the interval. Intervals of which nothing was
	// received are reported together, from First to Interval.
	First, Interval uint64

	Session uint64     // session of the Sender
	Err     error      // nil if Result is good
	Result  lda.Result // zero if the synopsis did not come

	// Outside is how many packets came since the last End, before this interval's Start. A Sender that paused did not
	// count them; if the Start was late, it did, and so many of those lost are not.
	Outside uint64
}

// A Receiver is the downstream point; see [Sender]. Give it the control packets,
// markers at their place in the stream of packets. It reports on every interval
// exactly once, in order: the result, or why there is none. It holds three aggregators
// and three encodings, whatever comes.
//
// Control packets carry a checksum, and a tag if both points have a key. Without a
// key, anyone who can send a control packet can make up an interval. No such
// packet silences the Receiver, which follows the markers that follow each other: three
// that come late or twice, and none in time between them, take it back, and what they
// begin is reported once more. With a key they do not.
//
// A Receiver is not safe for concurrent use, except that one goroutine may
// call Receive with parts while another one calls Update. Calls of Receive
// must not overlap, and markers belong to the goroutine that calls Update. Use
// this if packets never stop, because the last part of a synopsis makes
// Receive decode and compare all cells. The zero value panics.
type Receiver struct {
	identity uint64
	most     int // bytes of a synopsis
	key      session.Key
	reports  []Report // of the call of Receive or Flush

	bound   bool // a session is known
	now     track
	before  track  // what was left for it
	strange int    // markers, one after another, that do not follow on it
	open    *slot  // of the interval between Start and End, or free
	outside uint64 // packets since the last End
	waiting *slot  // for its synopsis

	up     *lda.Aggregator // the synopsis, decoded
	packed []byte          // and its parts together
}

// A track is a session and how far it has come.
type track struct {
	session uint64
	next    uint64 // intervals before have begun
}

// A slot is an interval in the making. Two take turns.
type slot struct {
	down           *lda.Aggregator // empty but for the interval's packets
	used, clockSet bool
	interval       uint64
	outside        uint64   // packets that came before its Start
	parts          [][2]int // where in data; none until known how many there are, each empty until it came
	came           int
	data           []byte // of the parts that came, in that order
}

// whole reports whether the synopsis has come.
func (s *slot) whole() bool { return s.came > 0 && s.came == len(s.parts) }

// NewReceiver returns a Receiver for a Sender with an equal Config. The error wraps
// [estimate.ErrConfig].
func NewReceiver(c lda.Config) (*Receiver, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	r := &Receiver{identity: c.Identity, most: mostPacked(&c), up: mustNew(c)}
	r.open, r.waiting = &slot{down: mustNew(c)}, &slot{down: mustNew(c)}
	return r, nil
}

// SetKey makes the Receiver accept only control packets that a Sender with the same
// secret key has tagged.
func (r *Receiver) SetKey(key [16]byte) { r.key = session.NewKey(key) }

// Update records that packet p passed at time t. Between intervals it counts it as outside.
func (r *Receiver) Update(p hashing.Packet, t int64) {
	if r.open.used {
		r.open.down.Update(p, t)
	} else {
		r.outside++
	}
}

// ClockSet says that this point's clock was set. The Receiver refuses the open
// interval, because its sums mix two clocks.
func (r *Receiver) ClockSet() { r.open.clockSet = r.open.used }

// Receive takes a control packet and appends the reports that follow from it.
// If it rejects the packet, the error wraps [estimate.ErrEncoding],
// [estimate.ErrMismatch] or [ErrForged]; the interval is still good if the
// packet comes again. A packet that is late or comes twice is no error.
func (r *Receiver) Receive(data []byte, reports []Report) ([]Report, error) {
	r.reports = reports
	err := r.receive(data)
	if err != nil {
		err = fmt.Errorf("control: %w", err)
	}
	return r.reports, err
}

// Flush reports on the undecided intervals by what has come. Call it when no
// more control packets are expected.
func (r *Receiver) Flush(reports []Report) []Report {
	r.reports = reports
	r.flush()
	return r.reports
}

// receive takes a control packet. The error says why it was rejected.
func (r *Receiver) receive(data []byte) error {
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
	return err
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
// a number that it had before looks the same.
func (r *Receiver) follow(f *session.Frame) bool {
	same := f.Session == r.now.session
	switch {
	case !r.bound:
		r.bound, r.now = true, track{f.Session, f.Interval}
	case same && f.Interval+1 >= r.now.next && (r.key.Size() > 0 || f.Interval <= r.now.next+maxAhead):
	case f.Session > r.now.session:
		r.adopt(f)
	default:
		if r.strange++; r.strange < convincing {
			return false
		}
		if r.key.Size() > 0 {
			r.strange = 0
			err := fmt.Errorf("control: %w", ErrPassed)
			r.reports = append(r.reports, Report{Session: f.Session, First: f.Interval, Interval: f.Interval, Err: err})
			return false
		}
		r.adopt(f)
	}
	r.strange = 0
	return true
}

// adopt makes a marker's session the present one, and reports the intervals of
// it that were missed.
func (r *Receiver) adopt(f *session.Frame) {
	r.flush()
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
func (r *Receiver) start(f *session.Frame) {
	if f.Interval < r.now.next {
		return
	}
	s := r.open
	if s.used {
		r.flush()
	}
	r.skip(f.Interval)
	r.now.next = f.Interval + 1
	*s = slot{down: s.down, used: true, interval: f.Interval, outside: r.outside, parts: s.parts[:0], data: s.data[:0]}
	r.outside = 0
}

// end closes an interval. If the one before still waits for its synopsis, it
// does so in vain.
func (r *Receiver) end(f *session.Frame) {
	s := r.open
	switch {
	case s.used && s.interval == f.Interval:
		r.due()
		s.clockSet = s.clockSet || f.ClockSet
		r.open, r.waiting = r.waiting, s
		if s.whole() {
			r.due()
		}
	case f.Interval < r.now.next:
	default: // not even the Start of this interval came
		r.flush()
		r.skip(f.Interval + 1)
	}
}

// part takes a part of a synopsis, even before the interval's End has come.
func (r *Receiver) part(f *session.Frame) error {
	all := []*slot{r.waiting, r.open}
	i := slices.IndexFunc(all, func(s *slot) bool { return s.used && s.interval == f.Interval && f.Session == r.now.session })
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
	if s.came++; s == r.waiting && s.whole() {
		r.due()
	}
	return nil
}

// flush decides or gives up the waiting intervals.
func (r *Receiver) flush() {
	r.due()
	r.finish(r.open, ErrEnd)
}

// due decides the interval that waits for its synopsis by what has come of it.
func (r *Receiver) due() {
	var err error
	switch s := r.waiting; {
	case !s.whole():
		err = ErrParts
	case s.clockSet:
		err = ErrStep
	}
	r.finish(r.waiting, err)
}

// finish reports on a slot's interval, if there is one: why it is unusable, or
// what came of it.
func (r *Receiver) finish(s *slot, why error) {
	if !s.used {
		return
	}
	s.used = false
	report := Report{First: s.interval, Interval: s.interval, Err: why, Outside: s.outside}
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

// skip reports the intervals before the next one whose Start never came.
func (r *Receiver) skip(next uint64) {
	if first := r.now.next; next > first {
		r.due() // its parts are due before the End that was lost
		r.now.next = next
		r.report(Report{First: first, Interval: next - 1, Err: ErrStart})
	}
}

// report adds the outcome of an interval of the session.
func (r *Receiver) report(report Report) {
	report.Session = r.now.session
	if report.Err != nil {
		report.Err = fmt.Errorf("control: %w", report.Err)
	}
	r.reports = append(r.reports, report)
}
