package kernel

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// cut splits a bundle as the kernel's segmentation offload does (inet_gso_segment, tcp_gso_segment), literally.
// at is where the IP header begins, transport where TCP or UDP does. Segments of TCP of a sender that does not
// number them, which GRO merges, all have 0 again (SKB_GSO_TCP_FIXEDID).
func cut(bundle []byte, at, transport, size int) (segments [][]byte) {
	be := binary.BigEndian
	ipv4 := bundle[at]>>4 == 4
	proto := bundle[at+6]
	if ipv4 {
		proto = bundle[at+9]
	}
	header := transport + 8
	if proto == protoTCP {
		header = transport + int(bundle[transport+12]>>4)*4
	}
	payload := bundle[header:]
	for i := 0; len(payload) > 0; i++ {
		n := min(size, len(payload))
		segment := append(bytes.Clone(bundle[:header]), payload[:n]...)
		payload = payload[n:]
		if ipv4 {
			be.PutUint16(segment[at+2:], uint16(len(segment)-at))
			if proto != protoTCP || be.Uint32(segment[at+4:]) != 0x4000 { // 0, and "do not fragment"
				be.PutUint16(segment[at+4:], be.Uint16(segment[at+4:])+uint16(i))
			}
		} else {
			be.PutUint16(segment[at+4:], uint16(len(segment)-at-40))
		}
		if proto == protoTCP {
			be.PutUint32(segment[transport+4:], be.Uint32(segment[transport+4:])+uint32(i*size))
			if len(payload) > 0 {
				segment[transport+13] &^= 0x09 // FIN, PSH
			}
			if i > 0 {
				segment[transport+13] &^= 0x80 // CWR
			}
			be.PutUint16(segment[transport+16:], 0xbeef) // a checksum of its own
		} else {
			be.PutUint16(segment[transport+4:], uint16(len(segment)-transport))
			be.PutUint16(segment[transport+6:], 0xbeef)
		}
		segments = append(segments, segment)
	}
	return segments
}

// bundle makes a bundle with random headers.
func bundle(random *rand.Rand) (frame []byte, at, transport int) {
	be := binary.BigEndian
	frame, at = make([]byte, 14), 14
	tcp := random.IntN(2) == 0
	proto := byte(protoUDP)
	var head []byte
	if tcp {
		proto = protoTCP
		head = make([]byte, 20+4*random.IntN(11))
		for i := range head {
			head[i] = byte(random.Uint32())
		}
		head[12] = byte(len(head)/4) << 4
	} else {
		head = make([]byte, 8)
		be.PutUint64(head, random.Uint64()|1<<47) // to no port of a tunnel
	}
	payload := make([]byte, 1+random.IntN(2500))
	for i := range payload {
		payload[i] = byte(random.Uint32())
	}
	if !tcp {
		be.PutUint16(head[4:], uint16(len(head)+len(payload)))
	}
	if random.IntN(2) == 0 {
		frame[12], frame[13] = 0x08, 0
		ip := make([]byte, 20)
		ip[0], ip[9] = 0x45, proto
		be.PutUint16(ip[2:], uint16(20+len(head)+len(payload)))
		be.PutUint32(ip[4:], random.Uint32()&0xffff4000)
		switch random.IntN(8) { // not numbered; numbers and sequence numbers that begin anew
		case 0:
			be.PutUint16(ip[4:], 0)
		case 1:
			be.PutUint16(ip[4:], 0xffff)
			if tcp {
				be.PutUint32(head[4:], 0xffffff00)
			}
		}
		be.PutUint64(ip[12:], random.Uint64())
		frame = append(frame, ip...)
	} else {
		frame[12], frame[13] = 0x86, 0xdd
		ip := make([]byte, 40)
		ip[0], ip[6] = 0x60, proto
		be.PutUint16(ip[4:], uint16(len(head)+len(payload)))
		be.PutUint64(ip[16:], random.Uint64())
		be.PutUint64(ip[32:], random.Uint64())
		frame = append(frame, ip...)
	}
	transport = len(frame)
	return append(append(frame, head...), payload...), at, transport
}

// A bundle counts as the segments that it stands for.
func TestSegments(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(15, 3))
	p := newPoint(t, testConfig)
	w := newTwin(t, p, Egress, hashing.LinkEthernet)
	total := 0
	for i := range 5000 {
		frame, at, transport := bundle(random)
		size := 1 + random.IntN(1500)
		if len(frame)/size > 200 {
			size += 100
		}
		segments := cut(frame, at, transport, size)
		total += len(segments)
		w.now += 1e6
		p.setTime(w.now)
		w.run.setBundle(size, len(segments))
		if _, err := w.run.run(frame, 1); err != nil {
			t.Fatal(err)
		}
		for _, s := range segments {
			w.expect(s)
		}
		if i%500 == 499 && w.compare(t) {
			t.Fatalf("bundles %d to %d differ from their segments", i-499, i)
		}
	}
	t.Logf("%d segments in 5000 bundles", total)
}

// What cannot be taken apart is refused and reported.
func TestBundlesRefused(t *testing.T) {
	t.Parallel()
	p := newPoint(t, testConfig)
	w := newTwin(t, p, Egress, hashing.LinkEthernet)
	for name, c := range map[string]struct {
		proto byte
		size  int
		port  uint16
	}{
		"SCTP":     {protoSCTP, 100, 80},
		"GRE":      {47, 100, 0},
		"too many": {protoUDP, 1, 80},
		"VXLAN":    {protoUDP, 100, 4789},
	} {
		t.Run(name, func(t *testing.T) {
			frame := make([]byte, 14+20+1000)
			frame[12], frame[14], frame[14+9], frame[34+12] = 8, 0x45, c.proto, 0x50
			binary.BigEndian.PutUint16(frame[16:], 1020)
			binary.BigEndian.PutUint16(frame[34+2:], c.port)
			w.run.setBundle(c.size, 2)
			if _, err := w.run.run(frame, 1); err != nil {
				t.Fatal(err)
			}
			interval, err := p.Rotate()
			if !isOffload(err) || interval == nil || interval.Counters.Bundles != 1 {
				t.Errorf("got %+v, error %v, want one bundle and ErrOffload", interval, err)
			}
			p.Release(interval)
		})
	}
}
