package control

import (
	"errors"
	"fmt"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/session"
	"github.com/hoplag/hoplag/lda"
)

// Why an interval is unusable, or a control packet is. A Report's Err wraps one
// of these, or what [lda.Estimate] returned; and, if a control packet was rejected
// since the report before, also what was wrong with that,
// [estimate.ErrEncoding] if it was corrupt and [estimate.ErrMismatch] if it was
// of another Config or seed.
var (
	// ErrStart: the Start marker was lost, or came after the End.
	ErrStart = session.ErrStart
	// ErrEnd: the End marker was lost, or came after the next Start.
	ErrEnd = session.ErrEnd
	// ErrParts: nothing of the synopsis had come when the next interval ended.
	ErrParts = session.ErrParts
	// ErrStep: a point said that its clock was set in the interval.
	ErrStep = session.ErrStep
	// ErrForged: a control packet does not carry the tag of the key.
	ErrForged = session.ErrForged
	// ErrTurn: Start was called in an interval, or End outside of one.
	ErrTurn = session.ErrTurn
	// ErrCrossed: packets came that were not sent in the interval, since they
	// or a marker were overtaken, or duplicated. Cells in which as many came
	// as were lost would spoil the estimate and cannot be told from others
	// without a digest, so the interval is refused if any cell has more than
	// were sent. With a digest, Estimate leaves such cells out and the interval
	// is usable.
	ErrCrossed = errors.New("packets of other intervals, and no digest")
)

// A Report is the outcome of an interval.
type Report struct {
	// Interval is its number. Intervals of which nothing at all was heard
	// are reported together, from First to Interval.
	First, Interval uint64

	Session uint64 // of the Sender that numbered them

	Config lda.Config // of the interval, if its Start came
	Err    error      // nil if Result is good
	Result lda.Result // without a synopsis, zero
	Came   float64    // share of the cells that came, 0 to 1; Result counts the packets of those
}

// Counters count the control packets of which no use was made.
type Counters = session.Counters

// A Receiver is the downstream point through many intervals, see [Sender]. It
// takes the control packets, in the stream of packets where the markers came,
// and reports on every interval exactly once, in order: what two aggregators
// tell, or why they do not. Where some parts of a synopsis are lost, the cells
// that came are compared. Its memory is that of three aggregators and two
// encodings, whatever comes.
//
// Control packets carry a checksum, and a tag if both points have a key. Without
// one, whoever can send a control packet can make up an interval; none of his
// silences the Receiver, which follows the markers that follow on each other.
//
// It is for one goroutine, except that while this one goes on updating another
// one may call Receive with what is not a marker: no two calls of Receive at
// once, and markers only where Update is. The last part of a synopsis costs
// the decoding and comparison of all cells, so that this is worth it where
// packets never stop.
type Receiver struct {
	control *session.Receiver[compared]
	tuner   lda.Tuner
	known   [8]knownConfig // the tuner's, then those used or derived last
	reports []session.Report[compared]

	target *lda.Aggregator // gets the packets: a slot's, or idle
	idle   *lda.Aggregator
	down   [2]*lda.Aggregator // by slot
	up     *lda.Aggregator    // the synopsis, decoded
}

type knownConfig struct {
	fingerprint uint64
	config      lda.Config
}

// compared is what a comparison gave.
type compared struct {
	result lda.Result
	came   float64
}

// NewReceiver returns a Receiver for a Sender with an equal tuner. The error
// wraps [estimate.ErrConfig].
func NewReceiver(t lda.Tuner) (*Receiver, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	r := &Receiver{tuner: t, idle: mustNew(idleConfig), down: [2]*lda.Aggregator{mustNew(t.Config), mustNew(t.Config)}, up: mustNew(t.Config)}
	r.target = r.idle
	for i := range r.known {
		r.known[i] = knownConfig{t.Config.Fingerprint(), t.Config}
	}
	r.control = session.NewReceiver("control", slots{r}, t.Config.EncodedSize(), r.known[0].fingerprint)
	return r, nil
}

// SetKey takes only control packets that a Sender with the same secret key has
// tagged, and tags feedback.
func (r *Receiver) SetKey(key [16]byte) { r.control.SetKey(session.NewKey(key)) }

// Update records that packet p passed at time t. Between intervals it does
// nothing.
func (r *Receiver) Update(p hashing.Packet, t int64) { r.target.Update(p, t) }

// ClockSet says that this point's clock was set by a step. The interval that is
// open is refused, since its sums are of two clocks.
func (r *Receiver) ClockSet() { r.control.ClockSet() }

// Counters returns how many control packets were of no use.
func (r *Receiver) Counters() Counters { return r.control.Counters() }

// Receive takes a control packet and appends the reports that it leads to. The
// error says why it was rejected, and wraps [estimate.ErrEncoding],
// [estimate.ErrMismatch] or [ErrForged]; the interval may come to no harm
// nevertheless, if the packet comes again. A packet that is late or comes twice
// is no error.
func (r *Receiver) Receive(data []byte, reports []Report) ([]Report, error) {
	var err error
	r.reports, err = r.control.Receive(data, r.reports[:0])
	return r.appendReports(reports), err
}

// Flush reports on the intervals that are not decided, by what has come, for
// when no more control packets are expected.
func (r *Receiver) Flush(reports []Report) []Report {
	r.reports = r.control.Flush(r.reports[:0])
	return r.appendReports(reports)
}

func (r *Receiver) appendReports(reports []Report) []Report {
	for i := range r.reports {
		in := &r.reports[i]
		config, _ := r.recall(in.Fingerprint)
		reports = append(reports, Report{
			First: in.First, Interval: in.Interval, Session: in.Session,
			Config: config, Err: in.Err, Result: in.Result.result, Came: in.Result.came,
		})
	}
	return reports
}

// AppendFeedback appends the bytes for the Sender's Feedback that say what
// was lost in an interval. Without an answer to say, because the synopsis did
// not come, it appends nothing.
func (r *Receiver) AppendFeedback(dst []byte, report *Report) []byte {
	if report.Result.Sent == 0 {
		return dst
	}
	return r.control.AppendFeedback(dst, report.Session, report.Interval, report.Result.Sent, min(report.Result.Lost, report.Result.Sent))
}

// slots are the Receiver as package session sees it.
type slots struct{ *Receiver }

func (r slots) Known(fingerprint uint64) bool {
	_, ok := r.recall(fingerprint)
	return ok
}

func (r slots) Open(slot int, fingerprint uint64) {
	config, _ := r.recall(fingerprint)
	r.target = r.down[slot]
	tune(r.target, config)
}

func (r slots) Idle() { r.target = r.idle }

func (r slots) Discard(slot int) { r.down[slot].Reset() }

// Compare decodes what came of the upstream point's synopsis and compares it.
func (r slots) Compare(slot int, record *session.Record) (compared, error) {
	c, err := compareRecord(r.up, r.down[slot], record, 0)
	r.remember(r.tuner.Next(c.result.Sent, min(c.result.Lost, c.result.Sent)))
	return c, err
}

// compareRecord compares what came of an encoding, which begins somewhere in a
// record and has the Config of down, with down.
func compareRecord(up, down *lda.Aggregator, record *session.Record, start int) (c compared, err error) {
	config := down.Config()
	came := func(from, to int) bool { return record.Has(start+from, start+to) }
	c.result, c.came, err = lda.EstimateParts(up, down, record.Data[start:start+config.EncodedSize()], came)
	if err == nil && c.result.Extra > 0 && config.DigestBits == 0 {
		err = fmt.Errorf("control: %w: %d of them", ErrCrossed, c.result.Extra)
	}
	return c, err
}

// recall finds the Config with a fingerprint among those that the Sender may
// be using, and makes it the last to be forgotten.
func (r *Receiver) recall(fingerprint uint64) (lda.Config, bool) {
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
	return lda.Config{}, false
}

// remember adds a Config that the Sender may come to use.
func (r *Receiver) remember(c lda.Config) {
	fingerprint := c.Fingerprint()
	if _, ok := r.recall(fingerprint); ok {
		return
	}
	recent := r.known[1:]
	copy(recent[1:], recent)
	recent[0] = knownConfig{fingerprint, c}
}
