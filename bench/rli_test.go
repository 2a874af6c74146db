package main

import (
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

// BenchmarkRLIUpdate: packets of 65,536 flows, 64 bytes of record each, in
// random order, references included. The floor here is a Go map from flow to
// the same three counters (packets, sum and sum of squares of delays), which is
// given the delays: x-floor is in updates of that map, and half of one is the
// bar. With the counters behind pointers the map is quicker than with them in
// it.
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
	}{
		{"linear", rli.DefaultConfig},
		{"busyaware", busy},
		{"left", left},
	} {
		for _, against := range []struct {
			name  string
			floor loop
			bar   float64
		}{
			{"map-of-counters", mapValue, 0.5},
			{"map-of-pointers", mapPointer, 0},
		} {
			b.Run(c.name+"-65536flows-8MiB/"+against.name, func(b *testing.B) {
				r := must(rli.NewReceiver(c.config))
				var l link
				compare(b, streamLength, against.bar, func(from, to int) {
					for _, f := range flows[from:to] {
						r.Update(f, packetBytes, l.next())
						if l.packets%100 == 0 {
							r.Reference(l.reference(c.config.ReferenceBytes))
						}
					}
				}, against.floor)
				n := r.Counts()
				if n.Overflowed > 0 || n.Shed > 0 || n.Fallbacks > 0 {
					b.Fatalf("not all packets were estimated as they should be: %+v", n)
				}
				if c.config.Method == rli.BusyAware && n.References > 1000 && !r.Trusted() {
					b.Fatalf("the link is not trusted: %+v", n)
				}
			})
		}
	}
}
