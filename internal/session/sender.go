package session

import (
	"encoding/binary"
	"fmt"
	"iter"
	"strconv"

	"github.com/hoplag/hoplag/estimate"
)

// A Sender numbers the intervals of the upstream point and makes their control
// packets. It is for one goroutine.
type Sender struct {
	key      Key
	session  uint64
	interval uint64 // the open one, or the next
	mtu      int
	least    int    // room that a part needs
	config   uint64 // fingerprint
	open     bool
	clockSet bool
	greater  uint64    // session that the receiver asked for, or 0
	heard    uint64    // the interval after that of the latest feedback used
	packets  [8]uint64 // sent in the last intervals, by number
	buffer   []byte    // the last frame of Parts
}

// NewSender returns a Sender of frames of at most mtu bytes, of which a part of
// the synopsis needs at least some, and of a Config with the fingerprint. The
// error, with the name pkg, wraps [estimate.ErrConfig].
func NewSender(pkg string, session uint64, mtu, least int, fingerprint uint64) (*Sender, error) {
	s := &Sender{session: session, mtu: mtu, least: least, config: fingerprint}
	return s, s.check(pkg)
}

// Room returns the number of bytes of a part that fit a frame.
func (s *Sender) Room() int { return s.mtu - FrameSize - s.key.Size() }

func (s *Sender) check(pkg string) error {
	if s.Room() < s.least {
		return estimate.Invalid(pkg, "mtu", s.mtu, "at least "+strconv.Itoa(s.mtu-s.Room()+s.least))
	}
	return nil
}

// SetKey makes the sender tag all frames from now on.
func (s *Sender) SetKey(pkg string, key Key) error {
	before := s.key
	s.key = key
	if err := s.check(pkg); err != nil {
		s.key = before
		return err
	}
	return nil
}

// Interval returns the number of the open interval, or of the next one.
func (s *Sender) Interval() uint64 { return s.interval }

// ClockSet reports that the point's clock was set. It spoils the open
// interval.
func (s *Sender) ClockSet() { s.clockSet = s.open }

// Start begins an interval, and appends its marker with a payload. If the receiver
// asked for a greater session, it begins. The error wraps [ErrTurn].
func (s *Sender) Start(dst, payload []byte) ([]byte, error) {
	if s.open {
		return dst, fmt.Errorf("%w: interval %d has started", ErrTurn, s.interval)
	}
	if s.greater > s.session {
		s.session, s.interval, s.heard = s.greater, 0, 0
	}
	s.open, s.clockSet = true, false
	f := Frame{Kind: Start, Fingerprint: s.config, Session: s.session, Interval: s.interval, Payload: payload}
	return f.Append(dst, &s.key), nil
}

// End ends the interval and appends its marker. The error wraps [ErrTurn].
func (s *Sender) End(dst []byte) ([]byte, error) {
	if !s.open {
		return dst, fmt.Errorf("%w: interval %d has not started", ErrTurn, s.interval)
	}
	f := Frame{Kind: End, ClockSet: s.clockSet, Fingerprint: s.config, Session: s.session, Interval: s.interval}
	s.open = false
	s.packets[s.interval%uint64(len(s.packets))] = 0
	s.interval++
	return f.Append(dst, &s.key), nil
}

// Parts returns the frames that carry the parts of the synopsis of the interval
// that ended last. A frame is valid until the next one.
func (s *Sender) Parts(parts [][]byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		f := Frame{Kind: Part, Fingerprint: s.config, Session: s.session, Interval: s.interval - 1, Parts: uint16(len(parts))}
		for i, part := range parts {
			f.Part, f.Payload = uint16(i), part
			s.buffer = f.Append(s.buffer[:0], &s.key)
			if !yield(s.buffer) {
				return
			}
		}
	}
}

// Sent records how many packets the interval that ended last had, as honest
// feedback about it must say.
func (s *Sender) Sent(packets uint64) {
	s.packets[(s.interval-1)%uint64(len(s.packets))] = packets
}

// maxFeedbackAge is how many intervals old feedback may be.
const maxFeedbackAge = 4

// Feedback reads what a Receiver appended: the numbers of packets sent and
// lost in an interval. ok is false if it is late or comes again, or if the
// receiver asked for a greater session. The error wraps [estimate.ErrEncoding],
// [ErrForged], or [estimate.ErrMismatch] if it is not for this Sender, or about
// packets that were not sent.
func (s *Sender) Feedback(data []byte) (sent, lost uint64, ok bool, err error) {
	var f Frame
	if err := f.Parse(data, &s.key); err != nil {
		return 0, 0, false, err
	}
	switch {
	case f.Kind != Feedback || len(f.Payload) != 16 && len(f.Payload) != 8:
		return 0, 0, false, fmt.Errorf("%w: control packet of kind %d with %d bytes is no feedback", estimate.ErrEncoding, f.Kind, len(f.Payload))
	case f.Session != s.session, f.Interval > s.interval, f.Fingerprint != s.config, len(f.Payload) == 16 && f.Interval == s.interval:
		return 0, 0, false, fmt.Errorf("%w: feedback on interval %d of session %d, here is interval %d of session %d",
			estimate.ErrMismatch, f.Interval, f.Session, s.interval, s.session)
	case f.Interval < s.heard || f.Interval+maxFeedbackAge < s.interval:
		return 0, 0, false, nil
	case len(f.Payload) == 8: // about a marker of now, so not one that a stranger repeats
		s.greater = binary.BigEndian.Uint64(f.Payload)
		return 0, 0, false, nil
	}
	sent, lost = feedbackCounts(f.Payload)
	if own := s.packets[f.Interval%uint64(len(s.packets))]; lost > sent || own > 0 && sent > own {
		return 0, 0, false, fmt.Errorf("%w: feedback says %d of %d packets lost, of %d", estimate.ErrMismatch, lost, sent, own)
	}
	s.heard = f.Interval + 1
	return sent, lost, true, nil
}

func feedbackCounts(payload []byte) (sent, lost uint64) {
	return binary.BigEndian.Uint64(payload), binary.BigEndian.Uint64(payload[8:])
}
