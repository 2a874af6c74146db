//go:build linux

package main

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/examples/internal/relay"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/programs"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/kernel"
)

// cable connects two namespaces, or skips the test.
var cable = []string{
	"ip link add eth0 netns {0} type veth peer name eth0 netns {1}",
	"ip -n {0} addr add 10.96.0.1/24 dev eth0", "ip -n {1} addr add 10.96.0.2/24 dev eth0",
	"ip -n {0} link set eth0 up", "ip -n {1} link set eth0 up",
}

// Where all packets come to the second place first, there is no delay.
func TestWrongWayRound(t *testing.T) {
	for late, say := range []string{"wrong way round", ""} { // which place is later
		m := &inside{all: relay.Must(lda.NewAccumulator(cells))(t), cuts: settling}
		var seen [2]*lda.Aggregator
		for i := range seen {
			seen[i] = relay.Must(lda.New(cells))(t)
			for k := range int64(1000) {
				seen[i].Update(hashing.Word(1, uint64(k)), k*900+int64(1-i^late)*3000)
			}
		}
		for end := int64(1e6); end < 2e7; end += 1e6 {
			relay.Check(t, m.all.Add(end-1e6, end, seen[0], seen[1]))
			seen[0].Reset()
			seen[1].Reset()
		}
		m.end()
		if err := m.row().Report.Forth.Err; (err != nil) != (say != "") || err != nil && !strings.Contains(err.Error(), say) {
			t.Errorf("place %d is late: error %v, want %q", late, err, say)
		}
	}
}

// Points in the kernel begin with one rotation, though one was attached before the other while packets passed;
// and they continue after an interface goes away and returns.
func TestInsideBegins(t *testing.T) {
	t.Parallel()
	needsLab(t)
	lab, err := programs.NewLab(2, cable...)
	if err != nil {
		t.Skip(err)
	}
	defer lab.Remove()
	var conn net.PacketConn
	relay.Check(t, programs.In(lab.Names[0], func() (err error) {
		conn, err = net.ListenPacket("udp4", ":0")
		return err
	}))
	defer conn.Close()
	go func() { // until the socket is closed
		for !errors.Is(err, net.ErrClosed) {
			_, err = conn.WriteTo(make([]byte, 100), &net.UDPAddr{IP: net.IPv4(10, 96, 0, 2), Port: 9})
			time.Sleep(100 * time.Microsecond)
		}
	}()
	m := &inside{places: [2]place{
		{namespace: lab.Names[0], device: "eth0", out: true}, {namespace: lab.Names[1], device: "eth0"},
	}}
	defer m.close()
	if err := m.open("a secret of 26 characters."); errors.Is(err, kernel.ErrPrivilege) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	counts := func() {
		t.Helper()
		var d hoplag.Traffic
		for range 50 { // until the neighbour is known, and few are on their way
			time.Sleep(200 * time.Millisecond)
			relay.Check(t, errors.Join(m.compare()...))
			m.end()
			d = m.row().Report.Forth
			if off := int64(d.Sent) - int64(d.Received); d.Sent >= 20 && off*off <= int64(d.Sent*d.Sent/9) {
				return
			}
		}
		t.Errorf("sent %d, received %d, want as many within a third", d.Sent, d.Received)
	}
	counts()
	relay.Check(t, programs.Command("ip -n "+lab.Names[0]+" link del eth0"))
	if err := errors.Join(m.compare()...); !errors.Is(err, kernel.ErrDetached) {
		t.Errorf("error %v, want ErrDetached", err)
	}
	relay.Check(t, lab.Run(cable...))
	m.compare()
	m.end()
	m.row()
	counts()
}
