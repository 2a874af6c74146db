package lda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// ErrTurn: Start was called in an interval, or End outside of one.
var ErrTurn = errors.New("start and end of an interval out of turn")

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
	tuner    Tuner
	next     Config // of the next interval
	session  uint64
	interval uint64 // the one that is open, or the next
	heard    uint64 // the interval after that of the last feedback that was used
	room     int    // for the payload of a frame

	open    *Aggregator // gets the packets; idle between intervals
	idle    *Aggregator
	turns   [2]turn // of even and odd intervals
	closed  *turn   // whose synopsis Parts sends
	control []byte  // the last frame of Parts
}

// turn is one of the aggregators that are used by turns.
type turn struct {
	aggregator *Aggregator
	interval   uint64
	dirty      bool   // not empty
	record     []byte // encoding of a finished interval; empty until Parts needs it
}

// NewSender returns a Sender. Every frame is at most mtu bytes. The session
// tells its frames from those of a Sender before it, after a restart, and must
// be a greater number: the time at which the process started will do.
//
// The Config of each interval is the tuner's: that for no losses known, or if
// feedback comes, what the tuner makes of it; and that for no losses known again
// after 16 intervals without, since a Receiver that was started anew knows no
// other. The error wraps [estimate.ErrConfig].
func NewSender(t Tuner, session uint64, mtu int) (*Sender, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	size := t.Config.EncodedSize()
	least := frameSize + max(1, (size+maxParts-1)/maxParts)
	if mtu < least {
		return nil, fmt.Errorf("lda: %w: mtu is %d, want at least %d", estimate.ErrConfig, mtu, least)
	}
	s := &Sender{tuner: t, next: t.Config, session: session, room: mtu - frameSize, idle: newIdle()}
	s.open = s.idle
	for i := range s.turns {
		s.turns[i].aggregator = mustNew(t.Config)
	}
	return s, nil
}

// newIdle returns an aggregator for the packets between intervals, which
// nobody looks at: without a branch they cost what others do.
func newIdle() *Aggregator {
	return mustNew(Config{Banks: [MaxBanks]Bank{{Rows: 1}}, SumBits: 1})
}

// mustNew is New of a Config that has been validated.
func mustNew(c Config) *Aggregator {
	a, err := New(c)
	if err != nil {
		panic(err)
	}
	return a
}

// Update records that packet p passed at time t. Between intervals it does
// nothing.
func (s *Sender) Update(p hashing.Packet, t int64) { s.open.Update(p, t) }

// Start begins an interval and appends its marker to dst. The error is
// [ErrTurn].
func (s *Sender) Start(dst []byte) ([]byte, error) {
	if s.open != s.idle {
		return dst, fmt.Errorf("lda: %w: interval %d has started", ErrTurn, s.interval)
	}
	if s.interval-s.heard > maxSilence {
		s.next = s.tuner.Config
	}
	turn := &s.turns[s.interval%2]
	if turn.dirty { // nobody asked for its Parts
		turn.aggregator.Reset()
	}
	turn.dirty = true
	turn.interval = s.interval
	turn.record = turn.record[:0]
	if turn.aggregator.config != s.next {
		turn.aggregator.configure(s.next)
	}
	s.open = turn.aggregator
	return s.marker(startMarker, turn).append(dst), nil
}

// End ends the interval and appends its marker to dst. The error is
// [ErrTurn].
func (s *Sender) End(dst []byte) ([]byte, error) {
	if s.open == s.idle {
		return dst, fmt.Errorf("lda: %w: interval %d has not started", ErrTurn, s.interval)
	}
	turn := &s.turns[s.interval%2]
	s.open = s.idle
	s.closed = turn
	s.interval++
	return s.marker(endMarker, turn).append(dst), nil
}

func (s *Sender) marker(k kind, turn *turn) *frame {
	return &frame{kind: k, fingerprint: turn.aggregator.config.Fingerprint(), session: s.session, interval: turn.interval}
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
			turn.aggregator.Reset()
			turn.dirty = false
		}
		f := s.marker(part, turn)
		parts := (len(turn.record) + s.room - 1) / s.room
		f.parts = uint16(parts)
		for i := range parts {
			from, to := partBounds(len(turn.record), i, parts)
			f.part, f.payload = uint16(i), turn.record[from:to]
			s.control = f.append(s.control[:0])
			if !yield(s.control) {
				return
			}
		}
	}
}

// maxFeedbackAge is how many intervals old feedback may be, so few that the
// Receiver still remembers the Config that it leads to.
const maxFeedbackAge = 4

// maxSilence is after how many intervals without feedback a tuned Config is
// given up.
const maxSilence = 16

// Feedback takes what the Receiver's AppendFeedback made, and tunes the
// intervals from the next Start on. Feedback that is lost leaves the Config as
// it is, for 16 intervals; if it is late or a duplicate it is passed over. The
// error wraps [estimate.ErrEncoding] or, for feedback that is not for this Sender,
// [estimate.ErrMismatch].
func (s *Sender) Feedback(data []byte) error {
	var f frame
	if err := f.parse(data); err != nil {
		return err
	}
	switch {
	case f.kind != feedback:
		return fmt.Errorf("lda: %w: control packet of kind %d is no feedback", estimate.ErrEncoding, f.kind)
	case f.session != s.session, f.interval >= s.interval, f.fingerprint != s.tuner.Config.Fingerprint():
		return fmt.Errorf("lda: %w: feedback on interval %d of session %d, here is interval %d of session %d",
			estimate.ErrMismatch, f.interval, f.session, s.interval, s.session)
	case f.interval < s.heard || f.interval+maxFeedbackAge < s.interval:
		return nil
	}
	s.heard = f.interval + 1
	sent, lost := feedbackCounts(f.payload)
	s.next = s.tuner.Next(sent, lost)
	return nil
}

func appendFeedbackCounts(dst []byte, sent, lost uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, sent), lost)
}

func feedbackCounts(payload []byte) (sent, lost uint64) {
	return binary.BigEndian.Uint64(payload), binary.BigEndian.Uint64(payload[8:])
}
