package control

import (
	"fmt"
	"iter"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/session"
	"github.com/hoplag/hoplag/lda"
)

// A Sender is the upstream point through many intervals: two aggregators by
// turns, and the control packets that tell the downstream point's [Receiver]
// which packets belong to an interval and what was seen of them. It makes
// bytes; to send them is the caller's part. For every interval:
//
//	the bytes of Start, in the stream of packets, before the interval's first
//	Update for every packet
//	the bytes of End, in the stream, after the interval's last packet
//	every frame of Parts, on any way, before the End after
//
// The next Start may follow on an End at once. Both take the same time
// whatever the number of cells.
//
// It is for one goroutine, except that another one may use Parts while this
// one goes on updating, if it is done before this one calls End.
type Sender struct {
	control *session.Sender
	tuner   lda.Tuner
	next    lda.Config // of the next interval

	open   *lda.Aggregator // gets the packets; idle between intervals
	idle   *lda.Aggregator
	turns  [2]turn // of even and odd intervals
	closed *turn   // whose synopsis Parts sends
}

// turn is one of the aggregators that are used by turns.
type turn struct {
	aggregator *lda.Aggregator
	dirty      bool   // not empty
	record     []byte // encoding of a finished interval; empty until Parts needs it
}

// NewSender returns a Sender. Every frame is at most mtu bytes. The number of
// the session tells its frames from those of a Sender before it, after a
// restart: the time at which the process started will do. A Receiver follows a
// greater number at once, if there is a key, and any other after three markers.
//
// The Config of each interval is the tuner's: that for no losses known, or if
// feedback comes, what the tuner makes of it; and that for no losses known again
// after 16 intervals without, since a Receiver that was started anew knows no
// other. The error wraps [estimate.ErrConfig].
func NewSender(t lda.Tuner, number uint64, mtu int) (*Sender, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	control, err := session.NewSender("control", number, mtu, t.Config.EncodedSize())
	if err != nil {
		return nil, err
	}
	s := &Sender{control: control, tuner: t, next: t.Config, idle: mustNew(idleConfig)}
	s.open = s.idle
	for i := range s.turns {
		s.turns[i].aggregator = mustNew(t.Config)
	}
	return s, nil
}

// SetKey tags every control packet with SipHash under a secret key, which the
// Receiver has, too, and takes only feedback with such a tag: strangers can then
// make up nothing, and send nothing again. The error wraps
// [estimate.ErrConfig] if a tag is too long for the mtu.
func (s *Sender) SetKey(key [16]byte) error {
	return s.control.SetKey("control", session.NewKey(key))
}

// idleConfig is of an aggregator for the packets between intervals, which nobody
// looks at: without a branch they cost what others do.
var idleConfig = lda.Config{Banks: [lda.MaxBanks]lda.Bank{{Rows: 1}}, SumBits: 1}

// mustNew is New of a Config that has been validated.
func mustNew(c lda.Config) *lda.Aggregator {
	a, err := lda.New(c)
	if err != nil {
		panic(err)
	}
	return a
}

// tune gives an empty aggregator a Config that its Tuner chose.
func tune(a *lda.Aggregator, c lda.Config) {
	if err := a.SetShifts(c); err != nil {
		panic(err) // a Tuner changes nothing but shifts
	}
}

// Update records that packet p passed at time t. Between intervals it does
// nothing.
func (s *Sender) Update(p hashing.Packet, t int64) { s.open.Update(p, t) }

// ClockSet says that this point's clock was set by a step. The interval that is
// open is refused, since its sums are of two clocks.
func (s *Sender) ClockSet() { s.control.ClockSet() }

// Start begins an interval and appends its marker to dst. The error wraps
// [ErrTurn].
func (s *Sender) Start(dst []byte) ([]byte, error) {
	if s.control.Silence() > maxSilence {
		s.next = s.tuner.Config
	}
	next := s.next
	dst, err := s.control.Start(dst, next.Fingerprint())
	if err != nil {
		return dst, fmt.Errorf("control: %w", err)
	}
	turn := &s.turns[s.control.Interval()%2]
	if turn.dirty { // nobody asked for its Parts
		turn.aggregator.Reset()
	}
	turn.dirty = true
	turn.record = turn.record[:0]
	tune(turn.aggregator, next)
	s.open = turn.aggregator
	return dst, nil
}

// End ends the interval and appends its marker to dst. The error wraps
// [ErrTurn].
func (s *Sender) End(dst []byte) ([]byte, error) {
	turn := &s.turns[s.control.Interval()%2]
	dst, err := s.control.End(dst)
	if err != nil {
		return dst, fmt.Errorf("control: %w", err)
	}
	s.open, s.closed = s.idle, turn
	return dst, nil
}

// Parts are the frames that carry the synopsis of the interval that ended
// last, none before that: for 1,024 cells of 9 bytes and an mtu of 1,500,
// seven. A frame is good until the next one. They may be asked for again, to
// be sent twice.
func (s *Sender) Parts() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		turn := s.closed
		if turn == nil {
			return
		}
		if len(turn.record) == 0 {
			turn.record, _ = turn.aggregator.AppendBinary(turn.record) // its error is always nil
			s.control.Sent(turn.aggregator.Packets())
			turn.aggregator.Reset()
			turn.dirty = false
		}
		s.control.Parts(turn.record)(yield)
	}
}

// maxSilence is after how many intervals without feedback a tuned Config is
// given up.
const maxSilence = 16

// Feedback takes what the Receiver's AppendFeedback made, and tunes the
// intervals from the next Start on. Feedback that is lost leaves the Config as
// it is, for 16 intervals; if it is late or a duplicate it is passed over. The
// error wraps [estimate.ErrEncoding], [ErrForged] or, for feedback that is not
// for this Sender, or on packets that it did not send, [estimate.ErrMismatch].
func (s *Sender) Feedback(data []byte) error {
	sent, lost, ok, err := s.control.Feedback(data, s.tuner.Config.Fingerprint())
	if err != nil {
		return fmt.Errorf("control: feedback: %w", err)
	}
	if ok {
		s.next = s.tuner.Next(sent, lost)
	}
	return nil
}
