package embedded

import (
	"crypto/ecdh"
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/examples/internal/relay"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun/netstack"
)

// A behind is the truth beneath a Bind.
type behind struct {
	conn.Bind
	out, in *truth
}

func (b behind) Send(datagrams [][]byte, to conn.Endpoint) error {
	for _, d := range datagrams {
		b.out.left(string(d))
	}
	return b.Bind.Send(datagrams, to)
}

func (b behind) Open(port uint16) ([]conn.ReceiveFunc, uint16, error) {
	receivers, port, err := b.Bind.Open(port)
	for i, receive := range receivers {
		receivers[i] = func(buffers [][]byte, sizes []int, from []conn.Endpoint) (int, error) {
			n, err := receive(buffers, sizes, from)
			for i := range n {
				b.in.arrived(string(buffers[i][:sizes[i]]))
			}
			return n, err
		}
	}
	return receivers, port, err
}

// TestWireGuard runs two devices with a network stack each, and a network that
// loses datagrams between them. Their clocks are 37 minutes apart.
func TestWireGuard(t *testing.T) {
	t.Parallel()
	a, b := testConfig, testConfig
	a.ClocksAgree, b.ClocksAgree = false, false
	a.Clock = ahead(37 * time.Minute)
	m, forth, back := newBench(t, a, b), newTruth(), newTruth()
	m.begins(t)

	keyA, keyB := relay.Must(ecdh.X25519().GenerateKey(rand.Reader))(t), relay.Must(ecdh.X25519().GenerateKey(rand.Reader))(t)
	netB, port := tunnel(t, "10.0.0.2", behind{conn.NewDefaultBind(), back, forth}, m.second.Back, m.second.Direction,
		fmt.Sprintf("private_key=%x\npublic_key=%x\nallowed_ip=10.0.0.1/32\n", keyB.Bytes(), keyA.PublicKey().Bytes()))
	near := relay.Datagrams(t, fmt.Sprint("127.0.0.1:", port), lossy(20*time.Millisecond, 20*time.Millisecond))
	netA, _ := tunnel(t, "10.0.0.1", behind{conn.NewDefaultBind(), forth, back}, m.first.Direction, m.first.Back,
		fmt.Sprintf("private_key=%x\npublic_key=%x\nallowed_ip=10.0.0.2/32\nendpoint=%v\n", keyA.Bytes(), keyB.PublicKey().Bytes(), near))

	server := relay.Must(netB.ListenUDP(&net.UDPAddr{Port: 7}))(t)
	defer server.Close()
	go func() { // an echo service
		buffer := make([]byte, 1000)
		for {
			n, from, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			server.WriteTo(buffer[:n], from)
		}
	}()
	c := relay.Must(netA.DialUDP(nil, &net.UDPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 7}))(t)
	defer c.Close()
	for range 400 {
		c.Write(make([]byte, 500))
		time.Sleep(3 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond)
	m.agrees(t, "forth", &m.forth, forth)
	m.agrees(t, "back", &m.back, back)
}

// ahead is a clock that is fast.
type ahead time.Duration

func (a ahead) Now() time.Time { return time.Now().Add(time.Duration(a)) }

// tunnel returns the network within a device, and its port.
func tunnel(t *testing.T, address string, bind conn.Bind, out, in *hoplag.Direction, config string) (*netstack.Net, int) {
	t.Helper()
	port := &opened{Bind: Bind{Bind: bind, Peer: func(conn.Endpoint) (o, i *hoplag.Direction) { return out, in }}}
	tun, network, err := netstack.CreateNetTUN([]netip.Addr{netip.MustParseAddr(address)}, nil, 1420)
	relay.Check(t, err)
	d := device.NewDevice(tun, port, device.NewLogger(device.LogLevelSilent, ""))
	t.Cleanup(d.Close)
	relay.Check(t, d.IpcSet(config))
	relay.Check(t, d.Up())
	return network, int(port.port)
}

// opened remembers the port.
type opened struct {
	conn.Bind
	port uint16
}

func (o *opened) Open(port uint16) (f []conn.ReceiveFunc, actual uint16, err error) {
	f, o.port, err = o.Bind.Open(port)
	return f, o.port, err
}
