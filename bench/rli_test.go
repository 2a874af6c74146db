package main

import (
	"fmt"
	"testing"

	"github.com/hoplag/hoplag/bench/speed"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/rli"
)

// A link is the departures from a link of 10 Gb/s that is filled to 80 per cent by bursts of seven packets of 1,500 bytes,
// with a reference after every hundredth packet, again and again.
type link struct {
	packets    []departed
	references []arrival // behind every hundredth packet
	length     int64
	sequence   uint64
	told       uint32
}

// A departed packet has 1,500 bytes.
type departed struct {
	flow hashing.Flow
	time int64
}

// An arrival is that of a reference.
type arrival struct{ sent, received int64 }

const (
	linkRate    = 10_000_000_000
	packetBytes = 1500
	packetTime  = packetBytes * 8e9 / linkRate
	inBurst     = 7 // so that a reference follows the first of them, too
	apart       = 100
)

func newLink(flows []hashing.Flow, referenceBytes int) *link {
	l := &link{packets: make([]departed, len(flows))}
	free, burst := int64(0), int64(0)
	for i, f := range flows {
		if i%inBurst == 0 {
			burst += inBurst * packetTime * 5 / 4
			free = max(free, burst)
		}
		free += packetTime
		l.packets[i] = departed{f, free}
		if i%apart == apart-1 {
			free += int64(referenceBytes) * 8e9 / linkRate
			l.references = append(l.references, arrival{burst, free})
		}
	}
	l.length = free
	return l
}

// again shifts everything by a round.
func (l *link) again() {
	for i := range l.packets {
		l.packets[i].time += l.length
	}
	for i := range l.references {
		l.references[i].sent += l.length
		l.references[i].received += l.length
	}
}

// to passes a receiver the packets [from, to), and the references behind them.
func (l *link) to(r *rli.Receiver) speed.Loop {
	return func(from, to int) {
		if from == 0 && l.sequence > 0 {
			l.again()
		}
		for from < to {
			end := min(from-from%apart+apart, to)
			for i := range l.packets[from:end] {
				p := &l.packets[from+i]
				r.Update(p.flow, packetBytes, p.time)
			}
			if from = end; from%apart == 0 {
				at := l.references[from/apart-1]
				l.sequence++
				l.told += apart
				r.Reference(rli.ReferencePacket{Sequence: l.sequence, Sent: at.sent, Behind: packetBytes, Packets: l.told}, at.received)
			}
		}
	}
}

// some returns a flow for every packet, one of a given number.
func some(flows int) []hashing.Flow {
	all := make([]hashing.Flow, speed.StreamLength)
	for i, p := range speed.Packets() {
		all[i] = speed.Flows()[uint64(p)%uint64(flows)]
	}
	return all
}

// BenchmarkRLIUpdate: packets of 65,536 flows, 64 bytes of record each, or of 1,048,576, in random order, references
// included. The floor here is a Go map from flow to the same three counters (packets, sum and sum of squares of delays),
// which is given the delays: x-floor is in updates of that map.
func BenchmarkRLIUpdate(b *testing.B) {
	linear, busy, left := rli.DefaultConfig, rli.DefaultConfig, rli.DefaultConfig
	linear.Method, busy.Rate = rli.Linear, linkRate
	left.Method, left.Buffer = rli.Left, 0
	for _, count := range []int{1 << 16, 1 << 20} {
		flows := some(count)
		floor := mapOfCounters(flows)
		floor(0, speed.StreamLength) // so that the map does not grow while it is measured
		run := func(name string, c rli.Config, bar float64) {
			c.Flows = count
			name = fmt.Sprintf("%s-%dflows-%dMiB", name, count, c.MemorySize()>>20)
			b.Run(name, func(b *testing.B) { receive(b, c, flows, bar, floor) })
		}
		run("linear", linear, 0.5)
		run("busyaware", busy, 0.8)
		if count >= 1<<20 { // with fewer, each packet waits for its record, and the figure tells the machine's load
			run("left", left, 0.5)
		}
	}
}

// receive measures a receiver of all the link's departures.
func receive(b *testing.B, c rli.Config, flows []hashing.Flow, bar float64, floor speed.Loop) {
	r := must(rli.NewReceiver(c))
	path := newLink(flows, c.ReferenceBytes).to(r)
	path(0, speed.StreamLength) // until every flow has its record
	speed.Compare(b, speed.StreamLength, bar, path, floor)
	n := r.Counts()
	if n.Shed > 0 || n.Conflicts > 0 {
		b.Fatalf("not all packets were estimated as they should be: %+v", n)
	}
	if c.Method == rli.Auto && n.References > 1000 && n.Idle+n.Busy < n.Linear {
		b.Fatalf("the link is not trusted: %+v", n)
	}
}

// counters is the least that a receiver keeps of a flow.
type counters struct {
	count       uint64
	sum, square int64
}

func mapOfCounters(flows []hashing.Flow) speed.Loop {
	m := map[hashing.Flow]counters{}
	return func(from, to int) {
		for i, f := range flows[from:to] {
			c, delay := m[f], int64(i)
			m[f] = counters{c.count + 1, c.sum + delay, c.square + delay*delay}
		}
	}
}
