package main

import (
	"fmt"
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
const flows = 1024

// What is measured, each with a point: all, and with -classes each class too.
const (
	all = iota
	udp
	tcp
	classes
)

var classNames = [classes]string{"", "udp", "tcp"}

// The two ways between the halves.
const (
	forth = iota
	back
)

// A half is one of the two ends of the proxy. It takes datagrams and
// connections at one address and forwards them to another, and reports to its
// points what passes between the halves.
type half struct {
	points  [classes]*hoplag.Point // nil if not measured
	ingress bool
	to      string
	dial    func(network, address string) (net.Conn, error)
	exact   *exact // nil but in the demo
	log     io.Writer

	only      netip.Prefix     // whom to serve; everybody if it is not valid
	strangers atomic.Uint64    // datagrams and connections of others
	drops     [2]atomic.Uint64 // datagrams that found no room in our own sockets, or none to take, by way

	packets *net.UDPConn
	accepts net.Listener

	mu      sync.Mutex
	idle    time.Duration // after which a silent peer is forgotten
	stall   time.Duration // after which a connection breaks whose client or server reads nothing
	peers   map[netip.AddrPort]*peer
	conns   map[*stream]bool
	streams sync.WaitGroup
	closed  chan struct{}
}

// newHalf begins to listen.
func newHalf(ingress bool, key, listen, to string, apart bool) (*half, error) {
	name := map[bool]string{true: "ingress", false: "egress"}[ingress]
	h := &half{
		ingress: ingress, to: to, dial: net.Dial, log: io.Discard, idle: time.Minute, stall: 10 * time.Minute,
		peers: map[netip.AddrPort]*peer{}, conns: map[*stream]bool{}, closed: make(chan struct{}),
	}
	for class := range h.points {
		c := hoplag.Config{Key: hoplag.NewKey(key), Name: name, Class: classNames[class]}
		if class == all {
			c.Flows = flows
		} else if c.Key = hoplag.NewKey(key + " " + classNames[class]); !apart { // no reply can pass for that of another class
			continue
		}
		var err error
		if h.points[class], err = hoplag.NewPoint(c); err != nil {
			return nil, err
		}
	}
	var err error
	if h.accepts, err = net.Listen("tcp", listen); err != nil {
		h.close()
		return nil, err
	}
	// Use the same port for datagrams, even if any port was requested.
	a := h.accepts.Addr().(*net.TCPAddr)
	if h.packets, err = net.ListenUDP("udp", &net.UDPAddr{IP: a.IP, Port: a.Port, Zone: a.Zone}); err != nil {
		h.close()
		return nil, err
	}
	stamped(h.packets)
	return h, nil
}

// start begins to forward, once everything is set.
func (h *half) start() {
	go h.relay()
	go h.forget()
	h.streams.Go(h.accept) // counts as one, so that none is added while somebody waits for none
}

// address returns where the half takes datagrams and connections.
func (h *half) address() string { return h.accepts.Addr().String() }

// drain takes no more connections, and waits until those that there are have
// ended, but not for long. It reports whether they have.
func (h *half) drain(most time.Duration) bool {
	h.accepts.Close()
	done := make(chan struct{})
	go func() {
		h.streams.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-time.After(most):
		return false
	}
}

// close ends the forwarding and closes everything that is open.
func (h *half) close() {
	close(h.closed)
	if h.packets != nil {
		h.packets.Close()
	}
	if h.accepts != nil {
		h.accepts.Close()
	}
	h.mu.Lock()
	for _, p := range h.peers {
		p.conn.Close()
	}
	for s := range h.conns {
		s.inner.Close()
		s.outer.Close()
	}
	h.mu.Unlock()
	for _, p := range h.points {
		if p != nil {
			p.Close()
		}
	}
}

// serves reports whether to forward what an address sends, and counts what it
// refuses.
func (h *half) serves(from netip.Addr) bool {
	if !h.only.IsValid() || h.only.Contains(from.Unmap().WithZone("")) {
		return true
	}
	h.strangers.Add(1)
	return false
}

// leaves reports whether what goes this way leaves here for the other half,
// and does not come from it.
func (h *half) leaves(way int) bool { return h.ingress == (way == forth) }

// passed reports something of a class that passes between the halves.
func (h *half) passed(way, class int, flow hashing.Flow, at time.Time, id []byte) {
	for _, c := range [...]int{all, class} {
		if p := h.points[c]; p != nil {
			d := p.Direction
			if way == back {
				d = p.Back
			}
			d.RecordIn(flow, at, p.Packet(id))
		}
	}
	h.exact.passed(way, h.leaves(way), at, id)
}

// dropped returns what this half dropped itself, by where. Only what came from
// the other half counts as lost between them.
func (h *half) dropped() map[string]uint64 {
	names := [2]string{"forth, at the egress half", "back, from the server"}
	if h.ingress {
		names = [2]string{"forth, from clients", "back, at the ingress half"}
	}
	return map[string]uint64{names[forth]: h.drops[forth].Load(), names[back]: h.drops[back].Load()}
}

func (h *half) say(format string, args ...any) {
	saying.Lock()
	defer saying.Unlock()
	fmt.Fprintf(h.log, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}

// saying is for the log, which halves may share.
var saying sync.Mutex
