package main

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/hashing"
)

// The two ways between the halves.
const (
	forth = iota
	back
)

// A half is one of the two ends of the proxy. It takes datagrams and connections at one address and
// forwards them to another, and reports to its point what passes between the halves.
type half struct {
	point   *hoplag.Point
	ingress bool
	to      string
	watch   func(way int, at time.Time, id []byte) // called beside the point
	log     io.Writer

	packets *net.UDPConn
	accepts net.Listener
	drops   [2]atomic.Uint64 // datagrams that found no room in our own sockets, or none to take, by way
	idle    time.Duration    // after which a silent peer is forgotten
	stall   time.Duration    // after which a connection breaks whose client or server reads nothing

	mu      sync.Mutex
	peers   map[netip.AddrPort]*peer
	conns   map[*stream]bool
	streams sync.WaitGroup // and what accepts them
}

// newHalf starts listening for datagrams and connections at the same port.
func newHalf(role, key, listen, to string) (*half, error) {
	point, err := hoplag.NewPoint(hoplag.Config{Key: hoplag.NewKey(key), Name: role, Flows: 1024})
	if err != nil {
		return nil, err
	}
	h := &half{
		point: point, ingress: role == "ingress", to: to, log: io.Discard, idle: time.Minute, stall: 10 * time.Minute,
		watch: func(int, time.Time, []byte) {}, peers: map[netip.AddrPort]*peer{}, conns: map[*stream]bool{},
	}
	for tries := 1; ; tries++ {
		if h.accepts, err = net.Listen("tcp", listen); err != nil {
			return nil, err
		}
		if h.packets, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(h.accepts.Addr().(*net.TCPAddr).AddrPort())); err == nil {
			break
		}
		h.accepts.Close()
		if tries == 10 || !strings.HasSuffix(listen, ":0") { // else datagrams may find another free port
			return nil, err
		}
	}
	tell(h.packets)
	return h, nil
}

// start starts forwarding, once everything is set.
func (h *half) start() {
	go h.each(h.packets, forth, h.relay)
	h.streams.Go(h.accept) // counts as one, so that none is added while somebody waits for none
}

// drain accepts no more connections, and waits for the present ones to end, but not for long. It
// reports whether they have ended.
func (h *half) drain(most time.Duration) bool {
	h.accepts.Close()
	ended := make(chan bool, 2)
	go func() {
		h.streams.Wait()
		ended <- true
	}()
	time.AfterFunc(most, func() { ended <- false })
	return <-ended
}

// close stops forwarding and closes everything that is open.
func (h *half) close() {
	h.packets.Close()
	h.accepts.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.peers {
		p.conn.Close()
	}
	for s := range h.conns {
		s.inner.Close()
		s.outer.Close()
	}
	h.point.Close()
}

// leaves reports whether what goes this way leaves here for the other half, or comes from it.
func (h *half) leaves(way int) bool { return h.ingress == (way == forth) }

// passed reports something that passes between the halves.
func (h *half) passed(way int, flow hashing.Flow, at time.Time, id []byte) {
	d := [...]*hoplag.Direction{h.point.Direction, h.point.Back}[way]
	d.Record(flow, at, d.Packet(id))
	h.watch(way, at, id)
}

func (h *half) say(format string, args ...any) {
	fmt.Fprintf(h.log, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}
