package main

import (
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"syscall"
	"time"
)

// stamped asks the kernel to say when each datagram came, and how many before
// it found no room. Our own queue is not the network.
func stamped(c net.Conn) {
	control(c, func(fd int) {
		syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_TIMESTAMPNS, 1)
		syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_RXQ_OVFL, 1)
		syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<20) // as much of it as is allowed
	})
}

// shallow keeps little in the queue of a connection that was not sent yet: what
// waits here does not wait in the network.
func shallow(c net.Conn) {
	const notSentLowat = 25 // TCP_NOTSENT_LOWAT
	control(c, func(fd int) { syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, notSentLowat, 16<<10) })
	control(c, func(fd int) { syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_TIMESTAMPNS, 1) })
}

func control(c net.Conn, f func(fd int)) {
	if s, ok := c.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			raw.Control(func(fd uintptr) { f(int(fd)) })
		}
	}
}

// read reads what the kernel says about a datagram. Without a word it came now.
func read(about []byte) (at time.Time, drops uint32) {
	at = time.Now()
	word := func(b []byte) int64 { // a long, whose size is that of an int
		if strconv.IntSize == 32 {
			return int64(int32(binary.NativeEndian.Uint32(b)))
		}
		return int64(binary.NativeEndian.Uint64(b))
	}
	for len(about) >= syscall.SizeofCmsghdr {
		n := int(word(about))
		if n < syscall.SizeofCmsghdr || n > len(about) {
			break
		}
		kind := binary.NativeEndian.Uint32(about[syscall.SizeofCmsghdr-4:])
		switch data := about[syscall.CmsgLen(0):n]; {
		case kind == syscall.SO_TIMESTAMPNS && len(data) >= 2*strconv.IntSize/8:
			at = time.Unix(word(data), word(data[strconv.IntSize/8:]))
		case kind == syscall.SO_RXQ_OVFL && len(data) >= 4:
			drops = binary.NativeEndian.Uint32(data)
		}
		about = about[min(len(about), syscall.CmsgSpace(n-syscall.CmsgLen(0))):]
	}
	return at, drops
}

// next waits for what comes, and returns it with what the kernel says about it,
// both in a buffer to be given back: those who wait hold none.
func (s *source) next() (b *buffer, got, about []byte, err error) {
	if s.raw == nil {
		return s.plain()
	}
	var n, others int
	failed := s.raw.Read(func(fd uintptr) bool {
		b = buffers.Get().(*buffer)
		for {
			n, others, _, _, err = syscall.Recvmsg(int(fd), b.data[head:], b.about[:], 0)
			if err == syscall.EAGAIN {
				buffers.Put(b)
				return false
			}
			if err != syscall.EINTR {
				return true
			}
		}
	})
	if failed != nil {
		return buffers.Get().(*buffer), nil, nil, failed
	}
	if s.stream && n == 0 && err == nil {
		err = io.EOF
	}
	return b, b.data[head : head+max(n, 0)], b.about[:max(others, 0)], err
}
