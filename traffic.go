package hoplag

import (
	"encoding/binary"
	"io"
)

// Stream returns a writer for the bytes of a stream that both points see, such
// as a TCP connection. For each piece of every bytes, it reports that a
// message passed whose id is the name of the stream and the piece's number.
// Write to it what passes, as with [io.TeeReader]. It does not matter how the
// bytes are grouped, so the points may read and write as they like; a stream's
// last incomplete piece is not counted. The name must be the same at both
// points and used once, such as the addresses of a [net.Conn] between them.
//
// The writer is not safe for concurrent use. Its errors are always nil.
func (d *Direction) Stream(name string, every int) io.Writer {
	return &stream{direction: d, every: max(1, every), id: append([]byte(name), make([]byte, 8)...)}
}

type stream struct {
	direction   *Direction
	every, part int // length of a piece, and how much of the present one has passed
	piece       uint64
	id          []byte // the name, then in the last 8 bytes the number of the piece
}

func (s *stream) Write(b []byte) (int, error) {
	for s.part += len(b); s.part >= s.every; s.part -= s.every {
		s.piece++
		binary.BigEndian.PutUint64(s.id[len(s.id)-8:], s.piece)
		s.direction.Passed(s.id)
	}
	return len(b), nil
}
