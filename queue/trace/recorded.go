package trace

import (
	"io"
	"math"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
)

// Recorded is a [queue.Source] of the IP packets of a capture, with the
// recorded times and lengths. [Scale] changes its load. It is for a single
// user and has no locks. Next allocates nothing.
type Recorded struct {
	reader  *Reader
	frame   hashing.Frame
	seed    uint64
	sent    uint64
	skipped uint64
	last    int64
	err     error
}

// NewRecorded returns a source of the remaining packets of a Reader. It hashes
// flows and identities under seed.
func NewRecorded(r *Reader, seed uint64) *Recorded {
	return &Recorded{reader: r, seed: seed, last: math.MinInt64}
}

// Next implements [queue.Source]. It skips records that are not IP packets or
// have no time. A packet with an earlier time than the one before it in the
// capture gets that one's time.
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

// Skipped returns how many records were skipped.
func (s *Recorded) Skipped() uint64 { return s.skipped }

// Err returns the error that ended the source. It is nil at the end of the
// capture, and while the source has not ended.
func (s *Recorded) Err() error {
	if s.err == io.EOF {
		return nil
	}
	return s.err
}
