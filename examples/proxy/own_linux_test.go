package main

import (
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/hoplag/hoplag/examples/internal/relay"
)

// The half's own queue is not the network: a datagram counts as received when the kernel had it, however late the half comes
// to read it, and those that the queue had no room for are named.
func TestOwnQueue(t *testing.T) {
	sink := relay.ListenPacket(t, "127.0.0.1:0")
	h := relay.Must(newHalf("egress", testKey, "127.0.0.1:0", sink.LocalAddr().String()))(t)
	defer h.close()
	truth := newTruth()
	truth.watch(h)
	conn := dialTo(t, "udp", h)
	from := &source{UDPConn: h.packets, way: forth}
	for began := time.Now(); ; { // the kernel soon begins to stamp what comes
		conn.Write([]byte("first"))
		sent := time.Now()
		time.Sleep(20 * time.Millisecond)
		var came time.Time
		err := h.next(from, func(_ []byte, _ netip.AddrPort, at time.Time) { came = at })
		if err != nil || time.Since(began) > 10*time.Second {
			t.Fatalf("no stamps: %v", err)
		} else if came.Sub(sent) < 5*time.Millisecond {
			break
		}
	}
	const many = 20_000
	for i := range many {
		datagram := append(make([]byte, 1000), byte(i), byte(i>>8))
		truth.under[forth][string(datagram)] = time.Now() // as by the other half
		conn.Write(datagram)
	}
	time.Sleep(300 * time.Millisecond) // nobody reads
	read := 0
	deadline := func() { h.packets.SetReadDeadline(time.Now().Add(50 * time.Millisecond)) }
	for deadline(); h.next(from, h.relay) == nil; deadline() {
		read++
	}
	conn.Write([]byte("one more, which tells of those before"))
	if deadline(); h.next(from, h.relay) != nil {
		t.Fatal("nothing comes any more")
	}
	if dropped := h.drops[forth].Load(); read == many || dropped != uint64(many-read) {
		t.Errorf("of %d datagrams %d were read and %d named as dropped", many, read, dropped)
	}
	if mean := truth.mean(forth, time.Now().Add(-time.Hour), time.Hour); mean > 100e6 || mean == 0 {
		t.Errorf("the mean is %.1f ms, and datagrams were there at once", mean/1e6)
	}
}

// Ten thousand waiting connections take each half less than 100 MB: 3,000 show how much more each of them takes.
func TestTenThousandConnections(t *testing.T) {
	files := syscall.Rlimit{}
	if testing.Short() || syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) != nil || files.Cur < 7000 {
		t.Skip("takes seconds, and 7,000 open files")
	}
	c := proxyChain(t, once(t))
	none, some := c.hold(t, 4), c.hold(t, 3000)
	most := none + (some-none)*10_000/3000
	if t.Logf("%.1f MB are resident, %.1f with 3,000 connections, and so %.1f with 10,000", none, some, most); most > 100 {
		t.Error("that is more than 10 KB each")
	}
}
