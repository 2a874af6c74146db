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
	size     int // of a synopsis
	open     bool
	clockSet bool
	opened   uint64    // fingerprint of the open interval
	closed   uint64    // of the one before
	heard    uint64    // the interval after that of the latest feedback used
	packets  [8]uint64 // sent in the last intervals, by number
	buffer   []byte    // the last frame of Parts
}

// NewSender returns a Sender of synopses of size bytes in frames of at most
// mtu bytes. The error, with the name pkg, wraps [estimate.ErrConfig].
func NewSender(pkg string, session uint64, mtu, size int) (*Sender, error) {
	s := &Sender{session: session, mtu: mtu, size: size}
	return s, s.check(pkg)
}

func (s *Sender) check(pkg string) error {
	if least := FrameSize + s.key.Size() + max(1, (s.size+MaxParts-1)/MaxParts); s.mtu < least {
		return estimate.Invalid(pkg, "mtu", s.mtu, "at least "+strconv.Itoa(least))
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

// IsOpen reports whether an interval is open.
func (s *Sender) IsOpen() bool { return s.open }

// ClockSet reports that the point's clock was set. It spoils the open
// interval.
func (s *Sender) ClockSet() { s.clockSet = s.open }

// Start begins an interval of a Config with the fingerprint, and appends its
// marker. The error wraps [ErrTurn].
func (s *Sender) Start(dst []byte, fingerprint uint64) ([]byte, error) {
	if s.open {
		return dst, fmt.Errorf("%w: interval %d has started", ErrTurn, s.interval)
	}
	s.open, s.opened, s.clockSet = true, fingerprint, false
	f := Frame{Kind: Start, Fingerprint: fingerprint, Session: s.session, Interval: s.interval}
	return f.Append(dst, &s.key), nil
}

// End ends the interval and appends its marker. The error wraps [ErrTurn].
func (s *Sender) End(dst []byte) ([]byte, error) {
	if !s.open {
		return dst, fmt.Errorf("%w: interval %d has not started", ErrTurn, s.interval)
	}
	f := Frame{Kind: End, ClockSet: s.clockSet, Fingerprint: s.opened, Session: s.session, Interval: s.interval}
	s.open, s.closed = false, s.opened
	s.packets[s.interval%uint64(len(s.packets))] = 0
	s.interval++
	return f.Append(dst, &s.key), nil
}

// Parts returns the frames that carry the synopsis of the interval that ended
// last. A frame is valid until the next one.
func (s *Sender) Parts(record []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		room := s.mtu - FrameSize - s.key.Size()
		f := Frame{Kind: Part, Fingerprint: s.closed, Session: s.session, Interval: s.interval - 1}
		parts := (len(record) + room - 1) / room
		f.Parts = uint16(parts)
		for i := range parts {
			from, to := PartBounds(len(record), i, parts)
			f.Part, f.Payload = uint16(i), record[from:to]
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
// lost in an interval. ok is false if it is late or comes again. The error
// wraps [estimate.ErrEncoding], [ErrForged], or [estimate.ErrMismatch] if it
// is not for this Sender, or about packets that were not sent.
func (s *Sender) Feedback(data []byte, fingerprint uint64) (sent, lost uint64, ok bool, err error) {
	var f Frame
	if err := f.Parse(data, &s.key); err != nil {
		return 0, 0, false, err
	}
	switch {
	case f.Kind != Feedback || len(f.Payload) != 16:
		return 0, 0, false, fmt.Errorf("%w: control packet of kind %d with %d bytes is no feedback", estimate.ErrEncoding, f.Kind, len(f.Payload))
	case f.Session != s.session, f.Interval >= s.interval, f.Fingerprint != fingerprint:
		return 0, 0, false, fmt.Errorf("%w: feedback on interval %d of session %d, here is interval %d of session %d",
			estimate.ErrMismatch, f.Interval, f.Session, s.interval, s.session)
	case f.Interval < s.heard || f.Interval+maxFeedbackAge < s.interval:
		return 0, 0, false, nil
	}
	sent, lost = feedbackCounts(f.Payload)
	if own := s.packets[f.Interval%uint64(len(s.packets))]; lost > sent || own > 0 && sent > own {
		return 0, 0, false, fmt.Errorf("%w: feedback says %d of %d packets lost, of %d", estimate.ErrMismatch, lost, sent, own)
	}
	s.heard = f.Interval + 1
	return sent, lost, true, nil
}

// Silence returns the number of intervals since the latest feedback.
func (s *Sender) Silence() uint64 { return s.interval - s.heard }

func feedbackCounts(payload []byte) (sent, lost uint64) {
	return binary.BigEndian.Uint64(payload), binary.BigEndian.Uint64(payload[8:])
}
