package trace

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"testing"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
)

// datagram returns an IPv4 UDP datagram of no payload.
func datagram(id byte) []byte {
	return []byte{
		0x45, 0, 0, 28, 0, id, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
		0, 53, 4, 0, 0, 8, 0, 0,
	}
}

func recorded(t *testing.T) []byte {
	var file bytes.Buffer
	w := must(NewWriter(&file, hashing.LinkRaw, 96))(t)
	for i, rec := range []Record{
		{Time: 1000, Length: 1400, Frame: datagram(1)},
		{Time: 1500, Length: 5, Frame: []byte{1, 2, 3, 4, 5}}, // not IP
		{Time: 1400, Length: 28, Frame: datagram(2)},
		{Time: 1300, Length: 28, Frame: datagram(3)}, // out of order
	} {
		rec.Link = hashing.LinkRaw
		if err := w.Write(rec); err != nil {
			t.Fatal(i, err)
		}
	}
	return file.Bytes()
}

func TestRecorded(t *testing.T) {
	s := NewRecorded(must(NewReader(bytes.NewReader(recorded(t))))(t), 7)
	tuple := hashing.MakeTuple(17, netip.MustParseAddrPort("10.0.0.1:53"), netip.MustParseAddrPort("10.0.0.2:1024"))
	seen := map[hashing.Packet]bool{}
	var p queue.Packet
	for i, want := range []queue.Packet{
		{Time: 1000, Bytes: 1400}, {Time: 1400, Bytes: 28}, {Time: 1400, Bytes: 28},
	} {
		if !s.Next(&p) || p.Time != want.Time || p.Sent != want.Time || p.Bytes != want.Bytes ||
			p.Seq != uint64(i) || p.Flow != tuple.Flow(7) || seen[p.ID] {
			t.Errorf("packet %d: %+v, want %+v of flow %x", i, p, want, tuple.Flow(7))
		}
		seen[p.ID] = true
	}
	for range 2 {
		if s.Next(&p) || s.Err() != nil || s.Skipped() != 1 {
			t.Errorf("at the end: %v, %d skipped", s.Err(), s.Skipped())
		}
	}
}

func TestRecordedBreaksOff(t *testing.T) {
	whole := recorded(t)
	s := NewRecorded(must(NewReader(bytes.NewReader(whole[:len(whole)-1])))(t), 7)
	var p queue.Packet
	n := 0
	for s.Next(&p) {
		n++
	}
	if n != 2 || !errors.Is(s.Err(), io.ErrUnexpectedEOF) {
		t.Errorf("%d packets, then %v", n, s.Err())
	}
}

// Real arrivals replayed through the simulator.
func TestRecordedCapture(t *testing.T) {
	heavy(t)
	s := NewRecorded(open(t, "twopoint", "tbf400m_512k", "ingress.pcap.gz"), 1)
	link := must(queue.NewLink(queue.LinkConfig{Rate: 400e6, Queue: queue.QueueConfig{Bytes: 512 << 10}}))(t)
	var p queue.Packet
	n, flows, last := 0, map[hashing.Flow]bool{}, int64(0)
	for ; s.Next(&p); n++ {
		egress, fate := link.Send(p.Time, int(p.Bytes))
		if fate == queue.Refused || egress < last && fate == queue.Passed {
			t.Fatalf("packet %d at %d: %v at %d, one before at %d", n, p.Time, fate, egress, last)
		}
		if fate == queue.Passed {
			last = egress
		}
		flows[p.Flow] = true
	}
	if s.Err() != nil || n+int(s.Skipped()) != 213228 || len(flows) < 5000 {
		t.Errorf("%d packets of %d flows, %d skipped, then %v; want 213228 in all", n, len(flows), s.Skipped(), s.Err())
	}
	t.Logf("%d packets, %d skipped, %d flows, %+v", n, s.Skipped(), len(flows), link.Counts())
}
