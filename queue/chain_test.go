package queue

import (
	"math"
	"testing"
)

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
