package lda

import (
	"errors"
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// Why an interval is unusable. A Report's Err wraps one of these, or what
// [Estimate] returned; and, if a control packet was rejected since the report
// before, also what was wrong with that, [estimate.ErrEncoding] if it was
// corrupt and [estimate.ErrMismatch] if it was of another Config or seed.
var (
	// ErrStart: the Start marker was lost, or came after the End.
	ErrStart = errors.New("start marker missing")
	// ErrEnd: the End marker was lost, or came after the next Start.
	ErrEnd = errors.New("end marker missing")
	// ErrParts: not all of the synopsis had come when the next interval ended.
	ErrParts = errors.New("parts of the synopsis missing")
	// ErrCrossed: packets came that were not sent in the interval, since they
	// or a marker were overtaken, or duplicated. Cells in which as many came
	// as were lost would spoil the estimate and cannot be told from others
	// without a digest, so the interval is refused if any cell has more than
	// were sent. Where none has, because all that came hide losses, nothing
	// shows and the estimate is wrong: once in 135,000 intervals of 20 packets
	// through a bad channel. With a digest, Estimate leaves such cells out and
	// the interval is usable.
	ErrCrossed = errors.New("packets of other intervals, and no digest")
)

// A Report is the outcome of an interval.
type Report struct {
	// Interval is its number. Intervals of which nothing at all was heard
	// are reported together, from First to Interval.
	First, Interval uint64

	Session uint64 // of the Sender that numbered them

	Config Config // of the interval, if its Start came
	Err    error  // nil if Result is good
	Result Result // without a synopsis, zero
}

// Counters count the control packets of which no use was made.
type Counters struct {
	Corrupt   uint64 // not control packets, or damaged
	Foreign   uint64 // of another Config or seed
	Duplicate uint64
	Stale     uint64 // too late, or of a session before
}

// A Receiver is the downstream point through many intervals, see [Sender]. It
// takes the control packets, in the stream of packets where the markers came,
// and reports on every interval exactly once, in order: what two aggregators
// tell, or why they do not. Its memory is that of three aggregators and two
// encodings, whatever comes.
//
// Control packets carry a checksum, not a signature. Whoever can send one can
// make up an interval, and by a number far ahead have all honest ones taken for
// late: where strangers can, bring them by an authenticated way.
//
// It is for one goroutine, except that while this one goes on updating another
// one may call Receive with what is not a marker: no two calls of Receive at
// once, and markers only where Update is. The last part of a synopsis costs
// the decoding and comparison of all cells, so that this is worth it where
// packets never stop.
type Receiver struct {
	tuner    Tuner
	known    [8]knownConfig // the tuner's, then those used or derived last
	bound    bool           // a session is known
	session  uint64
	next     uint64 // intervals before are reported, pending or open
	counters Counters
	trouble  error // what was wrong with the last frame that was rejected

	target  *Aggregator // gets the packets: open's, or idle
	idle    *Aggregator
	open    *slot       // the interval between Start and End, or a free slot
	pending *slot       // one that has ended and waits for its synopsis, or a free slot
	up      *Aggregator // the synopsis, decoded
}

type knownConfig struct {
	fingerprint uint64
	config      Config
}

// slot is an interval in the making.
type slot struct {
	used        bool
	interval    uint64
	fingerprint uint64
	down        *Aggregator
	record      []byte // parts of the synopsis
	have        []bool // by part
	parts       int    // 0 until known
	missing     int
}

// NewReceiver returns a Receiver for a Sender with an equal tuner. The error
// wraps [estimate.ErrConfig].
func NewReceiver(t Tuner) (*Receiver, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	r := &Receiver{tuner: t, idle: newIdle(), open: newSlot(t.Config), pending: newSlot(t.Config), up: mustNew(t.Config)}
	r.target = r.idle
	for i := range r.known {
		r.known[i] = knownConfig{t.Config.Fingerprint(), t.Config}
	}
	return r, nil
}

func newSlot(c Config) *slot {
	size := c.EncodedSize()
	return &slot{down: mustNew(c), record: make([]byte, size), have: make([]bool, min(size, maxParts))}
}

// Update records that packet p passed at time t. Between intervals it does
// nothing.
func (r *Receiver) Update(p hashing.Packet, t int64) { r.target.Update(p, t) }

// Counters returns how many control packets were of no use.
func (r *Receiver) Counters() Counters { return r.counters }

// Receive takes a control packet and appends the reports that it leads to. The
// error says why it was rejected, and wraps [estimate.ErrEncoding] or
// [estimate.ErrMismatch]; the interval may come to no harm nevertheless, if
// the packet comes again. A packet that is late or comes twice is no error.
func (r *Receiver) Receive(data []byte, reports []Report) ([]Report, error) {
	var f frame
	err := f.parse(data)
	if err == nil && f.kind == feedback {
		err = fmt.Errorf("lda: control packet: %w: feedback is for senders", estimate.ErrEncoding)
	}
	if err != nil {
		r.counters.Corrupt++
		r.trouble = err
		return reports, err
	}
	config, ok := r.recall(f.fingerprint)
	if !ok {
		r.counters.Foreign++
		r.trouble = fmt.Errorf("lda: control packet: %w: fingerprint %016x, here %016x: other sizes, widths or seed",
			estimate.ErrMismatch, f.fingerprint, r.known[0].fingerprint)
		return reports, r.trouble
	}
	if !r.bound || f.session > r.session {
		reports = r.Flush(reports)
		r.bound, r.session, r.next = true, f.session, f.interval
	}
	if f.session < r.session {
		r.counters.Stale++
		return reports, nil
	}
	switch f.kind {
	case startMarker:
		return r.start(&f, config, reports), nil
	case endMarker:
		return r.end(&f, reports), nil
	}
	return r.part(&f, reports)
}

// start opens an interval. One that is open has lost its End.
func (r *Receiver) start(f *frame, config Config, reports []Report) []Report {
	if f.interval < r.next {
		r.late(r.open.used && r.open.interval == f.interval)
		return reports
	}
	if r.open.used {
		reports = r.Flush(reports)
	}
	reports = r.skip(f.interval, reports)
	r.next = f.interval + 1
	s := r.open
	s.used, s.interval, s.fingerprint, s.parts = true, f.interval, f.fingerprint, 0
	if s.down.config != config {
		s.down.configure(config)
	}
	r.target = s.down
	return reports
}

// end closes an interval. The one before, if it still waits, waits in vain.
func (r *Receiver) end(f *frame, reports []Report) []Report {
	switch {
	case r.open.used && r.open.interval == f.interval && r.open.fingerprint == f.fingerprint:
		reports = r.give(r.pending, ErrParts, reports)
		r.open, r.pending = r.pending, r.open
		r.target = r.idle
		return r.decide(reports)
	case f.interval < r.next:
		r.late(r.pending.used && r.pending.interval == f.interval)
		return reports
	}
	// Of this interval not even the Start was heard.
	reports = r.Flush(reports)
	return r.skip(f.interval+1, reports)
}

// late counts a marker of which no use can be made.
func (r *Receiver) late(again bool) {
	if again {
		r.counters.Duplicate++
	} else {
		r.counters.Stale++
	}
}

// part takes a part of a synopsis, also before the End has come.
func (r *Receiver) part(f *frame, reports []Report) ([]Report, error) {
	s := r.pending
	if !s.used || s.interval != f.interval {
		s = r.open
	}
	if !s.used || s.interval != f.interval || s.fingerprint != f.fingerprint {
		r.counters.Stale++
		return reports, nil
	}
	parts, i := int(f.parts), int(f.part)
	if s.parts == 0 && parts <= len(s.have) {
		s.parts, s.missing = parts, parts
		clear(s.have)
	}
	from, to := 0, 0
	if parts == s.parts {
		from, to = partBounds(len(s.record), i, parts)
	}
	if to-from != len(f.payload) || parts != s.parts {
		r.counters.Corrupt++
		r.trouble = fmt.Errorf("lda: control packet: %w: part %d of %d has %d bytes, want %d of %d",
			estimate.ErrEncoding, i, parts, len(f.payload), to-from, s.parts)
		return reports, r.trouble
	}
	if s.have[i] {
		r.counters.Duplicate++
		return reports, nil
	}
	s.have[i] = true
	s.missing--
	copy(s.record[from:to], f.payload)
	if s == r.pending {
		reports = r.decide(reports)
	}
	return reports, nil
}

// decide reports on the pending interval if its synopsis is whole.
func (r *Receiver) decide(reports []Report) []Report {
	s := r.pending
	if s.parts == 0 || s.missing > 0 {
		return reports
	}
	report := Report{Session: r.session, First: s.interval, Interval: s.interval, Config: s.down.config}
	state, config, err := openRecord(s.record)
	if err == nil && config != s.down.config {
		err = fmt.Errorf("lda: %w: %+v and %+v", estimate.ErrMismatch, config, s.down.config)
	}
	if err == nil {
		r.up.configure(config)
		err = r.up.decodeState(state)
	}
	if err == nil {
		report.Result, err = Estimate(r.up, s.down)
		r.remember(r.tuner.Next(report.Result.Sent, report.Result.Lost))
		if err == nil && report.Result.Extra > 0 && config.DigestBits == 0 {
			err = fmt.Errorf("lda: %w: %d of them", ErrCrossed, report.Result.Extra)
		}
	}
	report.Err = err
	return r.finish(s, report, reports)
}

// give reports that a slot's interval, if there is one, is unusable.
func (r *Receiver) give(s *slot, why error, reports []Report) []Report {
	if !s.used {
		return reports
	}
	return r.finish(s, Report{Session: r.session, First: s.interval, Interval: s.interval, Config: s.down.config, Err: r.because(why)}, reports)
}

// finish frees a slot.
func (r *Receiver) finish(s *slot, report Report, reports []Report) []Report {
	s.used = false
	s.down.Reset()
	if r.target == s.down {
		r.target = r.idle
	}
	r.trouble = nil
	return append(reports, report)
}

// skip reports the intervals before the next one to come, of whose Start
// nothing was heard.
func (r *Receiver) skip(next uint64, reports []Report) []Report {
	if next > r.next {
		reports = r.give(r.pending, ErrParts, reports) // its parts are due before the End that was lost
		reports = append(reports, Report{Session: r.session, First: r.next, Interval: next - 1, Err: r.because(ErrStart)})
		r.next, r.trouble = next, nil
	}
	return reports
}

func (r *Receiver) because(why error) error {
	if r.trouble != nil {
		return fmt.Errorf("lda: %w; last rejected: %w", why, r.trouble)
	}
	return fmt.Errorf("lda: %w", why)
}

// Flush gives up on the intervals that are not decided and reports them, for
// when no more control packets are expected.
func (r *Receiver) Flush(reports []Report) []Report {
	reports = r.give(r.pending, ErrParts, reports)
	return r.give(r.open, ErrEnd, reports)
}

// AppendFeedback appends the bytes for the Sender's Feedback that say what
// was lost in an interval. Without an answer to say, because the synopsis did
// not come, it appends nothing.
func (r *Receiver) AppendFeedback(dst []byte, report *Report) []byte {
	if report.Result.Sent == 0 {
		return dst
	}
	var counts [16]byte
	f := frame{
		kind:        feedback,
		fingerprint: r.known[0].fingerprint,
		session:     report.Session,
		interval:    report.Interval,
		payload:     appendFeedbackCounts(counts[:0], report.Result.Sent, report.Result.Lost),
	}
	return f.append(dst)
}

// recall finds the Config with a fingerprint among those that the Sender may
// be using, and makes it the last to be forgotten.
func (r *Receiver) recall(fingerprint uint64) (Config, bool) {
	if r.known[0].fingerprint == fingerprint {
		return r.known[0].config, true
	}
	recent := r.known[1:]
	for i, k := range recent {
		if k.fingerprint == fingerprint {
			copy(recent[1:i+1], recent[:i])
			recent[0] = k
			return k.config, true
		}
	}
	return Config{}, false
}

// remember adds a Config that the Sender may come to use.
func (r *Receiver) remember(c Config) {
	fingerprint := c.Fingerprint()
	if _, ok := r.recall(fingerprint); ok {
		return
	}
	recent := r.known[1:]
	copy(recent[1:], recent)
	recent[0] = knownConfig{fingerprint, c}
}
