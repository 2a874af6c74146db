package embedded

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/examples/internal/relay"
	"github.com/hoplag/hoplag/examples/ipfix"
	"github.com/hoplag/hoplag/hashing"
	"github.com/netsampler/goflow2/v2/decoders/netflow"
)

// A collector is goflow2's decoder, with what it received.
type collector struct {
	templates netflow.NetFlowTemplateSystem
	total     map[uint16]float64 // of numbers in records of all packets, by element
	flows     map[string]uint64  // packets received, by the flow's tuple or hash
	records   uint32
	err       error
}

// take takes a message, whose sequence number must be that of the records before.
func (c *collector) take(message []byte) {
	var v9 netflow.NFv9Packet
	var m netflow.IPFIXPacket
	if err := netflow.DecodeMessageVersion(bytes.NewBuffer(message), c.templates, &v9, &m); err != nil || m.SequenceNumber != c.records {
		c.err = fmt.Errorf("%w: number %d after %d records", err, m.SequenceNumber, c.records)
		return
	}
	for _, set := range m.FlowSets {
		if data, ok := set.(netflow.DataFlowSet); ok {
			for _, r := range data.Records {
				c.records++
				c.record(r)
			}
		}
	}
}

func (c *collector) record(r netflow.DataRecord) {
	values := map[uint16][]byte{}
	number := func(element uint16) uint64 {
		return binary.BigEndian.Uint64(append(make([]byte, 8-len(values[element])), values[element]...))
	}
	for _, f := range r.Values {
		values[f.Type] = f.Value.([]byte)
	}
	switch {
	case values[8] != nil, values[27] != nil: // IPv4, IPv6
		from, _ := netip.AddrFromSlice(append(values[8], values[27]...))
		c.flows[fmt.Sprintf("%d %v:%d", number(4), from, number(7))] += number(2)
	case values[148] != nil:
		c.flows["hash"] += number(2)
	default:
		for _, element := range []uint16{2, 133, 533} {
			c.total[element] += float64(number(element))
		}
		if mean := number(530); values[530] != nil && mean*number(2) > number(533)+number(2) {
			c.err = fmt.Errorf("a sum of %d is less than %d times %d", number(533), number(2), mean)
		}
	}
}

// TestIPFIX exports reports over UDP and TCP to a collector of goflow2.
func TestIPFIX(t *testing.T) {
	t.Parallel()
	config := testConfig
	config.Flows = 10
	collectors, exporters, done := exportTo(t)
	var known sync.Map
	tuple := func(f hashing.Flow) (hashing.Tuple, bool) {
		v, _ := known.Load(f)
		found, ok := v.(hashing.Tuple)
		return found, ok
	}
	out := []*ipfix.Exporter{ipfix.New(exporters[0], 7, tuple), ipfix.New(exporters[1], 7, tuple)}
	want, told := map[uint16]float64{}, map[hashing.Flow]bool{}
	m := newBench(t, config, config, func(r hoplag.Report) {
		want[2] += float64(r.Forth.Received)
		want[133] += float64(r.Forth.Lost)
		if r.Forth.Err == nil {
			want[533] += r.Forth.Mean / 1e3 * float64(r.Forth.Received)
		}
		for _, f := range r.Forth.Flows {
			told[f.Flow] = true
		}
		for _, e := range out {
			if err := e.Export(r); err != nil {
				t.Error(err)
			}
		}
	})
	m.begins(t)
	flows := [3]hashing.Flow{m.first.Flow([]byte("no tuple"))}
	for i, from := range []string{"10.0.0.1:5000", "[2001:db8::1]:6000"} {
		tuple := hashing.MakeTuple(17, netip.MustParseAddrPort(from), netip.MustParseAddrPort(from))
		flows[i+1] = tuple.Flow(m.first.Seed())
		known.Store(flows[i+1], tuple)
	}
	sent := 0
	send := func() {
		flow, id := flows[sent%3], fmt.Appendf(nil, "packet %d", sent)
		m.first.Passed(id, flow)
		if sent++; sent%10 != 0 || sent > 400 {
			time.AfterFunc(10*time.Millisecond, func() { m.second.Passed(id, flow) })
		}
		time.Sleep(2 * time.Millisecond)
	}
	for range 400 {
		send()
	}
	m.until(func() bool { send(); return len(told) == len(flows) }) // of flows that lose packets, few means are known
	m.until(func() bool { return m.forth.received+m.forth.lost >= uint64(sent)+m.forth.extra })
	time.Sleep(100 * time.Millisecond)
	m.mu.Lock()
	defer m.mu.Unlock()
	exporters[0].Close()
	exporters[1].Close()
	done()
	for i, c := range collectors {
		t.Logf("%s: %d records, packets %v, lost %v, sum %.0f µs, flows %v", []string{"UDP", "TCP"}[i],
			c.records, c.total[2], c.total[133], c.total[533], c.flows)
		if c.err != nil || c.total[2] != want[2] || c.total[133] != want[133] || c.total[2] < 300 {
			t.Errorf("packets %v, lost %v, %v, want %v and %v", c.total[2], c.total[133], c.err, want[2], want[133])
		}
		if sum := c.total[533]; sum < want[533]-100 || sum > want[533]+100 {
			t.Errorf("delays add up to %v µs, want %v", sum, want[533])
		}
		for _, flow := range []string{"17 10.0.0.1:5000", "17 2001:db8::1:6000", "hash"} {
			if c.flows[flow] == 0 {
				t.Errorf("there is nothing of flow %s among %v", flow, c.flows)
			}
		}
	}
}

// exportTo returns collectors over UDP and TCP, connections to them, and what
// waits until they have read all.
func exportTo(t *testing.T) (c [2]*collector, conns [2]net.Conn, done func()) {
	t.Helper()
	for i := range c {
		c[i] = &collector{templates: netflow.CreateTemplateSystem(), total: map[uint16]float64{}, flows: map[string]uint64{}}
	}
	datagrams, listener := relay.ListenPacket(t, "127.0.0.1:0"), relay.Listen(t)
	conns[0] = relay.Must(net.Dial("udp", datagrams.LocalAddr().String()))(t)
	conns[1] = relay.Must(net.Dial("tcp", listener.Addr().String()))(t)
	var reading sync.WaitGroup
	reading.Go(func() {
		for b := make([]byte, 2000); ; {
			n, _, err := datagrams.ReadFrom(b)
			if err != nil {
				return
			}
			c[0].take(b[:n])
		}
	})
	reading.Go(func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for head := make([]byte, 4); ; {
			if _, err := io.ReadFull(conn, head); err != nil {
				return
			}
			rest := make([]byte, max(4, binary.BigEndian.Uint16(head[2:]))-4)
			if _, err := io.ReadFull(conn, rest); err != nil {
				return
			}
			c[1].take(append(append([]byte(nil), head...), rest...))
		}
	})
	return c, conns, func() {
		time.Sleep(50 * time.Millisecond) // for what is in the socket
		datagrams.Close()
		reading.Wait()
	}
}
