package main

import (
	"net"
	"testing"
	"time"
)

// The half's own queue is not the network: a datagram counts as received when
// the kernel had it, however late the half comes to read it, and those that the
// queue had no room for are named.
func TestOwnQueue(t *testing.T) {
	sink, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	h, err := newHalf(false, "a key of sixteen bytes and more", "127.0.0.1:0", sink.LocalAddr().String(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	h.exact = newExact()
	conn := dialTo(t, "udp", h)
	const many = 20_000
	for i := range many {
		datagram := append(make([]byte, 1000), byte(i), byte(i>>8))
		h.exact.passed(forth, true, time.Now(), datagram) // as by the other half
		conn.Write(datagram)
	}
	time.Sleep(300 * time.Millisecond) // nobody reads
	b, full, read := new(buffer), uint32(0), 0
	deadline := func() { h.packets.SetReadDeadline(time.Now().Add(50 * time.Millisecond)) }
	for deadline(); h.relayOne(b, &full) == nil; deadline() {
		read++
	}
	conn.Write([]byte("one more, which tells of those before"))
	if deadline(); h.relayOne(b, &full) != nil {
		t.Fatal("nothing comes any more")
	}
	if dropped := h.drops[forth].Load(); read == many || dropped != uint64(many-read) {
		t.Errorf("of %d datagrams %d were read and %d named as dropped", many, read, dropped)
	}
	for second, m := range h.exact.seconds[forth] {
		if m.Mean() > 50e6 {
			t.Errorf("second %d: the mean is %.1f ms, and datagrams were there at once", second, m.Mean()/1e6)
		}
	}
	if len(h.exact.seconds[forth]) == 0 {
		t.Error("nothing was measured")
	}
	if n := h.dropped()["forth, at the egress half"]; n != uint64(many-read) {
		t.Errorf("%v", h.dropped())
	}
}
