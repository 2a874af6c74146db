package main

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// Between the halves a connection begins with nameSize random bytes that name
// it, because addresses may be translated, and continues with frames: a length
// in head bytes, and so many bytes. Two lengths stand for no bytes: an end, after
// which the sender's side writes no more, and a break: the sender's side is gone,
// and wants no more. Whoever is told of a break sends a last frame, and the other
// half takes everything up to it. So nothing that was sent is thrown away on the
// way, to count as lost.
const (
	nameSize = 16
	head     = 4
	ended    = 0
	broken   = 1<<32 - 1
)

// every so many bytes of a connection one counts as a packet.
const every = 1024

// A buffer holds what was read, after room for the head of a frame.
type buffer struct {
	data  [head + 64<<10]byte
	about [128]byte
}

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// A source is a socket to read from.
type source struct {
	conn   net.Conn
	raw    syscall.RawConn // nil if it is none of the kernel's
	stream bool
}

func newSource(c net.Conn) *source {
	s := &source{conn: c}
	_, s.stream = c.(*net.TCPConn)
	if k, ok := c.(syscall.Conn); ok {
		s.raw, _ = k.SyscallConn()
	}
	return s
}

// plain is next for any connection.
func (s *source) plain() (b *buffer, got, about []byte, err error) {
	b = buffers.Get().(*buffer)
	n, err := s.conn.Read(b.data[head:])
	return b, b.data[head : head+n], nil, err
}

// accept forwards connections. An error, as when files run out, passes.
func (h *half) accept() {
	for wait := time.Millisecond; ; {
		conn, err := h.accepts.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			h.say("%v, trying again in %v", err, wait)
			time.Sleep(wait)
			wait = min(2*wait, time.Second)
			continue
		case !h.serves(conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr()):
			conn.Close()
			continue
		}
		wait = time.Millisecond
		h.streams.Add(1)
		go h.forward(conn)
	}
}

// A stream is one connection through the half.
type stream struct {
	half         *half
	inner, outer net.Conn // to the other half, to the client or the server
	name         [nameSize]byte
	pieces       [2]pieces
	mu           sync.Mutex // guards what is written to inner
	last         int        // frames that end a direction, sent or received
	done         int        // goroutines that have ended
}

// forward begins to forward a connection, both ways.
func (h *half) forward(from net.Conn) {
	s := &stream{half: h, inner: from, outer: from}
	if err := s.open(from); err != nil {
		h.say("connection from %v: %v", from.RemoteAddr(), err)
		s.close()
		return
	}
	h.opened(s, true)
	go s.receive() // on new stacks: those of who opens a connection are larger
	go s.send()
}

// open connects to where the connection goes, and agrees on its name with the
// other half.
func (s *stream) open(from net.Conn) (err error) {
	if s.half.ingress {
		rand.Read(s.name[:]) // never fails
		if s.inner, err = s.half.dial("tcp", s.half.to); err != nil {
			s.inner = from
			return err
		}
		shallow(s.inner)
		_, err = s.inner.Write(s.name[:])
		return err
	}
	from.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.ReadFull(from, s.name[:]); err != nil {
		return err
	}
	from.SetReadDeadline(time.Time{})
	shallow(from)
	if s.outer, err = s.half.dial("tcp", s.half.to); err != nil {
		s.outer = from
	}
	return err
}

// leave ends a goroutine, and the connection with the last one.
func (s *stream) leave() {
	s.mu.Lock()
	s.done++
	both := s.done == 2
	s.mu.Unlock()
	if both {
		s.close()
	}
}

// close closes a connection for good.
func (s *stream) close() {
	s.inner.Close()
	s.outer.Close()
	s.half.opened(s, false)
	s.half.streams.Done()
}

// way is the direction of what is sent to the other half, or received.
func (s *stream) way(sends bool) int {
	if s.half.leaves(forth) == sends {
		return forth
	}
	return back
}

// send sends frames of what comes from outside, and what ended it.
func (s *stream) send() {
	defer s.leave()
	way, from, kind := s.way(true), newSource(s.outer), uint32(broken)
	for {
		b, got, _, err := from.next()
		if len(got) > 0 {
			s.passed(way, time.Now(), got)
			err = errors.Join(err, s.frame(uint32(len(got)), b.data[:head+len(got)]))
		}
		buffers.Put(b)
		if errors.Is(err, io.EOF) {
			kind = ended
		}
		if err != nil {
			break
		}
	}
	s.frame(kind, make([]byte, head))
	s.finish()
}

// frame writes a frame whose bytes have room for the head.
func (s *stream) frame(length uint32, b []byte) error {
	binary.BigEndian.PutUint32(b, length)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.inner.Write(b)
	return err
}

// finish says that a direction has ended. After both, the other half has
// nothing more to say, and soon hangs up too.
func (s *stream) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last++; s.last == 2 {
		closeWrite(s.inner)
		s.inner.SetReadDeadline(time.Now().Add(10 * time.Second))
	}
}

// receive passes on what comes in frames, until the other half hangs up.
func (s *stream) receive() {
	defer s.leave()
	defer s.outer.Close() // which ends send
	var size [head]byte
	way, from, have, left, gone, last := s.way(false), newSource(s.inner), 0, uint32(0), false, false
	for {
		b, got, about, err := from.next()
		at, _ := read(about)
		for len(got) > 0 {
			if left > 0 {
				n := min(int(left), len(got))
				s.passed(way, at, got[:n])
				s.outer.SetWriteDeadline(time.Now().Add(s.half.stall))
				if _, err := s.outer.Write(got[:n]); err != nil && !gone {
					gone = true // take the rest all the same
					reset(s.outer)
					go s.frame(broken, make([]byte, head)) // behind what send may still be writing
				}
				left -= uint32(n)
				got = got[n:]
				continue
			}
			n := copy(size[have:], got)
			got = got[n:]
			if have += n; have < head {
				break
			}
			have = 0
			switch left = binary.BigEndian.Uint32(size[:]); left {
			case broken:
				left = 0
				reset(s.outer)
			case ended:
				closeWrite(s.outer)
			default:
				continue
			}
			if !last {
				last = true
				s.finish()
			}
		}
		buffers.Put(b)
		if err != nil {
			if !last { // the network or the other half failed
				reset(s.outer)
			}
			return
		}
	}
}

// A pieces knows how far a stream is.
type pieces struct {
	part   int
	number uint64
}

// passed reports the pieces that pass with these bytes.
func (s *stream) passed(way int, at time.Time, b []byte) {
	p := &s.pieces[way]
	for p.part += len(b); p.part >= every; p.part -= every {
		p.number++
		s.half.passed(way, tcp, 0, at, binary.BigEndian.AppendUint64(s.name[:nameSize:nameSize], p.number))
	}
}

func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
}

// reset closes a connection so that its other end sees that it failed.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		t.SetLinger(0)
	}
	c.Close()
}

// opened keeps streams, to close them with the half, or forgets them.
func (h *half) opened(s *stream, open bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if delete(h.conns, s); open {
		h.conns[s] = true
	}
}
