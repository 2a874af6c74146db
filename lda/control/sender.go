package control

import (
	"encoding/binary"
	"fmt"
	"iter"
	"strconv"

	"github.com/hoplag/hoplag/estimate"
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
//   - send every frame of Parts before the next End, by any path.
//
// The next Start may follow an End at once, unless it may overtake it on the way: then
// pause for as long. An interval is of the packets received between its markers: those
// that an End overtakes count as lost. Start and End take the same time whatever the
// number of cells.
//
// A Sender is not safe for concurrent use, except that one goroutine may use Parts
// while another one calls Update, if it finishes before the next End. The zero value panics.
type Sender struct {
	config lda.Config
	next   lda.Config // of the next interval
	key    session.Key
	mtu    int

	session, interval uint64 // interval is the open one, or the next
	clockSet          bool
	greater           uint64    // session that the Receiver asked for, or 0
	heard             uint64    // the interval after that of the latest feedback used
	packets           [8]uint64 // sent in the last intervals, by number
	buffer            []byte    // the last frame of Parts

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
// The first intervals use the Config. Feedback tunes it to the losses, and each Start
// carries the shifts. The error wraps [estimate.ErrConfig].
func NewSender(c lda.Config, number uint64, mtu int) (*Sender, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s := &Sender{config: c, next: c, session: number, mtu: mtu, idle: mustNew(idleConfig)}
	s.open = s.idle
	for i := range s.turns {
		s.turns[i].aggregator = mustNew(c)
	}
	return s, s.useKey(session.Key{})
}

// SetKey makes the Sender tag every control packet with SipHash under a secret key
// that it shares with the Receiver, and accept only feedback with such a tag. Then
// strangers can neither forge nor replay anything. If the mtu leaves no room for
// tags, the error wraps [estimate.ErrConfig].
func (s *Sender) SetKey(key [16]byte) error {
	return s.useKey(session.NewKey(key))
}

func (s *Sender) useKey(key session.Key) error {
	before := s.key
	s.key = key
	if _, least := s.config.PartsSize(); s.room() < least {
		least += s.mtu - s.room()
		s.key = before
		return estimate.Invalid("control", "mtu", s.mtu, "at least "+strconv.Itoa(least))
	}
	return nil
}

// room returns the number of bytes of a part that fit a frame.
func (s *Sender) room() int { return s.mtu - session.FrameSize - s.key.Size() }

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

// Update records that packet p passed at time t. Between intervals it does
// nothing.
func (s *Sender) Update(p hashing.Packet, t int64) { s.open.Update(p, t) }

// ClockSet says that this point's clock was set. The Receiver refuses the open
// interval, because its sums mix two clocks.
func (s *Sender) ClockSet() { s.clockSet = s.open != s.idle }

// frame returns a frame of the open interval, or the next.
func (s *Sender) frame(kind session.Kind) session.Frame {
	return session.Frame{Kind: kind, Fingerprint: s.config.Fingerprint(), Session: s.session, Interval: s.interval}
}

// Start begins an interval and appends its marker to dst. If the Receiver asked for
// a greater session, that begins. The error wraps [ErrTurn].
func (s *Sender) Start(dst []byte) ([]byte, error) {
	if s.open != s.idle {
		return dst, fmt.Errorf("control: %w: interval %d has started", ErrTurn, s.interval)
	}
	if s.greater > s.session {
		s.session, s.interval, s.heard = s.greater, 0, 0
	}
	turn := &s.turns[s.interval%2]
	if turn.dirty { // nobody asked for its Parts
		turn.aggregator.Reset()
	}
	turn.dirty, turn.parts, s.clockSet = true, turn.parts[:0], false
	s.open = turn.aggregator
	shifts := s.next.Shifts()
	if err := s.open.SetShifts(shifts[:]); err != nil {
		panic(err) // Tuned gives valid ones
	}
	f := s.frame(session.Start)
	f.Payload = shifts[:]
	return f.Append(dst, &s.key), nil
}

// End ends the interval and appends its marker to dst. The error wraps
// [ErrTurn].
func (s *Sender) End(dst []byte) ([]byte, error) {
	if s.open == s.idle {
		return dst, fmt.Errorf("control: %w: interval %d has not started", ErrTurn, s.interval)
	}
	f := s.frame(session.End)
	f.ClockSet = s.clockSet
	s.open, s.closed = s.idle, &s.turns[s.interval%2]
	s.packets[s.interval%uint64(len(s.packets))] = s.closed.aggregator.Packets()
	s.interval++
	return f.Append(dst, &s.key), nil
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
			turn.pack(s.room())
			turn.aggregator.Reset()
			turn.dirty = false
		}
		f := s.frame(session.Part)
		f.Interval, f.Parts = s.interval-1, uint16(len(turn.parts))
		for i, part := range turn.parts {
			f.Part, f.Payload = uint16(i), part
			s.buffer = f.Append(s.buffer[:0], &s.key)
			if !yield(s.buffer) {
				return
			}
		}
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
	const oldest = 4 // intervals
	var f session.Frame
	if err := f.Parse(data, &s.key); err != nil {
		return fmt.Errorf("control: feedback: %w", err)
	}
	want := s.frame(session.Feedback)
	counts := len(f.Payload) == 16
	switch {
	case f.Kind != want.Kind || !counts && len(f.Payload) != 8:
		return fmt.Errorf("control: %w: control packet of kind %d with %d bytes is no feedback", estimate.ErrEncoding, f.Kind, len(f.Payload))
	case f.Session != want.Session, f.Interval > want.Interval, f.Fingerprint != want.Fingerprint, counts && f.Interval == want.Interval:
		return fmt.Errorf("control: %w: feedback on interval %d of session %d, here is interval %d of session %d",
			estimate.ErrMismatch, f.Interval, f.Session, want.Interval, want.Session)
	case f.Interval < s.heard || f.Interval+oldest < want.Interval:
		return nil
	case !counts: // about a marker of now, so not one that a stranger repeats
		s.greater = binary.BigEndian.Uint64(f.Payload)
		return nil
	}
	sent, lost := binary.BigEndian.Uint64(f.Payload), binary.BigEndian.Uint64(f.Payload[8:])
	if own := s.packets[f.Interval%uint64(len(s.packets))]; lost > sent || sent > own {
		return fmt.Errorf("control: %w: feedback says %d of %d packets lost, of %d", estimate.ErrMismatch, lost, sent, own)
	}
	s.heard = f.Interval + 1
	s.next = s.config.Tuned(sent, lost)
	return nil
}
