package control

import (
	"fmt"
	"iter"
	"math"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/session"
	"github.com/hoplag/hoplag/lda"
)

// A Sender is the upstream point. It has two aggregators that take turns, and makes the control packets that
// tell the downstream [Receiver] which packets belong to an interval and what the Sender saw of them. Sending
// those bytes is up to the caller. For every interval:
//
//   - call Start, and send its bytes in the stream of packets, before the interval's first packet;
//   - call Update for every packet;
//   - call End, and send its bytes in the stream, after the last packet;
//   - send every frame of Parts before the next End, by any path.
//
// The next Start may follow an End at once, unless it may overtake it on the way; then pause for as long. An
// interval consists of the packets that arrive between its markers: those that overtake its Start, or that an
// End overtakes, count as lost; see [Report.Outside]. Start and End take constant time.
//
// A Sender is not safe for concurrent use, with one exception: while one goroutine calls Update, another may
// use Parts, if it finishes before the next End. The zero value panics.
type Sender struct {
	config lda.Config
	key    session.Key
	mtu    int

	session, interval uint64 // interval is the open one, or the next
	clockSet          bool
	buffer            []byte // the last frame of Parts

	open   *lda.Aggregator // gets the packets; nil between intervals
	turns  [2]turn         // of even and odd intervals
	closed *turn           // Parts sends its synopsis
}

// turn is one of the aggregators that take turns.
type turn struct {
	aggregator *lda.Aggregator
	packed     []byte // synopsis of a finished interval; empty until Parts needs it
}

// NewSender returns a Sender of frames of at most mtu bytes. The session's number tells its frames from those
// before a restart: use the time at which the process started. A Receiver follows a greater number at once. If
// it has no key, it also follows any other after three markers; with a key, which prevents replays, it never
// does: see [ErrPassed]. The error wraps [estimate.ErrConfig].
func NewSender(c lda.Config, number uint64, mtu int) (*Sender, error) {
	s := &Sender{config: c, session: number, mtu: mtu}
	for i := range s.turns {
		var err error
		if s.turns[i].aggregator, err = lda.New(c); err != nil {
			return nil, err
		}
	}
	return s, s.useKey(session.Key{})
}

// SetKey makes the Sender tag every control packet with SipHash under a secret key that it shares with the
// Receiver. Then strangers can neither forge nor replay anything. If the mtu leaves no room for tags, the error
// wraps [estimate.ErrConfig].
func (s *Sender) SetKey(key [16]byte) error { return s.useKey(session.NewKey(key)) }

func (s *Sender) useKey(key session.Key) error {
	least := session.FrameSize + key.Size() + mostPacked(&s.config)/math.MaxUint16 + 1
	if s.mtu < least {
		return estimate.Invalid("control", "mtu", s.mtu, fmt.Sprintf("at least %d", least))
	}
	s.key = key
	return nil
}

// mostPacked is more than the bytes that a packed synopsis takes.
func mostPacked(c *lda.Config) int { return 2 * c.MemorySize() }

// Update records a packet as [lda.Aggregator.Update] does. Between intervals it does nothing.
func (s *Sender) Update(p hashing.Packet, t int64) {
	if s.open != nil {
		s.open.Update(p, t)
	}
}

// ClockSet says that this point's clock was set: the sums of the open interval mix two clocks, and are refused.
func (s *Sender) ClockSet() { s.clockSet = s.open != nil }

// frame returns a frame of the open interval, or the next.
func (s *Sender) frame(kind session.Kind) session.Frame {
	return session.Frame{Kind: kind, Fingerprint: s.config.Identity, Session: s.session, Interval: s.interval}
}

// Start begins an interval and appends its marker to dst. The error wraps [ErrTurn].
func (s *Sender) Start(dst []byte) ([]byte, error) {
	if s.open != nil {
		return dst, fmt.Errorf("control: %w: interval %d has started", ErrTurn, s.interval)
	}
	turn := &s.turns[s.interval%2]
	if len(turn.packed) == 0 { // nobody asked for its Parts
		turn.aggregator.Reset()
	}
	turn.packed, s.clockSet = turn.packed[:0], false
	s.open = turn.aggregator
	f := s.frame(session.Start)
	return f.Append(dst, &s.key), nil
}

// End ends the interval and appends its marker to dst. The error wraps [ErrTurn].
func (s *Sender) End(dst []byte) ([]byte, error) {
	if s.open == nil {
		return dst, fmt.Errorf("control: %w: interval %d has not started", ErrTurn, s.interval)
	}
	f := s.frame(session.End)
	f.ClockSet = s.clockSet
	s.open, s.closed = nil, &s.turns[s.interval%2]
	s.interval++
	return f.Append(dst, &s.key), nil
}

// Parts returns the frames that carry the packed synopsis of the last interval that ended: 6 to 34 KB for 10^3
// to 10^6 packets and [lda.DefaultConfig]. A frame is valid until the next one. All must arrive: where some may
// be lost, send them twice by calling Parts again, or over a reliable connection.
func (s *Sender) Parts() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		turn := s.closed
		if turn == nil {
			return
		}
		if len(turn.packed) == 0 {
			turn.packed = turn.aggregator.AppendPacked(turn.packed, 0)
			turn.aggregator.Reset()
		}
		room := s.mtu - session.FrameSize - s.key.Size()
		f := s.frame(session.Part)
		f.Interval, f.Parts = s.interval-1, uint16((len(turn.packed)+room-1)/room)
		for rest := turn.packed; len(rest) > 0; f.Part++ {
			f.Payload = rest[:min(room, len(rest))]
			rest = rest[len(f.Payload):]
			if s.buffer = f.Append(s.buffer[:0], &s.key); !yield(s.buffer) {
				return
			}
		}
	}
}
