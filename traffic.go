package hoplag

import (
	"encoding/binary"
	"io"
)

// Stream returns a writer that stands for the bytes of a stream, such as a TCP
// connection's, that both points see: for each piece of so many bytes, every,
// it says that a message passed whose id is the name of the stream and the
// piece's number. Write to it what passes, as by [io.TeeReader]. It does not
// matter how the bytes are grouped, so the points may read and write as they
// like; a stream's last incomplete piece is not counted. The name is to be the
// same at both points and used once, as by [net.Conn]'s addresses between them.
//
// The writer is not safe for concurrent use. Its errors are always nil.
func (d *Direction) Stream(name string, every int) io.Writer {
	return &stream{direction: d, every: max(1, every), id: append([]byte(name), make([]byte, 8)...)}
}

type stream struct {
	direction   *Direction
	every, part int // length of a piece, and how much of the present one has passed
	piece       uint64
	id          []byte // the name and, in the last 8 bytes, the number of the piece
}

func (s *stream) Write(b []byte) (int, error) {
	for s.part += len(b); s.part >= s.every; s.part -= s.every {
		s.piece++
		binary.BigEndian.PutUint64(s.id[len(s.id)-8:], s.piece)
		s.direction.Passed(s.id)
	}
	return len(b), nil
}
