package control

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/session"
	"github.com/hoplag/hoplag/lda"
)

// Errors of intervals and of control packets. A Report's Err wraps one of these, or
// the error of [lda.Estimate]. If the Receiver rejected a control packet since the
// last report, Err also wraps the reason: estimate.ErrEncoding if the packet was
// corrupt, estimate.ErrMismatch if it had another Config or seed.
var (
	// ErrStart says that the Start marker was lost, or came after the End.
	ErrStart = session.ErrStart
	// ErrEnd says that the End marker was lost, or came after the next Start.
	ErrEnd = session.ErrEnd
	// ErrParts says that no part of the synopsis came before the next interval ended.
	// Parts may take a faster path than markers: those of up to eight intervals ahead
	// are held back, as many as take as many bytes as one synopsis may.
	ErrParts = session.ErrParts
	// ErrStep says that a point's clock was set during the interval.
	ErrStep = session.ErrStep
	// ErrForged says that a control packet lacks the tag of the key.
	ErrForged = session.ErrForged
	// ErrPassed says that markers come of a session, or of intervals, that have
	// passed: a stranger repeats them, or the Sender was restarted with a number
	// that is not greater. AppendFeedback then asks it for a greater one. The
	// Receiver says so once for three markers.
	ErrPassed = session.ErrPassed
	// ErrTurn says that Start was called during an interval, or End outside one.
	ErrTurn = errors.New("out of turn")
	// ErrCrossed says that packets came that were not sent in the interval,
	// because they or a marker were overtaken, or duplicated. A cell that gained
	// as many packets as it lost would spoil the estimate, and only a digest
	// shows it. So without a digest the interval is refused if any cell has more
	// packets than were sent; with one, Estimate leaves such cells out.
	ErrCrossed = errors.New("packets of other intervals, and no digest")
)

// A Report is the outcome of an interval.
type Report struct {
	// Interval is the number of the interval. Intervals of which nothing was
	// received are reported together, from First to Interval.
	First, Interval uint64

	Session uint64 // session of the Sender

	Config lda.Config // Config of the interval, if its Start came
	Err    error      // nil if Result is good
	Result lda.Result // zero if no part of the synopsis came
	Came   float64    // share of the cells that came, 0 to 1; Result counts the packets of those
}

// Counters counts the control packets that were not used.
type Counters = session.Counters

// A Receiver is the downstream point; see [Sender]. Give it the control packets,
// markers at their place in the stream of packets. It reports on every interval
// exactly once, in order: the result, or why there is none. If some parts of a
// synopsis are lost, it compares the cells that came. It holds three aggregators
// and three encodings, whatever comes.
//
// Control packets carry a checksum, and a tag if both points have a key. Without a
// key, anyone who can send a control packet can make up an interval. No such
// packet silences the Receiver, which follows the markers that follow each other.
//
// A Receiver is not safe for concurrent use, except that one goroutine may
// call Receive with parts while another one calls Update. Calls of Receive
// must not overlap, and markers belong to the goroutine that calls Update. Use
// this if packets never stop, because the last part of a synopsis makes
// Receive decode and compare all cells. The zero value panics.
type Receiver struct {
	control session.Receiver
	reports []Report // of the call of Receive

	target *lda.Aggregator // gets the packets: a slot's aggregator, or idle
	idle   *lda.Aggregator
	down   [2]*lda.Aggregator // by slot
	up     *lda.Aggregator    // the synopsis, decoded
}

// NewReceiver returns a Receiver for a Sender with an equal Config. The error wraps
// [estimate.ErrConfig].
func NewReceiver(c lda.Config) (*Receiver, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	r := &Receiver{idle: mustNew(idleConfig), down: [2]*lda.Aggregator{mustNew(c), mustNew(c)}, up: mustNew(c)}
	r.target = r.idle
	parts, each := c.PartsSize()
	r.control = session.Receiver{Slots: slots{r}, Fingerprint: c.Fingerprint(), Parts: parts, Bytes: parts * each}
	return r, nil
}

// SetKey makes the Receiver accept only control packets that a Sender with the same
// secret key has tagged, and tag its feedback.
func (r *Receiver) SetKey(key [16]byte) { r.control.Key = session.NewKey(key) }

// Update records that packet p passed at time t. Between intervals it does
// nothing.
func (r *Receiver) Update(p hashing.Packet, t int64) { r.target.Update(p, t) }

// ClockSet says that this point's clock was set. The Receiver refuses the open
// interval, because its sums mix two clocks.
func (r *Receiver) ClockSet() { r.control.ClockSet() }

// Counters returns how many control packets were not used, and why.
func (r *Receiver) Counters() Counters { return r.control.Counters }

// Receive takes a control packet and appends the reports that follow from it.
// If it rejects the packet, the error wraps [estimate.ErrEncoding],
// [estimate.ErrMismatch] or [ErrForged]; the interval is still good if the
// packet comes again. A packet that is late or comes twice is no error.
func (r *Receiver) Receive(data []byte, reports []Report) ([]Report, error) {
	r.reports = reports
	if err := r.control.Receive(data); err != nil {
		return r.reports, fmt.Errorf("control: %w", err)
	}
	return r.reports, nil
}

// Flush reports on the undecided intervals by what has come. Call it when no
// more control packets are expected.
func (r *Receiver) Flush(reports []Report) []Report {
	r.reports = reports
	r.control.Flush()
	return r.reports
}

// AppendFeedback appends the bytes that tell the Sender's Feedback how many
// packets an interval lost or, after ErrPassed, which session is greater. If no
// synopsis came, it appends nothing.
func (r *Receiver) AppendFeedback(dst []byte, report *Report) []byte {
	var payload [16]byte
	f := session.Frame{Kind: session.Feedback, Fingerprint: r.control.Fingerprint, Session: report.Session, Interval: report.Interval}
	switch {
	case errors.Is(report.Err, ErrPassed):
		f.Payload = binary.BigEndian.AppendUint64(payload[:0], r.control.Greater())
	case report.Result.Sent == 0:
		return dst
	default:
		sent := binary.BigEndian.AppendUint64(payload[:0], report.Result.Sent)
		f.Payload = binary.BigEndian.AppendUint64(sent, min(report.Result.Lost, report.Result.Sent))
	}
	return f.Append(dst, &r.control.Key)
}

// slots is the Receiver as package session sees it.
type slots struct{ *Receiver }

// Open makes a slot ready for an interval, by what its Start says.
func (r slots) Open(slot int, start []byte) error {
	if err := r.down[slot].SetShifts(start); err != nil {
		return err
	}
	r.target = r.down[slot]
	return nil
}

// Idle sends packets where they count for no interval.
func (r slots) Idle() { r.target = r.idle }

// Report compares the parts received of the upstream point's synopsis.
func (r slots) Report(in session.Report) {
	report := Report{First: in.First, Interval: in.Interval, Session: in.Session, Err: in.Err}
	if in.Slot != session.None {
		down := r.down[in.Slot]
		report.Config = down.Config()
		if in.Err == nil {
			report.Result, report.Came, report.Err = lda.EstimateParts(r.up, down, in.Parts)
		}
		if report.Err == nil && report.Result.Extra > 0 && report.Config.DigestBits == 0 {
			report.Err = fmt.Errorf("%w: %d of them", ErrCrossed, report.Result.Extra)
		}
		down.Reset()
	}
	if report.Err != nil {
		report.Err = fmt.Errorf("control: %w", report.Err)
	}
	r.reports = append(r.reports, report)
}
