package main

import (
	"encoding/binary"
	"net"
	"syscall"
	"time"
)

// tell asks the kernel to report when each datagram arrived, and how many before it found no room, and to
// buffer little of a connection before sending: what waits in our own queues does not wait in the network.
func tell(c syscall.Conn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	const notSentLowat = 25 // TCP_NOTSENT_LOWAT
	raw.Control(func(fd uintptr) {
		syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_TIMESTAMPNS, 1)
		syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RXQ_OVFL, 1)
		syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, notSentLowat, 16<<10)
		if _, ok := c.(*net.UDPConn); ok {
			syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<20) // as much of it as is allowed
		}
	})
}

// read reads what the kernel says about a datagram. If it says nothing, the datagram arrived now.
func read(about []byte) (at time.Time, drops uint32) {
	at = time.Now()
	messages, _ := syscall.ParseSocketControlMessage(about)
	for _, m := range messages {
		switch n := binary.NativeEndian; {
		case m.Header.Type == syscall.SO_RXQ_OVFL && len(m.Data) >= 4:
			drops = n.Uint32(m.Data)
		case m.Header.Type == syscall.SO_TIMESTAMPNS && len(m.Data) >= 16:
			at = time.Unix(int64(n.Uint64(m.Data)), int64(n.Uint64(m.Data[8:])))
		case m.Header.Type == syscall.SO_TIMESTAMPNS && len(m.Data) >= 8: // two words of 32 bits
			at = time.Unix(int64(n.Uint32(m.Data)), int64(n.Uint32(m.Data[4:])))
		}
	}
	return at, drops
}
