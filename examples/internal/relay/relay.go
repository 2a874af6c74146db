// Package relay has what the tests of the examples share: errors that end a test,
// unused addresses, and networks that delay, lose and break.
package relay

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"testing"
	"time"
)

// Must returns a value, or ends the test if there is an error instead.
func Must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Check(t, err)
		return v
	}
}

// Check ends the test if there is an error.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Listen listens at an unused address, until the test ends.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	l := Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	return l
}

// ListenPacket listens for datagrams at an address, until the test ends.
func ListenPacket(t testing.TB, address string) net.PacketConn {
	t.Helper()
	p := Must(net.ListenPacket("udp", address))(t)
	t.Cleanup(func() { p.Close() })
	return p
}

// Datagrams carries datagrams to an address and back, and returns where it takes them. fate says of each, on
// its way back or not, how long it takes and whether it arrives.
func Datagrams(t testing.TB, to string, fate func(back bool) (time.Duration, bool)) net.Addr {
	t.Helper()
	near := ListenPacket(t, "127.0.0.1:0")
	carry := func(back bool, datagram []byte, deliver func([]byte)) {
		if delay, comes := fate(back); comes {
			datagram = bytes.Clone(datagram)
			time.AfterFunc(delay, func() { deliver(datagram) })
		}
	}
	go func() {
		far := map[string]net.Conn{}
		for b := make([]byte, 64<<10); ; {
			n, from, err := near.ReadFrom(b)
			if err != nil {
				return
			}
			conn := far[from.String()]
			if conn == nil {
				if conn, err = net.Dial("udp", to); err != nil {
					return
				}
				defer conn.Close()
				far[from.String()] = conn
				go func() {
					b := make([]byte, 64<<10)
					for n, err := conn.Read(b); !errors.Is(err, net.ErrClosed); n, err = conn.Read(b) {
						carry(true, b[:n], func(datagram []byte) { near.WriteTo(datagram, from) })
					}
				}()
			}
			carry(false, b[:n], func(datagram []byte) { conn.Write(datagram) })
		}
	}()
	return near.LocalAddr()
}

// A Wire carries connections to an address, until it is cut.
type Wire struct {
	net.Listener
	to    string
	delay [2]time.Duration // forth and back

	mu  sync.Mutex
	cut bool
	all []net.Conn
}

// NewWire returns a Wire that delays what passes forth and back.
func NewWire(t testing.TB, to string, forth, back time.Duration) *Wire {
	t.Helper()
	w := &Wire{Listener: Listen(t), to: to, delay: [2]time.Duration{forth, back}}
	t.Cleanup(func() { w.Set(true) })
	go func() {
		for from, err := w.Accept(); err == nil; from, err = w.Accept() {
			w.carry(from)
		}
	}()
	return w
}

// carry carries a connection, or keeps it without an answer.
func (w *Wire) carry(from net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, from)
	if w.cut {
		return
	}
	to, err := net.Dial("tcp", w.to)
	if err != nil {
		from.Close()
		return
	}
	w.all = append(w.all, to)
	go carryLater(to, from, w.delay[0])
	go carryLater(from, to, w.delay[1])
}

// Set cuts the wire, or mends it. It closes all connections, and drops what is on its way.
func (w *Wire) Set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.all {
		c.Close()
	}
	w.all, w.cut = nil, cut
}

// carryLater carries bytes after a delay.
func carryLater(to, from net.Conn, delay time.Duration) {
	type piece struct {
		bytes []byte
		due   time.Time
	}
	pieces := make(chan piece, 1<<14)
	go func() {
		defer to.Close()
		for p := range pieces {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.bytes); err != nil {
				from.Close()
			}
		}
	}()
	defer close(pieces)
	for {
		b := make([]byte, 4096)
		n, err := from.Read(b)
		if err != nil {
			return
		}
		pieces <- piece{b[:n], time.Now().Add(delay)}
	}
}
