package queue

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
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
	scheduler := SchedulerConfig{Rate: 3e9, Queues: [Classes]QueueConfig{lossyLink.Queue, {Bytes: 20000}}, Loss: lossyLink.Loss}
	weighted := scheduler
	weighted.Weights = [Classes]int{3000, 1500}
	chain := func(hops ...Hop) Hop { return must(NewChain(hops...))(t) }
	fifo := func(c LinkConfig) Hop { return must(NewFIFO(c))(t) }
	crossed := must(NewChain(fifo(lossyLink), must(NewScheduler(weighted))(t), fifo(slow)))(t)
	for i := range 3 {
		if err := crossed.Join(i, &endless{random: generator(uint64(i), 1)}); err != nil {
			t.Fatal(err)
		}
	}
	return map[string]Hop{
		"fifo":        fifo(lossyLink),
		"strict":      must(NewScheduler(scheduler))(t),
		"weighted":    must(NewScheduler(weighted))(t),
		"by flow":     must(NewMultipath(ByFlow, 1, lossyLink, slow))(t),
		"round robin": must(NewMultipath(RoundRobin, 1, lossyLink, slow, lossyLink))(t),
		"at random":   must(NewMultipath(AtRandom, 1, lossyLink, slow))(t),
		"resequenced": chain(must(NewMultipath(AtRandom, 1, lossyLink, slow))(t), must(NewResequencer(ResequencerConfig{Window: 64, Timeout: 20000}))(t)),
		"chain":       chain(fifo(lossyLink), must(NewScheduler(scheduler))(t), must(NewMultipath(ByFlow, 1, slow, slow))(t)),
		"crossed":     crossed,
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
			if p.Sent != in.Sent || p.Flow != in.Flow || p.Bytes != in.Bytes || p.Class != in.Class || p.Tag != in.Tag {
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

// A link's own count: what was sent is delivered, lost, dropped or queued, at
// any moment.
func TestLinkConservation(t *testing.T) {
	link := must(NewLink(lossyLink))(t)
	var gone []int64 // when each admitted packet has left the queue
	var bytes []int32
	dropped := 0
	for i, p := range bursty(5000, 5) {
		egress, fate := link.Send(p.Time, int(p.Bytes))
		if fate == Passed || fate == Lost {
			gone = append(gone, egress-lossyLink.Propagation)
			bytes = append(bytes, p.Bytes)
		} else {
			dropped++
		}
		queued, queuedBytes := 0, int64(0)
		for j := len(gone) - 1; j >= 0 && gone[j] > p.Time; j-- {
			queued++
			queuedBytes += int64(bytes[j])
		}
		// Departures are reported rounded down: one at this very instant may
		// be a fraction of a ns in the future.
		onEdge := len(gone) > queued && gone[len(gone)-1-queued] == p.Time
		packets, size := link.Backlog(p.Time)
		if !onEdge && (packets != queued || size != queuedBytes) {
			t.Fatalf("packet %d: backlog %d packets, %d bytes, want %d, %d", i, packets, size, queued, queuedBytes)
		}
		if c := link.Counts(); c.Sent() != uint64(i+1) || c.Packets[Passed]+c.Packets[Lost] != uint64(len(gone)) {
			t.Fatalf("packet %d: counts %+v, want %d admitted of %d", i, c, len(gone), i+1)
		}
	}
	if packets, size := link.Backlog(math.MaxInt64); packets != 0 || size != 0 || dropped == 0 {
		t.Errorf("in the end %d packets, %d bytes queued, %d dropped", packets, size, dropped)
	}
}

// What comes out depends neither on when one looks nor on the run.
func TestDeterminism(t *testing.T) {
	packets := tracked(5000, 6)
	for _, every := range []int{0, 1, 7} {
		first, again := hops(t), hops(t)
		for name := range first {
			want, wantFates := drive(first[name], packets, 0)
			got, gotFates := drive(again[name], packets, every)
			for i := range wantFates {
				if gotFates[i] != wantFates[i] {
					t.Fatalf("%s, looking every %d: packet %d is %v, was %v", name, every, i, gotFates[i], wantFates[i])
				}
			}
			sortByID(want)
			sortByID(got)
			if len(got) != len(want) {
				t.Fatalf("%s, looking every %d: %d packets, were %d", name, every, len(got), len(want))
			}
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("%s, looking every %d: %+v, was %+v", name, every, got[i], want[i])
				}
			}
		}
	}
}

func sortByID(packets []Packet) {
	slices.SortFunc(packets, func(a, b Packet) int { return cmp.Compare(a.ID, b.ID) })
}

func TestFIFOOrder(t *testing.T) {
	out, _ := drive(must(NewFIFO(lossyLink))(t), tracked(5000, 7), 3)
	for i := 1; i < len(out); i++ {
		if out[i].Seq <= out[i-1].Seq {
			t.Fatalf("packet %d came out after %d", out[i].Seq, out[i-1].Seq)
		}
	}
}

// While a packet of class High waits, none of class Low begins.
func TestPriorityOrder(t *testing.T) {
	const rate = 1e9
	s := must(NewScheduler(SchedulerConfig{Rate: rate}))(t)
	out, _ := drive(s, tracked(5000, 8), 0)
	overtaken := 0
	for i, low := range out {
		if low.Class != Low {
			continue
		}
		began := low.Time - int64(float64(low.Bytes)*8e9/rate)
		for _, high := range out[i+1:] {
			if high.Class == High && high.Sent < began-1 { // 1 ns of rounding
				t.Fatalf("a Low packet began at %d while a High one had waited since %d", began, high.Sent)
			}
			if high.Class == High && high.Sent >= began {
				break
			}
		}
		if i > 0 && out[i-1].Seq > low.Seq {
			overtaken++
		}
	}
	if overtaken < 100 {
		t.Errorf("only %d Low packets were overtaken: the test shows nothing", overtaken)
	}
}

// Whatever the order of service, the link is never idle while a packet waits:
// packets of one size leave at the same times.
func TestWorkConservation(t *testing.T) {
	packets := tracked(5000, 15)
	for i := range packets {
		packets[i].Bytes = 500
	}
	const rate = 7e9 + 1
	fifo, _ := drive(must(NewFIFO(LinkConfig{Rate: rate}))(t), packets, 0)
	for _, weights := range [][Classes]int{{}, {500, 500}, {1500, 100}} {
		out, _ := drive(must(NewScheduler(SchedulerConfig{Rate: rate, Weights: weights}))(t), packets, 2)
		reordered := 0
		for i := range fifo {
			if out[i].Time != fifo[i].Time {
				t.Fatalf("weights %v: departure %d at %d, want %d", weights, i, out[i].Time, fifo[i].Time)
			}
			if out[i].Seq != fifo[i].Seq {
				reordered++
			}
		}
		if reordered < 100 {
			t.Errorf("weights %v: only %d packets in another order: the test shows nothing", weights, reordered)
		}
	}
}

// While both classes wait, neither gets more than its share: service counted
// in rounds differs by at most one round and, for each class, a packet.
func TestWeightedShares(t *testing.T) {
	weights := [Classes]int{3000, 1000}
	s := must(NewScheduler(SchedulerConfig{Rate: 1e9, Weights: weights}))(t)
	random := generator(3, 3)
	const n, largest = 4000, 1500
	var total [Classes]int
	for i := range n { // all at once, so that both wait
		p := Packet{Bytes: 1 + int32(random.Uint64()%largest), Class: Class(i % 2)}
		total[p.Class] += int(p.Bytes)
		s.Send(&p)
	}
	var served [Classes]int
	var p Packet
	for s.Next(math.MaxInt64, &p) {
		served[p.Class] += int(p.Bytes)
		if served[High] == total[High] || served[Low] == total[Low] {
			break
		}
		high, low := float64(served[High])/float64(weights[High]), float64(served[Low])/float64(weights[Low])
		if slack := 1 + largest/float64(weights[High]) + largest/float64(weights[Low]); math.Abs(high-low) > slack {
			t.Fatalf("%v bytes served, %.2f and %.2f rounds: more than %.2f apart", served, high, low, slack)
		}
	}
	if served[High] < total[High]/2 {
		t.Errorf("only %v of %v bytes compared", served, total)
	}
}

// A class that falls empty keeps nothing of its turn for later.
func TestWeightsAreNotSaved(t *testing.T) {
	s := must(NewScheduler(SchedulerConfig{Rate: 8e9, Weights: [Classes]int{1000, 1000}}))(t)
	for i, p := range []Packet{
		{Class: High, Bytes: 100}, // would leave 900 bytes
		{Class: Low, Bytes: 500, Time: 5000},
		{Class: High, Bytes: 900, Time: 5001}, {Class: High, Bytes: 900, Time: 5001},
		{Class: Low, Bytes: 900, Time: 5001}, {Class: Low, Bytes: 900, Time: 5001},
	} {
		p.Seq = uint64(i)
		s.Send(&p)
	}
	var p Packet
	for _, want := range []uint64{0, 1, 2, 4, 3, 5} {
		if !s.Next(math.MaxInt64, &p) || p.Seq != want {
			t.Errorf("packet %d, want %d", p.Seq, want)
		}
	}
}

// Packets that come out at one time come out in the order they went in, and
// numbers count the dropped.
func TestMultipathNumbers(t *testing.T) {
	link := LinkConfig{Rate: 8e9, Queue: QueueConfig{Packets: 2}}
	m := must(NewMultipath(RoundRobin, 1, link, link, link, link))(t)
	for i := range 13 {
		want := Passed
		if i >= 8 && i < 12 {
			want = Full
		}
		at := int64(i / 12 * 1000)
		if fate := m.Send(&Packet{Time: at, Bytes: 100}); fate != want {
			t.Errorf("packet %d is %v, want %v", i, fate, want)
		}
	}
	if fate := m.Send(&Packet{Time: 999, Bytes: 100}); fate != Refused {
		t.Errorf("a packet before one on another path is %v", fate)
	}
	var p Packet
	for _, want := range []uint64{0, 1, 2, 3, 4, 5, 6, 7, 12} {
		if !m.Next(math.MaxInt64, &p) || p.Seq != want {
			t.Errorf("packet %d, want %d", p.Seq, want)
		}
	}
}

func TestSpreads(t *testing.T) {
	fast, slow := LinkConfig{Rate: 10e9, Propagation: 100}, LinkConfig{Rate: 10e9, Propagation: 40000}
	packets := tracked(5000, 9)
	for spread, wantReordered := range map[Spread]bool{ByFlow: false, RoundRobin: true, AtRandom: true} {
		out, _ := drive(must(NewMultipath(spread, 1, fast, slow))(t), packets, 0)
		paths := map[uint64]uint8{}
		lastOf := map[uint64]uint64{}
		reordered, used := false, [2]int{}
		for _, p := range out {
			f := uint64(p.Flow)
			if path, ok := paths[f]; spread == ByFlow && ok && path != p.Path {
				t.Fatalf("flow %x took two paths", f)
			}
			paths[f] = p.Path
			used[p.Path]++
			if last, ok := lastOf[f]; ok && p.Seq < last {
				reordered = true
			}
			lastOf[f] = p.Seq
			if spread == RoundRobin && uint64(p.Path) != p.Seq%2 {
				t.Fatalf("packet %d took path %d", p.Seq, p.Path)
			}
		}
		if reordered != wantReordered || used[0] < 500 || used[1] < 500 {
			t.Errorf("spread %d: reordered within flows %v, paths used %v", spread, reordered, used)
		}
	}
}

func TestChainAddsUp(t *testing.T) {
	a, b := LinkConfig{Rate: 3e9, Propagation: 500}, LinkConfig{Rate: 2e9, Propagation: 700}
	first, second := must(NewLink(a))(t), must(NewLink(b))(t)
	packets := tracked(3000, 10)
	out, _ := drive(must(NewChain(must(NewFIFO(a))(t), must(NewFIFO(b))(t)))(t), packets, 5)
	for i, p := range packets {
		middle, _ := first.Send(p.Time, int(p.Bytes))
		end, _ := second.Send(middle, int(p.Bytes))
		if out[i].Time != end || out[i].Hop != 2 {
			t.Fatalf("packet %d: out at %d past %d hops, want %d past 2", i, out[i].Time, out[i].Hop, end)
		}
	}
}

// A chain waits out a long timeout without a step for every moment of it.
func TestChainWaitsLong(t *testing.T) {
	const week = 7 * 24 * 3600 * 1e9
	r := must(NewResequencer(ResequencerConfig{Window: 8, Timeout: week}))(t)
	chain := must(NewChain(must(NewFIFO(LinkConfig{Rate: 8e9}))(t), r))(t)
	chain.Send(&Packet{Seq: 1, Time: -5, Bytes: 10}) // 0 never comes
	var p Packet
	if !chain.Next(math.MaxInt64, &p) || p.Time != 5+week {
		t.Errorf("out at %d, want %d", p.Time, int64(5+week))
	}
}

// Cross traffic at a hop is as if it had been sent into that link by hand, and
// leaves after it.
func TestCrossTraffic(t *testing.T) {
	a, b := LinkConfig{Rate: 3e9, Propagation: 500}, LinkConfig{Rate: 2e9, Propagation: 700}
	chain := must(NewChain(must(NewFIFO(a))(t), must(NewFIFO(b))(t)))(t)
	if err := chain.Join(1, &endless{random: generator(1, 1)}); err != nil {
		t.Fatal(err)
	}
	packets := tracked(3000, 11)
	out, _ := drive(chain, packets, 0)

	first, second := must(NewLink(a))(t), must(NewLink(b))(t)
	cross := &endless{random: generator(1, 1)}
	var x Packet
	cross.Next(&x)
	if len(out) != len(packets) {
		t.Fatalf("%d packets of %d came out", len(out), len(packets))
	}
	for i, p := range packets {
		middle, _ := first.Send(p.Time, int(p.Bytes))
		for ; x.Time < middle; cross.Next(&x) {
			second.Send(x.Time, int(x.Bytes))
		}
		end, _ := second.Send(middle, int(p.Bytes))
		if out[i].Time != end || out[i].Seq != p.Seq {
			t.Fatalf("packet %d out at %d, want %d at %d", out[i].Seq, out[i].Time, p.Seq, end)
		}
	}
}

// At equal times the packets from the hop before go first.
func TestCrossTrafficGivesWay(t *testing.T) {
	link := LinkConfig{Rate: 8e9}
	chain := must(NewChain(must(NewFIFO(link))(t), must(NewFIFO(link))(t)))(t)
	if err := chain.Join(1, &listed{{Time: 100, Bytes: 1000}, {Time: 2099, Bytes: 1000}}); err != nil {
		t.Fatal(err)
	}
	chain.Send(&Packet{Time: 0, Bytes: 100}) // at the second hop at 100
	chain.Send(&Packet{Time: 2000, Bytes: 100})
	var p Packet
	for _, want := range []int64{200, 2099 + 1000 + 100} {
		if !chain.Next(math.MaxInt64, &p) || p.Time != want {
			t.Errorf("out at %d, want %d", p.Time, want)
		}
	}
}

type listed []Packet

func (l *listed) Next(p *Packet) bool {
	if len(*l) == 0 {
		return false
	}
	*p, *l = (*l)[0], (*l)[1:]
	return true
}

// A chain says which hop did what.
func TestChainHops(t *testing.T) {
	clean := LinkConfig{Rate: 8e9}
	narrow := LinkConfig{Rate: 1e9, Queue: QueueConfig{Packets: 1}}
	lossy := LinkConfig{Rate: 8e9, Loss: LossConfig{Probability: 1}}
	for _, c := range []struct {
		links []LinkConfig
		fate  Fate
		hop   uint8
	}{
		{[]LinkConfig{clean, clean, clean}, Passed, 3},
		{[]LinkConfig{clean, lossy, clean}, Lost, 1},
		{[]LinkConfig{clean, clean, lossy}, Lost, 2},
		{[]LinkConfig{clean, narrow, clean}, Full, 1},
		{[]LinkConfig{clean, clean, narrow}, Full, 2},
	} {
		var hops []Hop
		for _, l := range c.links {
			hops = append(hops, must(NewFIFO(l))(t))
		}
		chain := must(NewChain(hops...))(t)
		chain.Send(&Packet{Bytes: 100})
		chain.Send(&Packet{Bytes: 100, Seq: 1})
		var p Packet
		found := false
		for chain.Next(math.MaxInt64, &p) {
			if p.Seq == 1 {
				found = p.Fate == c.fate && p.Hop == c.hop
			}
		}
		if !found {
			t.Errorf("%v at hop %d not found", c.fate, c.hop)
		}
	}
}

func TestRefused(t *testing.T) {
	link := must(NewLink(LinkConfig{Rate: 1e9}))(t)
	link.Send(100, 1000)
	want, _ := link.Backlog(100)
	for _, c := range []struct {
		t     int64
		bytes int
	}{{99, 40}, {200, 0}, {200, -1}} {
		if at, fate := link.Send(c.t, c.bytes); fate != Refused || at != c.t {
			t.Errorf("Send(%d, %d) = %d, %v", c.t, c.bytes, at, fate)
		}
	}
	if got, _ := link.Backlog(100); got != want || link.Counts().Packets[Refused] != 3 {
		t.Errorf("backlog %d, want %d; counts %+v", got, want, link.Counts())
	}
	for name, hop := range hops(t) {
		var p Packet
		hop.Send(&Packet{Time: 1000, Bytes: 40})
		hop.Next(2000, &p)
		if fate := hop.Send(&Packet{Time: 900, Bytes: 40}); fate != Refused {
			t.Errorf("%s: a packet before an earlier one is %v", name, fate)
		}
		if name == "strict" || name == "weighted" {
			if fate := hop.Send(&Packet{Time: 3000, Bytes: 40, Class: Classes}); fate != Refused {
				t.Errorf("%s: a packet of no class is %v", name, fate)
			}
		}
	}
}

func TestConfigErrors(t *testing.T) {
	red := lossyLink.Queue.RED
	bad := func(change func(*LinkConfig)) LinkConfig {
		c := lossyLink
		change(&c)
		return c
	}
	for name, c := range map[string]LinkConfig{
		"rate 0":        bad(func(c *LinkConfig) { c.Rate = 999 }),
		"rate":          bad(func(c *LinkConfig) { c.Rate = 1e15 + 1 }),
		"propagation":   bad(func(c *LinkConfig) { c.Propagation = -1 }),
		"both limits":   bad(func(c *LinkConfig) { c.Queue.Bytes = 1 }),
		"negative":      bad(func(c *LinkConfig) { c.Queue.Packets = -1 }),
		"thresholds":    bad(func(c *LinkConfig) { c.Queue.RED.Max = red.Min }),
		"threshold NaN": bad(func(c *LinkConfig) { c.Queue.RED.Min = math.NaN() }),
		"weight 0":      bad(func(c *LinkConfig) { c.Queue.RED.Weight = 0 }),
		"weight":        bad(func(c *LinkConfig) { c.Queue.RED.Weight = 1.5 }),
		"probability":   bad(func(c *LinkConfig) { c.Queue.RED.Probability = 2 }),
		"typical":       bad(func(c *LinkConfig) { c.Queue.RED.Typical = 0 }),
		"loss":          bad(func(c *LinkConfig) { c.Loss.Probability = 1.1 }),
		"loss NaN":      bad(func(c *LinkConfig) { c.Loss.Probability = math.NaN() }),
		"burst":         bad(func(c *LinkConfig) { c.Loss.Burst = 0.5 }),
		"burst short":   bad(func(c *LinkConfig) { c.Loss = LossConfig{Probability: 0.9, Burst: 2} }),
	} {
		if _, err := NewLink(c); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"weights":        second(NewScheduler(SchedulerConfig{Rate: 1, Weights: [Classes]int{100, 0}})),
		"scheduler rate": second(NewScheduler(SchedulerConfig{})),
		"no path":        second(NewMultipath(ByFlow, 0)),
		"spread":         second(NewMultipath(spreads, 0, lossyLink)),
		"path":           second(NewMultipath(ByFlow, 0, lossyLink, LinkConfig{})),
		"window":         second(NewResequencer(ResequencerConfig{})),
		"timeout":        second(NewResequencer(ResequencerConfig{Window: 1, Timeout: -1})),
		"empty chain":    second(NewChain()),
		"burst":          second(NewLoss(LossConfig{Probability: 0.5, Burst: -1}, 0)),
		"fifo":           second(NewFIFO(LinkConfig{})),
		"hop":            must(NewChain(must(NewFIFO(lossyLink))(t)))(t).Join(1, &endless{}),
	} {
		if !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
