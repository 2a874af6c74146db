package rli

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// packet is a departure of a busy link.
type packet struct {
	flow hashing.Flow
	time int64
	sent int64 // of the reference behind it; 0 if there is none
}

const benchBytes, benchRate = 500, 10e9

// referenceTime is how long the link takes to send a reference, in ns.
var referenceTime = int64(float64(DefaultConfig.ReferenceBytes) * 8e9 / benchRate)

// departures are those of 2^21 packets of scattered flows at 80 % utilisation,
// with a reference behind every hundredth.
func departures(flows int) []packet {
	random := rand.New(rand.NewPCG(1, 2))
	names := make([]hashing.Flow, flows)
	for i := range names {
		names[i] = hashing.Flow(random.Uint64())
	}
	packets := make([]packet, 1<<21)
	const size = benchBytes * 8e9 / benchRate
	arrival, free := int64(1), int64(0)
	for i := range packets {
		arrival += int64(random.ExpFloat64() * size / 0.8)
		free = max(free, arrival) + size
		packets[i] = packet{flow: names[random.IntN(flows)], time: free}
		if i%100 == 0 {
			packets[i].sent = arrival
			free += referenceTime
		}
	}
	return packets
}

// BenchmarkUpdate compares a packet of the receiver, its share of references
// included, with what three counters in a map cost. The working set is 64
// bytes a flow for the receiver, and about 40 for the map.
func BenchmarkUpdate(b *testing.B) {
	for _, flows := range []int{1 << 16, 1 << 20} {
		packets := departures(flows)
		for _, method := range []Method{BusyAware, Linear, Left} {
			b.Run(fmt.Sprintf("%v/flows=%d", method, flows), func(b *testing.B) {
				c := DefaultConfig
				c.Rate, c.Method, c.Flows = benchRate, method, flows
				if method == Left {
					c.Buffer = 0
				}
				r, err := NewReceiver(c)
				if err != nil {
					b.Fatal(err)
				}
				receive(r, packets, len(packets), 0)
				b.ResetTimer()
				receive(r, packets, b.N, 1)
				b.ReportMetric(float64(b.N)/1e6/b.Elapsed().Seconds(), "Mpkt/s")
				if method == BusyAware && !r.Trusted() {
					b.Fatalf("the link is not trusted: %+v", r.Counts())
				}
			})
		}
		b.Run(fmt.Sprintf("map/flows=%d", flows), func(b *testing.B) {
			m := make(map[hashing.Flow]counters, flows)
			count(m, packets, len(packets))
			b.ResetTimer()
			count(m, packets, b.N)
			b.ReportMetric(float64(b.N)/1e6/b.Elapsed().Seconds(), "Mpkt/s")
		})
	}
}

// receive gives r the first n of the packets, over and over, beginning with
// round rounds already past.
func receive(r *Receiver, packets []packet, n, round int) {
	period := packets[len(packets)-1].time + 10000
	base := int64(round) * period
	number := uint64(round) << 32
	for n > 0 {
		for i := range packets[:min(n, len(packets))] {
			p := &packets[i]
			r.Update(p.flow, benchBytes, p.time+base)
			if p.sent != 0 {
				r.Reference(ReferencePacket{Sequence: number, Sent: p.sent + base, Behind: benchBytes}, p.time+base+referenceTime)
				number++
			}
		}
		n -= len(packets)
		base += period
	}
}

// counters are the three of a flow.
type counters struct {
	count   uint64
	sum     int64
	squares float64
}

// count is the least that one would do without this package.
func count(m map[hashing.Flow]counters, packets []packet, n int) {
	for n > 0 {
		for i := range packets[:min(n, len(packets))] {
			p := &packets[i]
			delay := p.time & 0xffff
			c := m[p.flow]
			c.count++
			c.sum += delay
			c.squares += float64(delay) * float64(delay)
			m[p.flow] = c
		}
		n -= len(packets)
	}
}
