package main

import (
	"encoding/binary"
	"net"
	"syscall"
	"time"
)

// tell asks the kernel to say when each datagram came, and how many before it found no room, and to keep
// little of a connection that was not sent yet: what waits in our own queues does not wait in the network.
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

// read reads what the kernel says about a datagram. Without a word it came now.
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
