package queue

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

var lossyLink = LinkConfig{
	Rate: 3e9, Propagation: 1000, Seed: 9,
	Queue: QueueConfig{Packets: 60, RED: REDConfig{Min: 10, Max: 40, Weight: 0.05, Probability: 0.1, Typical: 500}},
	Loss:  LossConfig{Probability: 0.02, Burst: 3},
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// hops returns one of each kind, all of them lossy.
func hops(t testing.TB) map[string]Hop {
	slow := lossyLink
	slow.Rate, slow.Propagation = 1e9, 5000
	shaper, marking := lossyLink, lossyLink
	shaper.Burst = 6000
	marking.Queue.RED.Mark = true
	jitter := JitterConfig{Least: 700, Mean: 3000, Seed: 2}
	overtaking := jitter
	overtaking.Reorder = true
	scheduler := SchedulerConfig{Rate: 3e9, Queues: [Classes]QueueConfig{lossyLink.Queue, {Packets: 40}}, Loss: lossyLink.Loss}
	chain := func(hops ...Hop) Hop { return must(NewChain(hops...))(t) }
	fifo := func(c LinkConfig) Hop { return must(NewFIFO(c))(t) }
	crossed := must(NewChain(fifo(lossyLink), must(NewScheduler(scheduler))(t), fifo(slow)))(t)
	for i := range 3 {
		if err := crossed.Join(i, &endless{random: generator(uint64(i), 1)}); err != nil {
			t.Fatal(err)
		}
	}
	return map[string]Hop{
		"fifo":       fifo(lossyLink),
		"shaper":     fifo(shaper),
		"marking":    chain(fifo(marking), fifo(lossyLink)),
		"jitter":     chain(fifo(lossyLink), must(NewJitter(jitter))(t)),
		"overtaking": chain(fifo(lossyLink), must(NewJitter(overtaking))(t)),
		"strict":     must(NewScheduler(scheduler))(t),
		"paths":      must(NewMultipath(1, lossyLink, slow, lossyLink))(t),
		"chain":      chain(fifo(lossyLink), must(NewScheduler(scheduler))(t), must(NewMultipath(1, slow, slow))(t)),
		"crossed":    crossed,
	}
}

// endless is cross traffic that never ends.
type endless struct {
	random interface{ Uint64() uint64 }
	now    int64
}

func (e *endless) Next(p *Packet) bool {
	e.now += 500 + int64(e.random.Uint64()%2000)
	*p = Packet{Sent: e.now, Time: e.now, Bytes: 400, Class: Class(e.random.Uint64() % 2)}
	return true
}

// tracked returns packets that can be told apart when they come out.
func tracked(n int, seed uint64) []Packet {
	packets := bursty(n, seed)
	random := generator(seed, 2)
	for i := range packets {
		packets[i].Tag = uint8(i)
		packets[i].Fate = Refused // not read
		packets[i].ID = hashing.Packet(i + 1)
		packets[i].Flow = hashing.Flow(random.Uint64() % 20)
	}
	return packets
}

// drive sends packets and collects what comes out, having looked for it before
// every n-th packet; 0: only at the end.
func drive(hop Hop, packets []Packet, every int) (out []Packet, fates []Fate) {
	var p Packet
	for i := range packets {
		for every > 0 && i%every == 0 && hop.Next(packets[i].Time, &p) {
			out = append(out, p)
		}
		fates = append(fates, hop.Send(&packets[i]))
	}
	for hop.Next(math.MaxInt64, &p) {
		out = append(out, p)
	}
	return out, fates
}

// Every packet that goes in comes out once, or was turned away; those that
// are delivered come out in order of time, after they went in.
func TestConservation(t *testing.T) {
	packets := tracked(20000, 4)
	for name, hop := range hops(t) {
		out, fates := drive(hop, packets, 0)
		inside := map[uint64]Packet{}
		for i, fate := range fates {
			if fate == Passed {
				inside[uint64(packets[i].ID)] = packets[i]
			}
		}
		byFate := map[Fate]int{}
		last := int64(math.MinInt64)
		for _, p := range out {
			in, ok := inside[uint64(p.ID)]
			if !ok {
				t.Fatalf("%s: packet %d came out twice, or never went in", name, p.ID)
			}
			delete(inside, uint64(p.ID))
			if p.Sent != in.Sent || p.Flow != in.Flow || p.Bytes != in.Bytes || p.Class != in.Class || p.Tag != in.Tag || p.Fate == Refused {
				t.Fatalf("%s: %+v went in, %+v came out", name, in, p)
			}
			byFate[p.Fate]++
			if p.Fate != Passed {
				continue
			}
			if p.Time < last || p.Time < p.Sent {
				t.Fatalf("%s: packet sent at %d out at %d, one before it at %d", name, p.Sent, p.Time, last)
			}
			last = p.Time
		}
		if len(inside) != 0 {
			t.Errorf("%s: %d packets never came out", name, len(inside))
		}
		if byFate[Passed] < 1000 || byFate[Lost] == 0 || byFate[Passed]+byFate[Lost] == len(packets) && len(out) == len(packets) {
			t.Errorf("%s: fates %v of %d packets show too little", name, byFate, len(packets))
		}
	}
}

// Next returns packets that come out at exactly the time asked for, and none
// that come out later.
func TestNextIsInclusive(t *testing.T) {
	link := LinkConfig{Rate: 8e9, Propagation: 50}
	for name, c := range map[string]struct {
		hop  Hop
		want int64 // when the second of two packets of 100 bytes comes out
	}{
		"fifo":      {must(NewFIFO(link))(t), 250},
		"strict":    {must(NewScheduler(SchedulerConfig{Rate: 8e9, Propagation: 50}))(t), 250},
		"multipath": {must(NewMultipath(1, link, link))(t), 250}, // both of one flow
		"jitter":    {must(NewChain(must(NewFIFO(link))(t), must(NewJitter(JitterConfig{Least: 7}))(t)))(t), 257},
		"chain":     {must(NewChain(must(NewFIFO(link))(t), must(NewFIFO(link))(t)))(t), 400},
	} {
		for seq := range uint64(2) {
			if fate := c.hop.Send(&Packet{Seq: seq, Bytes: 100}); fate != Passed {
				t.Fatalf("%s: %v", name, fate)
			}
		}
		var p Packet
		n := 0
		for c.hop.Next(c.want-1, &p) {
			n++
		}
		if n != 1 || !c.hop.Next(c.want, &p) || p.Time != c.want || c.hop.Next(math.MaxInt64, &p) {
			t.Errorf("%s: %d packets before %d, the next at %d", name, n, c.want, p.Time)
		}
	}
}

// The counts of every element match the fates that it returned, by class and by
// path.
func TestCounts(t *testing.T) {
	for name, hop := range hops(t) {
		packets := tracked(20000, 4)
		var count func(Packet) Counts // of the packet's part of the hop
		part := func(p Packet) int { return 0 }
		switch h := hop.(type) {
		case *FIFO:
			count = func(Packet) Counts { return h.Counts() }
		case *Scheduler:
			part = func(p Packet) int { return int(p.Class) }
			count = func(p Packet) Counts { return h.Counts(p.Class) }
		case *Multipath:
			paths := map[hashing.Flow]int{} // of a packet that is dropped, the path is not told
			for _, p := range first(drive(must(NewMultipath(1, lossyLink, lossyLink, lossyLink))(t), packets, 0)) {
				paths[p.Flow] = int(p.Path)
			}
			part = func(p Packet) int { return paths[p.Flow] }
			count = func(p Packet) Counts { return h.Counts(paths[p.Flow]) }
		default:
			continue // a chain has none
		}
		out, fates := drive(hop, packets, 0)
		for i, fate := range fates {
			if packets[i].Fate = fate; fate != Passed {
				out = append(out, packets[i])
			}
		}
		want := map[int]Counts{}
		for _, p := range out {
			c := want[part(p)]
			c.Packets[p.Fate]++
			c.Bytes[p.Fate] += uint64(p.Bytes)
			want[part(p)] = c
		}
		for _, p := range out {
			if got := count(p); got != want[part(p)] {
				t.Fatalf("%s, part %d: %+v, want %+v", name, part(p), got, want[part(p)])
			}
		}
	}
}

// The output depends neither on when Next is called nor on the run.
func TestDeterminism(t *testing.T) {
	packets := tracked(5000, 6)
	for _, every := range []int{0, 1, 7} {
		first, again := hops(t), hops(t)
		for name := range first {
			want, wantFates := drive(first[name], packets, 0)
			got, gotFates := drive(again[name], packets, every)
			sortByID(want)
			sortByID(got)
			if !slices.Equal(gotFates, wantFates) || !slices.Equal(got, want) {
				t.Errorf("%s, looking every %d: fates or packets are others", name, every)
			}
		}
	}
}

func first[T, U any](v T, _ U) T { return v }

func sortByID(packets []Packet) {
	slices.SortFunc(packets, func(a, b Packet) int { return cmp.Compare(a.ID, b.ID) })
}
