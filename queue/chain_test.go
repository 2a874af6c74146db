package queue

import (
	"math"
	"slices"
	"testing"
)

// Cross traffic at a hop is as if it had been sent into that link by hand, and
// leaves after it. All times are multiples of 100 ns, so that many packets come at
// one time: those from the hop before go first.
func TestCrossTraffic(t *testing.T) {
	link, random := LinkConfig{Rate: 8e9, Propagation: 500}, generator(1, 1)
	packets, cross := tracked(3000, 11), make(listed, 50_000)
	for i := range packets {
		packets[i].Time -= packets[i].Time % 100
		packets[i].Bytes = int32(100 * (1 + random.Uint64()%5))
	}
	for i := range cross {
		cross[i] = Packet{Time: int64(100 * (12*i + int(random.Uint64()%12))), Bytes: 400}
	}
	chain := must(NewChain(must(NewFIFO(link))(t), must(NewFIFO(link))(t)))(t)
	if err := chain.Join(1, &cross); err != nil {
		t.Fatal(err)
	}
	byHand := slices.Clone(cross)
	out, _ := drive(chain, packets, 0)
	first, second := must(NewLink(link))(t), must(NewLink(link))(t)
	ties := 0
	for i, p := range packets {
		middle, _ := first.Send(p.Time, int(p.Bytes))
		for ; byHand[0].Time < middle; byHand = byHand[1:] {
			second.Send(byHand[0].Time, int(byHand[0].Bytes))
		}
		if byHand[0].Time == middle {
			ties++
		}
		end, _ := second.Send(middle, int(p.Bytes))
		if out[i].Time != end || out[i].Seq != p.Seq {
			t.Fatalf("packet %d out at %d, want %d at %d", out[i].Seq, out[i].Time, p.Seq, end)
		}
	}
	if len(out) != len(packets) || ties < 100 {
		t.Errorf("%d packets of %d came out, %d at the time of another, which shows too little", len(out), len(packets), ties)
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

// A chain reports which hop dropped a packet.
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
