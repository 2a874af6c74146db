package kernel

import (
	"encoding/binary"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

// withID returns IPv4 or IPv6 and what it carries, which no other number gives.
func withID(version int, proto byte, number int, payload []byte) []byte {
	be := binary.BigEndian
	if version == 4 {
		b := make([]byte, 20, 20+len(payload))
		b[0], b[8], b[9] = 0x45, 64, proto
		be.PutUint16(b[2:], uint16(20+len(payload)))
		be.PutUint16(b[4:], uint16(number))
		copy(b[12:], []byte{10, 99, 0, 1, 10, 99, 0, 2})
		return append(b, payload...)
	}
	b := make([]byte, 40, 40+len(payload))
	b[0], b[6], b[7], b[8], b[23], b[24], b[39] = 0x60, proto, 64, 0xfd, 1, 0xfd, 2
	be.PutUint16(b[4:], uint16(len(payload)))
	return append(b, payload...)
}

// datagram returns UDP to a port, with a number.
func datagram(port uint16, number int, more []byte) []byte {
	be := binary.BigEndian
	b := make([]byte, 40, 40+len(more))
	be.PutUint16(b[2:], port)
	be.PutUint64(b[32:], uint64(number)*0x9e3779b97f4a7c15)
	b = append(b, more...)
	be.PutUint16(b[4:], uint16(len(b)))
	return b
}

// encapsulations are what frames carry between MAC addresses and a datagram.
var encapsulations = map[string]func(number int) []byte{
	"plain": func(n int) []byte { return append([]byte{8, 0}, withID(4, protoUDP, n, datagram(9, n, nil))...) },
	"VLAN": func(n int) []byte {
		return append([]byte{0x81, 0, 0, 5, 8, 0}, withID(4, protoUDP, n, datagram(9, n, nil))...)
	},
	"QinQ": func(n int) []byte {
		return append([]byte{0x88, 0xa8, 0, 7, 0x81, 0, 0, 5, 8, 0}, withID(4, protoUDP, n, datagram(9, n, nil))...)
	},
	"MPLS": func(n int) []byte {
		return append([]byte{0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64}, withID(4, protoUDP, n, datagram(9, n, nil))...)
	},
	"GRE": func(n int) []byte {
		inside := withID(4, protoUDP, n, datagram(9, n, nil))
		return append([]byte{8, 0}, withID(4, 47, n, append([]byte{0, 0, 8, 0}, inside...))...)
	},
	"VXLAN": func(n int) []byte {
		inside := append(make([]byte, 12), 8, 0)
		inside = append(inside, withID(4, protoUDP, n, datagram(9, n, nil))...)
		return append([]byte{8, 0}, withID(4, protoUDP, n, datagram(4789, n, inside))...)
	},
	"extension headers": func(n int) []byte {
		// Hop by hop, destination options, an unfragmented fragment, then UDP.
		more := append([]byte{protoDestination, 0, 1, 4, 0, 0, 0, 0, protoFragment, 0, 1, 4, 0, 0, 0, 0, protoUDP, 0, 0, 0},
			binary.BigEndian.AppendUint32(nil, uint32(n))...)
		return append([]byte{0x86, 0xdd}, withID(6, protoHopByHop, n, append(more, datagram(9, n, nil)...))...)
	},
}

// Tags, tunnels and extension headers pass both ends as the same packets,
// whether the kernel takes a tag off before the point, which it does at the
// ingress of tc, or not.
func TestEncapsulations(t *testing.T) {
	t.Parallel()
	const packets = 100
	w := newWire(t, "")
	config := DefaultConfig
	config.Clock = Boot
	points := map[Hook]*Point{Egress: newPoint(t, config), Ingress: newPoint(t, config), XDP: newPoint(t, config)}
	for hook, p := range points {
		end := w.b
		if hook == Egress {
			end = w.a
		}
		w.attach(t, p, end, hook)
	}
	for name, encapsulate := range encapsulations {
		t.Run(name, func(t *testing.T) {
			want, err := lda.New(points[XDP].Config().LDA)
			if err != nil {
				t.Fatal(err)
			}
			var frames [][]byte
			for i := range packets {
				frame := append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}, encapsulate(i)...)
				frames = append(frames, frame)
				var f hashing.Frame
				if err := f.ParseWith(hashing.LinkEthernet, frame, &hashing.Tunnels{}); err != nil {
					t.Fatal(err)
				}
				want.Update(Digest(config.Seed, &f), 0)
			}
			if err := in(w.a, func() error { return sendFrames("eth0", frames) }); err != nil {
				t.Fatal(err)
			}
			for hook, p := range points {
				if r, counters := w.meet(t, p, want, packets); r.Received != packets || r.N != packets {
					t.Errorf("%v: of %d packets %d were counted, %d of them as the packets that they are: %+v",
						hook, packets, r.Received, r.N, counters)
				}
			}
		})
	}
}

// meet waits until a point has counted so many packets, and compares them with
// those that it should have.
func (w *wire) meet(t *testing.T, p *Point, want *lda.Aggregator, packets uint64) (r lda.Result, c Counters) {
	t.Helper()
	all, _ := lda.New(p.Config().LDA)
	for range 100 {
		i, err := p.Rotate()
		if err != nil {
			t.Fatal(err)
		}
		c = i.Counters
		if err := errors.Join(all.Merge(i.Aggregator), p.Release(i)); err != nil {
			t.Fatal(err)
		}
		if r, _ = lda.Estimate(want, all); r.Received >= packets {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return r, c
}

// sendFrames sends frames through an interface.
func sendFrames(device string, frames [][]byte) error {
	nic, err := net.InterfaceByName(device)
	if err != nil {
		return err
	}
	socket, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(socket)
	for _, f := range frames {
		if err := syscall.Sendto(socket, f, 0, &syscall.SockaddrLinklayer{Ifindex: nic.Index}); err != nil {
			return err
		}
	}
	return nil
}

// TCP through a tunnel device, with its offloads: points at the tunnel's ends
// count exactly; points below it, which see bundles of the tunnel, say so.
func TestTunnelOffloads(t *testing.T) {
	t.Parallel()
	w := newWire(t, "")
	for _, end := range []struct{ namespace, own, other string }{{w.a, "1", "2"}, {w.b, "2", "1"}} {
		ip(t, "-n "+end.namespace+" link add vx0 type vxlan id 7 local 10.99.0."+end.own+" remote 10.99.0."+end.other+
			" dev eth0 dstport 4789")
		ip(t, "-n "+end.namespace+" addr add 10.98.0."+end.own+"/24 dev vx0")
		ip(t, "-n "+end.namespace+" link set vx0 up")
	}
	config := DefaultConfig
	config.Clock = Boot
	below := newPoint(t, config)
	w.attach(t, below, w.a, Egress)
	w.device, w.target = "vx0", "10.98.0.2"
	p := newPair(t, w, config, Ingress)
	if err := p.rotateDuring(func() error { return w.sendTCP(5e6) }); err != nil {
		t.Fatal(err)
	}
	if p.sent != p.received || p.received != w.socketSegments || p.upSegments == 0 {
		t.Errorf("sent %d segments (%d in bundles) and received %d, the socket says %d", p.sent, p.upSegments, p.received, w.socketSegments)
	}
	if err := p.checkMeans(t); err != nil {
		t.Error(err)
	}
	if i, err := below.Rotate(); !isOffload(err) {
		t.Errorf("below the tunnel: %+v, error %v, want ErrOffload", i, err)
	}
}
