package main

import (
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/hoplag/hoplag/hashing"
)

// A peer is somebody who sends us datagrams, with the socket that forwards them.
type peer struct {
	conn *net.UDPConn
	from netip.AddrPort
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

// next waits for a datagram, and returns who sent it and when it came: our own
// queue is not the network.
func (h *half) next(s *source) (datagram []byte, from netip.AddrPort, at time.Time, err error) {
	n, others, _, from, err := s.ReadMsgUDPAddrPort(s.data[:], s.about[:])
	if err != nil {
		return nil, from, at, err
	}
	at, full := read(s.about[:others])
	if full != 0 {
		h.drops[s.way].Add(uint64(full - s.full))
		s.full = full
	}
	if h.leaves(s.way) {
		at = time.Now()
	}
	return s.data[:n], from, at, nil
}

// relay forwards the datagrams of every peer, each over its own socket, so
// that replies find the way back.
func (h *half) relay() {
	for s := (&source{UDPConn: h.packets, way: forth}); !errors.Is(h.relayOne(s), net.ErrClosed); {
	}
}

// relayOne forwards the next datagram.
func (h *half) relayOne(s *source) error {
	datagram, from, at, err := h.next(s)
	if err != nil {
		return err
	}
	p, err := h.peer(from)
	if err != nil { // no socket, or the target cannot be resolved
		h.drops[forth].Add(1)
		return nil
	}
	p.idle.Reset(h.idle)
	h.passed(forth, p.flow, at, datagram)
	if _, err := p.conn.Write(datagram); err != nil {
		p.conn.Write(datagram) // the error was that of an earlier datagram
	}
	return nil
}

// peer returns what forwards what comes from an address.
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
	p := &peer{conn: conn, from: from, flow: h.point.Flow([]byte(name))}
	p.idle = time.AfterFunc(h.idle, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.peers, from)
		conn.Close()
	})
	h.peers[from] = p
	go h.replies(p)
	return p, nil
}

// replies forwards what comes back to a peer, until its socket is closed: an
// error may say no more than that the other end restarts.
func (h *half) replies(p *peer) {
	for s := (&source{UDPConn: p.conn, way: back}); ; {
		datagram, _, at, err := h.next(s)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(time.Millisecond)
			continue
		}
		p.idle.Reset(h.idle)
		h.passed(back, p.flow, at, datagram)
		h.packets.WriteToUDPAddrPort(datagram, p.from)
	}
}
