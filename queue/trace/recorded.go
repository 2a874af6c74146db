package trace

import (
	"io"
	"math"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
)

// Recorded is a [queue.Source] of the IP packets of a capture, at the times
// and of the lengths recorded; [Scale] makes another load of it. Single user,
// no locks; Next allocates nothing.
type Recorded struct {
	reader  *Reader
	frame   hashing.Frame
	seed    uint64
	sent    uint64
	skipped uint64
	last    int64
	err     error
}

// NewRecorded returns a source of what a Reader has left. Flows and identities
// are hashed under seed.
func NewRecorded(r *Reader, seed uint64) *Recorded {
	return &Recorded{reader: r, seed: seed, last: math.MinInt64}
}

// Next implements [queue.Source]. It passes over records that are not of IP
// packets or have no time. A packet recorded before the one that the capture
// has ahead of it gets that one's time.
func (s *Recorded) Next(p *queue.Packet) bool {
	for s.err == nil {
		var rec Record
		if rec, s.err = s.reader.Next(); s.err != nil {
			break
		}
		if rec.Time == NoTime || rec.Length < 1 || rec.Length > math.MaxInt32 || s.frame.Parse(rec.Link, rec.Frame) != nil {
			s.skipped++
			continue
		}
		s.last = max(s.last, rec.Time)
		*p = queue.Packet{
			Sent:  s.last,
			Time:  s.last,
			Flow:  s.frame.Tuple.Flow(s.seed),
			ID:    s.frame.Digest(s.seed),
			Seq:   s.sent,
			Bytes: int32(rec.Length),
		}
		s.sent++
		return true
	}
	return false
}

// Skipped returns how many records were passed over.
func (s *Recorded) Skipped() uint64 { return s.skipped }

// Err returns what ended the source: nil if it was the end of the capture, or
// if it has not ended.
func (s *Recorded) Err() error {
	if s.err == io.EOF {
		return nil
	}
	return s.err
}
