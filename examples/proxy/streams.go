package main

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Between the halves a connection begins with random bytes that name it, because addresses may be
// translated, and continues with frames: a length in head bytes, and that many bytes. Two lengths have no
// bytes: an end, after which the sender's side writes no more, and a break, after which it also reads no
// more. Each half takes everything up to that, and hangs up once it has sent and received one. So nothing
// that was sent is thrown away on the way and counted as lost.
const head, ended, broken = 4, 0, 1<<32 - 1

// every is how many bytes of a connection count as one packet.
const every = 1024

// An idle connection holds only a few bytes to read into; these are for busy ones.
var buffers = sync.Pool{New: func() any { return new([head + 64<<10]byte) }}

// accept forwards connections. Errors, as when files run out, are temporary.
func (h *half) accept() {
	for {
		conn, err := h.accepts.Accept()
		switch {
		case err == nil:
			h.streams.Add(1)
			go h.forward(conn.(*net.TCPConn))
		case errors.Is(err, net.ErrClosed):
			return
		default:
			h.say("%v, trying again", err)
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// A stream is one connection through the half.
type stream struct {
	half         *half
	inner, outer *net.TCPConn // to the other half, to the client or the server
	name         [16]byte
	parts        [2]uint64    // bytes that passed
	done         atomic.Int32 // goroutines that have ended

	mu    sync.Mutex
	said  bool // an end or a break was sent
	heard bool // one came
	gone  bool // outer takes no more
}

// forward starts forwarding a connection, both ways.
func (h *half) forward(from *net.TCPConn) {
	s, err := h.open(from)
	if err != nil {
		h.say("connection from %v: %v", from.RemoteAddr(), err)
		from.Close()
		h.streams.Done()
		return
	}
	h.mu.Lock()
	h.conns[s] = true
	h.mu.Unlock()
	tell(s.inner)
	go s.receive() // on new stacks: those of who opens a connection are larger
	go s.send()
}

// open connects to a connection's destination, and agrees on its name with the other half.
func (h *half) open(from *net.TCPConn) (*stream, error) {
	s := &stream{half: h, inner: from}
	if !h.ingress {
		from.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.ReadFull(from, s.name[:]); err != nil {
			return nil, err
		}
		from.SetReadDeadline(time.Time{})
	}
	to, err := net.Dial("tcp", h.to)
	if err != nil {
		return nil, err
	}
	if s.outer = to.(*net.TCPConn); h.ingress {
		s.inner, s.outer = s.outer, s.inner
		rand.Read(s.name[:]) // never fails
		to.Write(s.name[:])  // if it fails, so will the frames that follow
	}
	return s, nil
}

// leave ends a goroutine, and the connection with the last one.
func (s *stream) leave() {
	if s.done.Add(1) < 2 {
		return
	}
	s.inner.Close()
	s.outer.Close()
	s.half.mu.Lock()
	delete(s.half.conns, s)
	s.half.mu.Unlock()
	s.half.streams.Done()
}

// send sends frames of what arrives from outside, and then its end or break.
func (s *stream) send() {
	defer s.leave()
	few := make([]byte, head+252)
	var busy *[head + 64<<10]byte
	var err error
	b := few
	for err == nil {
		var n int
		if n, err = s.outer.Read(b[head:]); n > 0 {
			s.passed(true, b[head:head+n])
			binary.BigEndian.PutUint32(b, uint32(n))
			_, failed := s.inner.Write(b[:head+n])
			err = errors.Join(err, failed)
		}
		if full := n == len(b)-head; full && busy == nil {
			busy = buffers.Get().(*[head + 64<<10]byte)
			b = busy[:]
		} else if !full && busy != nil {
			buffers.Put(busy)
			b, busy = few, nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := uint32(broken)
	if errors.Is(err, io.EOF) && !s.gone {
		kind = ended
	}
	s.say(kind)
	s.said = true
	s.hangUp()
}

// say sends an end or a break.
func (s *stream) say(kind uint32) { s.inner.Write(binary.BigEndian.AppendUint32(nil, kind)) }

// hangUp tells the other half that nothing more comes, once both have said so.
func (s *stream) hangUp() {
	if s.said && s.heard {
		s.inner.CloseWrite()
	}
}

// receive passes on what arrives in frames, until the other half hangs up.
func (s *stream) receive() {
	defer s.leave()
	size := make([]byte, head)
	for {
		if _, err := io.ReadFull(s.inner, size); err != nil {
			if !s.heard { // the network or the other half failed
				reset(s.outer)
			}
			return
		}
		switch length := binary.BigEndian.Uint32(size); length {
		case broken:
			reset(s.outer)
		case ended:
			s.outer.CloseWrite()
		default:
			s.take(int(length))
			continue
		}
		s.mu.Lock()
		s.heard = true
		s.hangUp()
		s.mu.Unlock()
	}
}

// take passes on the bytes of a frame as they arrive. If nobody reads them, it takes them all the same, and
// send reports the connection as broken; or take does, if send has seen an end, as after some breaks.
func (s *stream) take(left int) {
	b := buffers.Get().(*[head + 64<<10]byte)
	defer buffers.Put(b)
	for left > 0 {
		n, err := s.inner.Read(b[:min(left, len(b))])
		if err != nil {
			return // as will be the next
		}
		left -= n
		s.passed(false, b[:n])
		s.outer.SetWriteDeadline(time.Now().Add(s.half.stall))
		if _, err := s.outer.Write(b[:n]); err != nil && !s.gone {
			reset(s.outer)
			s.mu.Lock()
			if s.gone = true; s.said {
				s.say(broken)
			}
			s.mu.Unlock()
		}
	}
}

// passed reports the pieces that end in these bytes, which are sent to the other half or received.
func (s *stream) passed(sent bool, b []byte) {
	way := back
	if s.half.leaves(forth) == sent {
		way = forth
	}
	at, number := time.Now(), s.parts[way]/every
	s.parts[way] += uint64(len(b))
	for number < s.parts[way]/every {
		number++
		id := binary.BigEndian.AppendUint64(s.name[:16:16], number)
		s.half.passed(way, 0, at, id)
	}
}

// reset breaks a connection, so that the other end learns that it did not end.
func reset(c *net.TCPConn) {
	c.SetLinger(0)
	c.Close()
}
