package main

import (
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/hoplag/hoplag/hashing"
)

// A peer is a sender of datagrams, with the socket that forwards them.
type peer struct {
	conn *net.UDPConn
	flow hashing.Flow // the same at both halves
	idle *time.Timer  // forgets the peer
}

// A source is a socket from which datagrams come one way.
type source struct {
	*net.UDPConn
	way   int
	full  uint32 // datagrams that it had no room for, as told so far
	data  [64 << 10]byte
	about [128]byte // what the kernel says about a datagram
}

// next waits for a datagram and passes it on, with its sender and its time of arrival, because our own
// queue is not part of the network.
func (h *half) next(s *source, pass func(datagram []byte, from netip.AddrPort, at time.Time)) error {
	n, others, _, from, err := s.ReadMsgUDPAddrPort(s.data[:], s.about[:])
	if err != nil {
		return err
	}
	at, full := read(s.about[:others])
	if full != 0 {
		h.drops[s.way].Add(uint64(full - s.full))
		s.full = full
	}
	if h.leaves(s.way) {
		at = time.Now()
	}
	pass(s.data[:n], from, at)
	return nil
}

// each passes on all that arrives, until the socket is closed. Other errors may only
// mean that the other end restarts.
func (h *half) each(conn *net.UDPConn, way int, pass func(datagram []byte, from netip.AddrPort, at time.Time)) {
	s := &source{UDPConn: conn, way: way}
	for {
		if err := h.next(s, pass); errors.Is(err, net.ErrClosed) {
			return
		} else if err != nil {
			time.Sleep(time.Millisecond)
		}
	}
}

// relay forwards a datagram of a peer, each over its own socket, so that replies find the way back.
func (h *half) relay(datagram []byte, from netip.AddrPort, at time.Time) {
	p, err := h.peer(from)
	if err != nil { // no socket, or the target cannot be resolved
		h.drops[forth].Add(1)
		return
	}
	p.idle.Reset(h.idle)
	h.passed(forth, p.flow, at, datagram)
	if _, err := p.conn.Write(datagram); err != nil {
		p.conn.Write(datagram) // the error was that of an earlier datagram
	}
}

// peer returns the peer at an address.
func (h *half) peer(from netip.AddrPort) (*peer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.peers[from]; p != nil {
		return p, nil
	}
	to, err := net.Dial("udp", h.to)
	if err != nil {
		return nil, err
	}
	conn := to.(*net.UDPConn)
	tell(conn)
	name := from.String()
	if h.ingress { // the egress half sees this socket as the peer
		name = conn.LocalAddr().String()
	}
	p := &peer{conn: conn, flow: h.point.Flow([]byte(name))}
	p.idle = time.AfterFunc(h.idle, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.peers, from)
		conn.Close()
	})
	h.peers[from] = p
	go h.each(conn, back, func(datagram []byte, _ netip.AddrPort, at time.Time) {
		p.idle.Reset(h.idle)
		h.passed(back, p.flow, at, datagram)
		h.packets.WriteToUDPAddrPort(datagram, from)
	})
	return p, nil
}
