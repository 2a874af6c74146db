package main

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/hoplag/hoplag/hashing"
)

// A peer is somebody who sends us datagrams, with the socket that forwards
// them.
type peer struct {
	conn net.Conn
	from netip.AddrPort
	flow hashing.Flow // the same at both halves
	used atomic.Int64 // when something passed, either way
	full uint32       // drops of the socket, as told so far
}

// relay forwards the datagrams of every peer, each over its own socket, so
// that replies find the way back.
func (h *half) relay() {
	b := new(buffer)
	for full := uint32(0); !errors.Is(h.relayOne(b, &full), net.ErrClosed); {
	}
}

// relayOne forwards the next datagram.
func (h *half) relayOne(b *buffer, full *uint32) error {
	n, others, _, from, err := h.packets.ReadMsgUDPAddrPort(b.data[:], b.about[:])
	if err != nil {
		return err
	}
	datagram, at := b.data[:n], h.seen(forth, b.about[:others], full)
	if !h.serves(from.Addr()) {
		return nil
	}
	p, err := h.peer(from)
	if err != nil { // no socket, or the target cannot be resolved
		h.drops[forth].Add(1)
		return nil
	}
	if p.used.Store(at.UnixNano()); h.leaves(forth) {
		at = time.Now()
	}
	h.passed(forth, udp, p.flow, at, datagram)
	if _, err := p.conn.Write(datagram); err != nil {
		p.conn.Write(datagram) // the error was that of an earlier datagram
	}
	return nil
}

// seen returns when a datagram came, and counts those before it for which the
// socket had no room.
func (h *half) seen(way int, about []byte, full *uint32) time.Time {
	at, drops := read(about)
	if drops != 0 {
		h.drops[way].Add(uint64(drops - *full))
		*full = drops
	}
	return at
}

// peer returns what forwards what comes from an address.
func (h *half) peer(from netip.AddrPort) (*peer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.peers[from]; p != nil {
		return p, nil
	}
	conn, err := h.dial("udp", h.to)
	if err != nil {
		return nil, err
	}
	stamped(conn)
	name := "udp " + from.String()
	if h.ingress { // the egress half sees this socket as the peer
		name = "udp " + conn.LocalAddr().String()
	}
	p := &peer{conn: conn, from: from}
	if h.points[all] != nil {
		p.flow = h.points[all].Flow([]byte(name))
	}
	h.peers[from] = p
	go h.replies(p)
	return p, nil
}

// replies forwards what comes back to a peer, until its socket is closed: an
// error may say no more than that the other end restarts.
func (h *half) replies(p *peer) {
	for s := newSource(p.conn); ; {
		b, datagram, others, err := s.next()
		if err == nil {
			at := h.seen(back, others, &p.full)
			if p.used.Store(at.UnixNano()); h.leaves(back) {
				at = time.Now()
			}
			h.passed(back, udp, p.flow, at, datagram)
			h.packets.WriteToUDPAddrPort(datagram, p.from)
		}
		buffers.Put(b)
		if errors.Is(err, net.ErrClosed) {
			return
		} else if err != nil {
			time.Sleep(time.Millisecond)
		}
	}
}

// forget forgets peers that have long been silent.
func (h *half) forget() {
	for tick := time.NewTicker(h.idle / 4); ; {
		select {
		case <-tick.C:
		case <-h.closed:
			tick.Stop()
			return
		}
		h.mu.Lock()
		for from, p := range h.peers {
			if time.Since(time.Unix(0, p.used.Load())) > h.idle {
				p.conn.Close()
				delete(h.peers, from)
			}
		}
		h.mu.Unlock()
	}
}
