package main

import (
	"testing"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/rli"
)

// link is the departures of bursts of eight packets of 1,500 bytes from a link
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
	inBurst     = 8
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

// BenchmarkRLIUpdate: packets of 65,536 flows, 64 bytes of record each, in
// random order. What it is held against is a Go map from flow to the same
// three counters (packets, sum and sum of squares of delays), behind a pointer,
// which is quicker than in the map itself; it is given the delays. So x-floor
// is in updates of that map, and half is the bar. The references' share of the
// time is the packets'.
func BenchmarkRLIUpdate(b *testing.B) {
	const flowCount = 1 << 16
	some := flowStream()[:flowCount]
	flows := make([]hashing.Flow, streamLength)
	for i, p := range packetStream() {
		flows[i] = some[uint64(p)%flowCount]
	}

	type counters struct {
		count       uint64
		sum, square int64
	}
	byFlow := map[hashing.Flow]*counters{}
	mapPointer := func(from, to int) {
		for i, f := range flows[from:to] {
			c := byFlow[f]
			if c == nil {
				c = new(counters)
				byFlow[f] = c
			}
			delay := int64(i)
			c.count++
			c.sum += delay
			c.square += delay * delay
		}
	}
	values := map[hashing.Flow]counters{}
	mapValue := func(from, to int) {
		for i, f := range flows[from:to] {
			c := values[f]
			delay := int64(i)
			c.count++
			c.sum += delay
			c.square += delay * delay
			values[f] = c
		}
	}

	busy := rli.DefaultConfig
	busy.Method, busy.Rate = rli.BusyAware, linkRate
	left := rli.DefaultConfig
	left.Method, left.Buffer = rli.Left, 0
	for _, c := range []struct {
		name   string
		config rli.Config
		bar    float64
	}{
		{"linear-65536flows-8MiB", rli.DefaultConfig, 0.5},
		{"busyaware-65536flows-8MiB", busy, 0.5},
		{"left-65536flows-8MiB", left, 0.5},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := must(rli.NewReceiver(c.config))
			var l link
			compare(b, streamLength, c.bar, func(from, to int) {
				for _, f := range flows[from:to] {
					r.Update(f, packetBytes, l.next())
					if l.packets%100 == 0 {
						r.Reference(l.reference(c.config.ReferenceBytes))
					}
				}
			}, mapPointer)
			if n := r.Counts(); n.Overflowed > 0 || n.Shed > 0 {
				b.Fatalf("not all packets were estimated: %+v", n)
			}
		})
	}
	b.Run("go-map-of-values", func(b *testing.B) { compare(b, streamLength, 0, mapValue, mapPointer) })
}
