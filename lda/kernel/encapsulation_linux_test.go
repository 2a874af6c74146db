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

// withID returns IPv4 and what it carries, which no other number gives.
func withID(proto byte, number int, payload []byte) []byte {
	be := binary.BigEndian
	b := make([]byte, 20, 20+len(payload))
	b[0], b[8], b[9] = 0x45, 64, proto
	be.PutUint16(b[2:], uint16(20+len(payload)))
	be.PutUint16(b[4:], uint16(number))
	copy(b[12:], []byte{10, 99, 0, 1, 10, 99, 0, 2})
	return append(b, payload...)
}

// datagram returns UDP to a port, with a number, in IPv4.
func datagram(port uint16, number int, more []byte) []byte {
	be := binary.BigEndian
	b := make([]byte, 40, 40+len(more))
	be.PutUint16(b[2:], port)
	be.PutUint64(b[32:], uint64(number)*0x9e3779b97f4a7c15)
	b = append(b, more...)
	be.PutUint16(b[4:], uint16(len(b)))
	return withID(protoUDP, number, b)
}

// encapsulations are what frames carry between MAC addresses and a datagram.
var encapsulations = map[string]func(number int) []byte{
	"VLAN": func(n int) []byte { return append([]byte{0x81, 0, 0, 5, 8, 0}, datagram(9, n, nil)...) },
	"QinQ": func(n int) []byte {
		return append([]byte{0x88, 0xa8, 0, 7, 0x81, 0, 0, 5, 8, 0}, datagram(9, n, nil)...)
	},
	"MPLS": func(n int) []byte {
		return append([]byte{0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64}, datagram(9, n, nil)...)
	},
	"GRE": func(n int) []byte {
		return append([]byte{8, 0}, withID(47, n, append([]byte{0, 0, 8, 0}, datagram(9, n, nil)...))...)
	},
	"VXLAN": func(n int) []byte {
		inside := append(make([]byte, 12), 8, 0)
		return append([]byte{8, 0}, datagram(4789, n, append(inside, datagram(9, n, nil)...))...)
	},
}

// Tags and tunnels pass both ends as the same packets, whether the kernel takes a tag off before the point,
// which it does at the ingress of tc, or not.
func TestEncapsulations(t *testing.T) {
	t.Parallel()
	const packets = 100
	w := newWire(t, "")
	config := bootConfig()
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

// meet waits until a point has counted a given number of packets, and compares them with those that it should have.
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
