package control

import (
	"fmt"
	"iter"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/session"
	"github.com/hoplag/hoplag/lda"
)

// A Sender is the upstream point. It has two aggregators that take turns, and makes
// the control packets that tell the downstream [Receiver] which packets belong to
// an interval and what the Sender saw of them. Sending those bytes is up to the
// caller. For every interval:
//
//   - call Start, and send its bytes in the stream of packets, before the
//     interval's first packet;
//   - call Update for every packet;
//   - call End, and send its bytes in the stream, after the last packet;
//   - send every frame of Parts, by any path, before the next End.
//
// The next Start may follow an End at once. Both take the same time whatever the
// number of cells.
//
// A Sender is not safe for concurrent use, except that one goroutine may use Parts
// while another one calls Update, if it finishes before the next End.
type Sender struct {
	control *session.Sender
	tuner   lda.Tuner
	next    lda.Config // of the next interval

	open   *lda.Aggregator // gets the packets; idle between intervals
	idle   *lda.Aggregator
	turns  [2]turn // of even and odd intervals
	closed *turn   // Parts sends its synopsis
}

// turn is one of the aggregators that take turns.
type turn struct {
	aggregator *lda.Aggregator
	dirty      bool     // not empty
	parts      [][]byte // of a finished interval; empty until Parts needs them
}

// NewSender returns a Sender of frames of at most mtu bytes. The number of the
// session tells its frames from those of a Sender before a restart; use the time
// at which the process started. A Receiver follows a greater number at once. Of
// any other it follows three markers if it has no key; with a key, which keeps
// frames that strangers repeat from being followed, it asks by feedback for a
// greater number, and the Sender takes that at its next Start.
//
// The first intervals use the tuner's Config. Feedback lets the tuner choose
// another, which each Start carries. The error wraps [estimate.ErrConfig].
func NewSender(t lda.Tuner, number uint64, mtu int) (*Sender, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	control, err := session.NewSender("control", number, mtu, lda.LeastPart, t.Config.Fingerprint())
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

// SetKey makes the Sender tag every control packet with SipHash under a secret key
// that it shares with the Receiver, and accept only feedback with such a tag. Then
// strangers can neither forge nor replay anything. If the mtu leaves no room for
// tags, the error wraps [estimate.ErrConfig].
func (s *Sender) SetKey(key [16]byte) error {
	return s.control.SetKey("control", session.NewKey(key))
}

// idleConfig is for an aggregator for the packets between intervals, which
// nobody reads: without a branch, Update costs the same then.
var idleConfig = lda.Config{Banks: [lda.MaxBanks]lda.Bank{{Rows: 1}}, SumBits: 1}

// mustNew is New for a Config that has been validated.
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

// ClockSet says that this point's clock was set. The Receiver refuses the open
// interval, because its sums mix two clocks.
func (s *Sender) ClockSet() { s.control.ClockSet() }

// Start begins an interval and appends its marker to dst. The error wraps
// [ErrTurn].
func (s *Sender) Start(dst []byte) ([]byte, error) {
	next := s.next
	shifts := next.Shifts()
	dst, err := s.control.Start(dst, shifts[:])
	if err != nil {
		return dst, fmt.Errorf("control: %w", err)
	}
	turn := &s.turns[s.control.Interval()%2]
	if turn.dirty { // nobody asked for its Parts
		turn.aggregator.Reset()
	}
	turn.dirty = true
	turn.parts = turn.parts[:0]
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

// Parts returns the frames that carry the synopsis of the last interval that
// ended, packed: 6 to 34 KB for 10^3 to 10^6 packets and [lda.DefaultConfig]. A
// frame is valid until the next one. You may call Parts again to send them twice.
func (s *Sender) Parts() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		turn := s.closed
		if turn == nil {
			return
		}
		if len(turn.parts) == 0 {
			turn.pack(s.control.Room())
			s.control.Sent(turn.aggregator.Packets())
			turn.aggregator.Reset()
			turn.dirty = false
		}
		s.control.Parts(turn.parts)(yield)
	}
}

// pack divides the synopsis into parts, in the room of earlier ones.
func (t *turn) pack(room int) {
	for from, first := 0, true; first || from > 0; first = false {
		n := len(t.parts)
		if n < cap(t.parts) {
			t.parts = t.parts[:n+1]
		} else {
			t.parts = append(t.parts, nil)
		}
		t.parts[n], from = t.aggregator.AppendPart(t.parts[n][:0], from, room)
	}
}

// Feedback takes the bytes of the Receiver's AppendFeedback and tunes the intervals
// from the next Start on. Feedback that is late or comes twice is ignored. The error wraps
// [estimate.ErrEncoding], [ErrForged] or, if the feedback is for another Sender or
// about packets that were never sent, [estimate.ErrMismatch].
func (s *Sender) Feedback(data []byte) error {
	sent, lost, ok, err := s.control.Feedback(data)
	if err != nil {
		return fmt.Errorf("control: feedback: %w", err)
	}
	if ok {
		s.next = s.tuner.Next(sent, lost)
	}
	return nil
}
