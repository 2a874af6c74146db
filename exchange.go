package hoplag

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrForged says that bytes were not signed with this point's Key, were changed
// on the way, or answer another request.
var ErrForged = errors.New("not signed with this point's Key")

// A follower asks a point for the cuts after those that it has, and the point
// answers at once. Both messages lie between the head and the checksum of
// package wire, signed as a record is:
//
//	request:  identity 8 · nonce 16 · session 8 · through 8
//	reply:    identity 8 · nonce 16 · now 8 · length of name 1, name ·
//	          1 if there are more records, or 0 · number of records 4 ·
//	          for each: length 4, record
//
// The nonce makes every reply an answer to one request, so that no reply can be
// used twice.
const (
	requestMagic = "HLPQ"
	replyMagic   = "HLPA"
	nonceSize    = 16

	// maxReply bounds the records of a reply, in bytes, unless one alone is
	// longer.
	maxReply = 1 << 20
)

type request struct {
	nonce [nonceSize]byte
	at    position
}

// requestNonce is where the nonce is in an encoded request.
const requestNonce = 5 + 8

func newRequest(at position) request {
	q := request{at: at}
	rand.Read(q.nonce[:]) // never fails
	return q
}

func (s *sealer) request(q request) []byte {
	b := append(s.begin(requestMagic), q.nonce[:]...)
	b = binary.BigEndian.AppendUint64(b, q.at.session)
	return s.seal(binary.BigEndian.AppendUint64(b, uint64(q.at.through)))
}

// A reply holds the cuts that a request asked for.
type reply struct {
	now     int64  // by the point's clock, as in its latest session
	name    string // of the point
	records [][]byte
	more    bool // there are more
}

// Answer answers a follower's request, however it arrived. The reply says what
// passed since the last one, in up to a megabyte. The error wraps [ErrForged],
// [estimate.ErrMismatch] or [estimate.ErrEncoding].
func (p *Point) Answer(request []byte) ([]byte, error) {
	reply, _, err := p.answer(request, maxReply)
	return reply, err
}

// answer is Answer with records of at most limit bytes.
func (p *Point) answer(message []byte, limit int) ([]byte, [nonceSize]byte, error) {
	var q request
	r, err := p.seal.open(message, requestMagic)
	if err != nil {
		return nil, q.nonce, fmt.Errorf("hoplag: request: %w", err)
	}
	copy(q.nonce[:], r.Bytes(nonceSize))
	q.at = position{r.Uint64(), int64(r.Uint64())}
	if err := r.Close(); err != nil {
		return nil, q.nonce, fmt.Errorf("hoplag: request: %w", err)
	}
	p.mu.Lock()
	cuts, more := p.history.since(q.at, limit)
	wall := p.history.latest().wall // the clock may have been set since
	p.mu.Unlock()

	b := append(p.seal.begin(replyMagic), q.nonce[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(wall+p.clock.elapsed()))
	b = append(append(b, uint8(len(p.config.Name))), p.config.Name...)
	if more {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(cuts)))
	for _, c := range cuts {
		b = binary.BigEndian.AppendUint32(b, uint32(len(c.data)))
		b = append(b, c.data...)
	}
	return p.seal.seal(b), q.nonce, nil
}

// reply decodes the reply to a request.
func (s *sealer) reply(q request, data []byte) (reply, error) {
	r, err := s.open(data, replyMagic)
	if err != nil {
		return reply{}, fmt.Errorf("hoplag: reply: %w", err)
	}
	if string(r.Bytes(nonceSize)) != string(q.nonce[:]) {
		return reply{}, fmt.Errorf("hoplag: reply: %w: answer to another request", ErrForged)
	}
	p := reply{now: int64(r.Uint64())}
	p.name = string(r.Bytes(int(r.Uint8())))
	p.more = r.Uint8() == 1
	for range r.Size() {
		record := r.Bytes(r.Size())
		if record == nil {
			break
		}
		p.records = append(p.records, record)
	}
	if err := r.Close(); err != nil {
		return reply{}, fmt.Errorf("hoplag: reply: %w", err)
	}
	return p, nil
}

// ErrSilent says that nothing came from the other point for a whole interval.
var ErrSilent = errors.New("the other point is silent")
