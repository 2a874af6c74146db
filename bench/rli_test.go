package main

import (
	"fmt"
	"testing"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/rli"
)

// link is the departures of bursts of seven packets of 1,500 bytes from a link
// of 10 Gb/s that they fill to 80 per cent, and after every hundredth packet a
// reference.
type link struct {
	packets, free, burst int64
	sequence             uint64
}

const (
	linkRate    = 10_000_000_000
	packetBytes = 1500
	packetTime  = packetBytes * 8e9 / linkRate
	inBurst     = 7 // so that a reference follows the first of them, too
)

// next is when the next packet departs.
func (l *link) next() int64 {
	if l.packets%inBurst == 0 {
		l.burst += inBurst * packetTime * 5 / 4
		l.free = max(l.free, l.burst)
	}
	l.packets++
	l.free += packetTime
	return l.free
}

// reference is the reference that departs behind the latest packet, and when.
func (l *link) reference(bytes int) (rli.ReferencePacket, int64) {
	l.free += int64(bytes) * 8e9 / linkRate
	l.sequence++
	return rli.ReferencePacket{Sequence: l.sequence, Sent: l.burst, Behind: packetBytes}, l.free
}

// BenchmarkRLIUpdate: packets of 65,536 flows and of 1,048,576, 64 bytes of
// record each, in random order, references included. The floor here is a Go map
// from flow to the same three counters (packets, sum and sum of squares of
// delays), which is given the delays: x-floor is in updates of that map, and
// half of one is the bar. With the counters behind pointers the map is quicker
// than with them in it.
func BenchmarkRLIUpdate(b *testing.B) {
	linear := rli.DefaultConfig
	busy := rli.DefaultConfig
	busy.Method, busy.Rate = rli.BusyAware, linkRate
	left := rli.DefaultConfig
	left.Method, left.Buffer = rli.Left, 0
	histograms := busy
	histograms.Buckets, histograms.Floor = 64, 1000
	for _, count := range []int{1 << 16, 1 << 20} {
		some := flowStream()[:count]
		flows := make([]hashing.Flow, streamLength)
		for i, p := range packetStream() {
			flows[i] = some[uint64(p)%uint64(count)]
		}
		values, pointers := mapOfCounters(flows), mapOfPointers(flows)
		values(0, streamLength) // so that no map grows while it is measured
		pointers(0, streamLength)
		for _, c := range []struct {
			name   string
			config rli.Config
			bar    float64
		}{
			{"linear", linear, 0.5},
			{"busyaware", busy, 0.5},
			{"left", left, 0.5},
			{"busyaware-histograms", histograms, 0},
		} {
			if c.config.Buckets > 0 && count > 1<<16 {
				continue // it would take two thirds of a gigabyte
			}
			c.config.Flows = count
			name := fmt.Sprintf("%s-%dflows-%dMiB", c.name, count, c.config.MemorySize()>>20)
			b.Run(name+"/map-of-counters", func(b *testing.B) { receive(b, c.config, flows, c.bar, values) })
			b.Run(name+"/map-of-pointers", func(b *testing.B) { receive(b, c.config, flows, 0, pointers) })
		}
	}
}

// receive measures a receiver of all the link's departures.
func receive(b *testing.B, c rli.Config, flows []hashing.Flow, bar float64, floor loop) {
	r := must(rli.NewReceiver(c))
	var l link
	path := func(from, to int) {
		for _, f := range flows[from:to] {
			r.Update(f, packetBytes, l.next())
			if l.packets%100 == 0 {
				r.Reference(l.reference(c.ReferenceBytes))
			}
		}
	}
	path(0, streamLength) // until every flow has its record
	compare(b, streamLength, bar, path, floor)
	n := r.Counts()
	if n.Overflowed > 0 || n.Shed > 0 || n.Fallbacks > 0 {
		b.Fatalf("not all packets were estimated as they should be: %+v", n)
	}
	if c.Method == rli.BusyAware && n.References > 1000 && !r.Trusted() {
		b.Fatalf("the link is not trusted: %+v", n)
	}
}

// counters are what a receiver keeps of a flow, at the least.
type counters struct {
	count       uint64
	sum, square int64
}

func (c *counters) add(delay int64) {
	c.count++
	c.sum += delay
	c.square += delay * delay
}

func mapOfCounters(flows []hashing.Flow) loop {
	m := map[hashing.Flow]counters{}
	return func(from, to int) {
		for i, f := range flows[from:to] {
			c := m[f]
			c.add(int64(i))
			m[f] = c
		}
	}
}

func mapOfPointers(flows []hashing.Flow) loop {
	m := map[hashing.Flow]*counters{}
	return func(from, to int) {
		for i, f := range flows[from:to] {
			c := m[f]
			if c == nil {
				c = new(counters)
				m[f] = c
			}
			c.add(int64(i))
		}
	}
}

// BenchmarkRLIInjector is the sender's part, for packets that fill a link of 10
// Gb/s to 70 per cent: one reference in 100, and as many as Algorithm 1 says.
// The floor updates a cell of 1,024.
func BenchmarkRLIInjector(b *testing.B) {
	const apart = int64(packetTime) * 10 / 7
	for _, c := range []struct {
		name   string
		config rli.InjectorConfig
	}{
		{"every100", rli.InjectorConfig{Every: 100, ReferenceBytes: rli.DefaultConfig.ReferenceBytes}},
		{"adaptive", rli.InjectorConfig{Adaptive: rli.PaperAdaptation, ReferenceBytes: rli.DefaultConfig.ReferenceBytes}},
	} {
		b.Run(c.name, func(b *testing.B) {
			j := must(rli.NewInjector(c.config))
			now, sent := int64(0), uint64(0)
			compare(b, streamLength, 0, func(from, to int) {
				for range to - from {
					now += apart
					if _, ok := j.Packet(packetBytes, now); ok {
						sent++
					}
				}
			}, cellFloor(packetStream()))
			if o := j.Overhead(); o.References != sent || sent == 0 {
				b.Fatalf("%d references, and by the accounts %d", sent, o.References)
			}
		})
	}
}
