package main

import (
	"crypto/rand"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/hashing"
)

// flows is the largest number of flows that are told apart.
const flows = 4096

// Every this many bytes of a stream count as a packet.
const every = 1024

// A half is one of the two ends of the proxy. It takes datagrams and
// connections at one address and forwards them to another, and reports to its
// point what passes between the halves.
type half struct {
	point   *hoplag.Point          // of all
	classes [classes]*hoplag.Point // nil unless they are measured apart
	ingress bool
	to      string

	only      netip.Prefix  // whom to serve; everybody if it is not valid
	strangers atomic.Uint64 // datagrams and connections of others

	packets net.PacketConn
	streams net.Listener
	dial    func(network, address string) (net.Conn, error)

	mu    sync.Mutex
	peers map[string]*peer // by the address of the sender
	conns map[net.Conn]bool
	exact *exact // nil but in the demo
	bare  bool   // forward without measuring
}

// A peer is somebody who sends us datagrams, with the socket that forwards
// them.
type peer struct {
	conn net.Conn
	flow hashing.Flow // the same at both halves
	used time.Time
}

// newHalf begins to forward.
func newHalf(ingress bool, key, listen, to string) (*half, error) {
	name := map[bool]string{true: "ingress", false: "egress"}[ingress]
	point, err := hoplag.NewPoint(hoplag.Config{Key: hoplag.NewKey(key), Name: name, Flows: flows})
	if err != nil {
		return nil, err
	}
	h := &half{point: point, ingress: ingress, to: to, dial: net.Dial, peers: map[string]*peer{}, conns: map[net.Conn]bool{}}
	if h.streams, err = net.Listen("tcp", listen); err != nil {
		point.Close()
		return nil, err
	}
	// Use the same port for datagrams, even if any port was requested.
	if h.packets, err = net.ListenPacket("udp", h.streams.Addr().String()); err != nil {
		h.streams.Close()
		point.Close()
		return nil, err
	}
	return h, nil
}

// start begins to forward, once everything is set.
func (h *half) start() {
	go h.relay()
	go h.accept()
}

// address returns where the half takes datagrams and connections.
func (h *half) address() string { return h.streams.Addr().String() }

// close ends the forwarding and closes everything that is open.
func (h *half) close() {
	h.packets.Close()
	h.streams.Close()
	h.mu.Lock()
	for _, p := range h.peers {
		p.conn.Close()
	}
	for c := range h.conns {
		c.Close()
	}
	h.mu.Unlock()
	h.point.Close()
	for _, p := range h.classes {
		if p != nil {
			p.Close()
		}
	}
}

// relay forwards the datagrams of every peer, each over its own socket, so
// that replies find the way back.
func (h *half) relay() {
	buffer := make([]byte, 64<<10)
	for h.relayOne(buffer) == nil {
	}
}

// relayOne forwards the next datagram.
func (h *half) relayOne(buffer []byte) error {
	n, from, err := h.packets.ReadFrom(buffer)
	if err != nil {
		return err
	}
	if !h.serves(from) {
		return nil
	}
	now := time.Now()
	p, err := h.peer(from, now)
	if err != nil {
		return nil // as if the target cannot be resolved: the datagram is lost
	}
	h.passed(h.point.Direction, 0, p, now, buffer[:n])
	p.conn.Write(buffer[:n])
	return nil
}

// serves reports whether to forward what an address sends, and counts what it
// refuses.
func (h *half) serves(from net.Addr) bool {
	if !h.only.IsValid() {
		return true
	}
	a, err := netip.ParseAddrPort(from.String())
	if err == nil && h.only.Contains(a.Addr().Unmap().WithZone("")) {
		return true
	}
	h.strangers.Add(1)
	return false
}

// passed reports a datagram that passes between the halves now.
func (h *half) passed(d *hoplag.Direction, way int, p *peer, now time.Time, datagram []byte) {
	if h.bare {
		return
	}
	d.RecordIn(p.flow, now, h.point.Packet(datagram))
	if c := h.direction(udp, way); c != nil {
		c.Record(now, h.classes[udp].Packet(datagram))
	}
	h.exact.passed(way, h.ingress == (way == 0), datagram)
}

// idle is the time after which a silent peer is forgotten.
const idle = time.Minute

// peer returns the socket that forwards what comes from an address.
func (h *half) peer(from net.Addr, now time.Time) (*peer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.peers[from.String()]; p != nil {
		p.used = now
		return p, nil
	}
	for name, p := range h.peers {
		if now.Sub(p.used) > idle {
			p.conn.Close()
			delete(h.peers, name)
		}
	}
	conn, err := h.dial("udp", h.to)
	if err != nil {
		return nil, err
	}
	name := "udp " + from.String()
	if h.ingress { // the egress half sees this socket as the peer
		name = "udp " + conn.LocalAddr().String()
	}
	p := &peer{conn: conn, flow: h.point.Flow([]byte(name)), used: now}
	h.peers[from.String()] = p
	go h.replies(p, from)
	return p, nil
}

// replies forwards what comes back to a peer.
func (h *half) replies(p *peer, to net.Addr) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := p.conn.Read(buffer)
		if err != nil {
			return
		}
		h.passed(h.point.Back, 1, p, time.Now(), buffer[:n])
		h.packets.WriteTo(buffer[:n], to)
	}
}

// accept forwards connections.
func (h *half) accept() {
	for {
		conn, err := h.streams.Accept()
		if err != nil {
			return
		}
		if !h.serves(conn.RemoteAddr()) {
			conn.Close()
			continue
		}
		go h.forward(conn)
	}
}

// nameSize is the number of random bytes that name a stream. The ingress half
// sends them to the egress half before all others, because addresses may be
// translated between them.
const nameSize = 16

// forward forwards one connection, both ways, and reports the bytes that pass
// between the halves.
func (h *half) forward(from net.Conn) {
	defer from.Close()
	to, err := h.dial("tcp", h.to)
	if err != nil {
		return
	}
	defer to.Close()
	defer h.opened(from, to)()
	name := make([]byte, nameSize)
	if h.ingress {
		rand.Read(name) // never fails
		to.Write(name)  // if this fails, so does what follows
	} else if _, err := io.ReadFull(from, name); err != nil {
		return
	}
	forth, back := h.told(h.point.Direction, 0, name), h.told(h.point.Back, 1, name)
	var done sync.WaitGroup
	done.Go(func() { pipe(from, to, back) })
	pipe(to, from, forth)
	done.Wait()
}

// told returns the writer for a stream's bytes.
func (h *half) told(d *hoplag.Direction, way int, name []byte) io.Writer {
	all := []io.Writer{d.Stream(string(name), every)}
	if c := h.direction(tcp, way); c != nil {
		all = append(all, c.Stream(string(name), every))
	}
	if h.exact != nil {
		all = append(all, &pieces{exact: h.exact, direction: way, first: h.ingress == (way == 0), name: name})
	}
	return io.MultiWriter(all...)
}

// pipe copies a stream, reports it, and passes its end on.
func pipe(to, from net.Conn, told io.Writer) {
	io.Copy(to, io.TeeReader(from, told))
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
}

// opened keeps connections to be closed with the half, and returns a function
// that forgets them.
func (h *half) opened(conns ...net.Conn) (closed func()) {
	set := func(open bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, c := range conns {
			if open {
				h.conns[c] = true
			} else {
				delete(h.conns, c)
			}
		}
	}
	set(true)
	return func() { set(false) }
}
