package queue

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// senders is a reference for Closed, written for readability: one list of what
// is to happen, searched for the earliest, and each sender's window by the
// rules.
type senders struct {
	ClosedConfig
	random *rand.PCG
	list   []happening
	all    []plain
	flows  uint64
}

type happening struct {
	at, sent int64
	who      int
	what     string
}

type plain struct {
	flow       hashing.Flow
	toSend     int64
	unknown    int
	window     float64
	slowStart  bool
	lastHalved int64
	mayAt      int64
	timer      bool
}

func newSenders(c ClosedConfig) *senders {
	s := &senders{ClosedConfig: c, random: rand.NewPCG(c.Seed, 'C'), all: make([]plain, c.Senders)}
	for i := range s.all {
		s.list = append(s.list, happening{at: s.rest(), who: i, what: "begin"})
	}
	return s
}

func (s *senders) rest() int64 { return int64(-s.Pause * math.Log(uniform(s.random))) }

func (s *senders) earliest() happening {
	k := 0
	for i := range s.list {
		if s.list[i].at < s.list[k].at {
			k = i
		}
	}
	h := s.list[k]
	s.list = append(s.list[:k], s.list[k+1:]...)
	return h
}

func (s *senders) next() (at int64, who int) {
	for {
		h := s.earliest()
		p := &s.all[h.who]
		switch h.what {
		case "begin":
			p.toSend = 1
			if s.Transfer > 1 {
				p.toSend += int64(math.Log(uniform(s.random)) / math.Log1p(-1/s.Transfer))
			}
			p.flow = hashing.Flow(hashing.Word(s.Seed, s.flows))
			s.flows++
			p.window, p.slowStart, p.lastHalved = min(2, float64(s.Window)), true, math.MinInt64
		case "timer":
			p.timer = false
		case "good":
			p.unknown--
			if p.slowStart {
				p.window += 1
			} else {
				p.window += 1 / p.window
			}
		case "bad":
			p.unknown--
			if h.sent >= p.lastHalved {
				p.window, p.slowStart, p.lastHalved = max(1, p.window/2), false, h.at
			}
		}
		p.window = min(p.window, float64(s.Window))
		if p.toSend == 0 && p.unknown == 0 {
			s.list = append(s.list, happening{at: h.at + s.rest(), who: h.who, what: "begin"})
			continue
		}
		room := func() bool { return p.toSend > 0 && float64(p.unknown) < math.Floor(p.window) }
		sends := room() && h.at >= p.mayAt
		if sends {
			p.toSend--
			p.unknown++
			p.mayAt = h.at + s.Gap
		}
		if room() && !p.timer {
			p.timer = true
			s.list = append(s.list, happening{at: p.mayAt, who: h.who, what: "timer"})
		}
		if sends {
			return h.at, h.who
		}
	}
}

// Both send the same packets into queues that drop and mark.
func TestClosedIsReference(t *testing.T) {
	Heavy(t)
	marking := lossyLink.Queue
	marking.RED.Mark = true
	for seed, c := range []ClosedConfig{
		{Senders: 1, Bytes: 1000, Return: 50_000, Gap: 1000, Window: 64, Transfer: 1e9},
		{Senders: 20, Bytes: 1500, Return: 100_000, Gap: 0, Window: 100, Transfer: 30, Pause: 50_000},
		{Senders: 7, Bytes: 40, Return: 0, Gap: 10, Window: 1, Transfer: 1},
		{Senders: 300, Bytes: 600, Return: 20_000, Gap: 500, Window: 8, Transfer: 5, Pause: 1e6},
	} {
		for _, q := range []QueueConfig{{Packets: 10}, lossyLink.Queue, marking} {
			c.Seed = uint64(seed)
			link := must(NewLink(LinkConfig{Rate: 1e9, Queue: q, Seed: 3}))(t)
			source, reference := must(NewClosed(c))(t), newSenders(c)
			bad, marked := 0, 0
			for i := range 8000 {
				var p Packet
				if !source.Next(&p) {
					t.Fatalf("%d: no packet %d", seed, i)
				}
				at, who := reference.next()
				if p.Time != at || p.Flow != reference.all[who].flow || p.Seq != uint64(i) || p.Sent != p.Time || p.Bytes != c.Bytes {
					t.Fatalf("%d: packet %d is %+v, reference says at %d from %d", seed, i, p, at, who)
				}
				p.Time, p.Fate = link.Send(p.Time, int(p.Bytes))
				if p.Marked = link.Marked(); p.Marked {
					marked++
				}
				if i%1000 == 0 { // lost on the wire
					p.Fate = Full
				}
				source.Tell(&p)
				h := happening{at: p.Time + c.Return, sent: p.Sent, who: who, what: "good"}
				if p.Fate != Passed || p.Marked {
					h.what = "bad"
					bad++
				}
				reference.list = append(reference.list, h)
			}
			if seed < 2 && q.RED.Mark && marked == 0 {
				t.Errorf("%d: nothing is marked", seed)
			}
			if seed < 2 && bad < 20 {
				t.Errorf("%d: %d bad news, which shows too little", seed, bad)
			}
		}
	}
}

func TestClosedWaits(t *testing.T) {
	source := must(NewClosed(ClosedConfig{Senders: 3, Bytes: 100, Window: 2, Transfer: 1e9}))(t)
	var p Packet
	n := 0
	for source.Next(&p) {
		n++
	}
	if n != 6 {
		t.Errorf("%d packets before anything is known of one, want 6", n)
	}
	p.Flow++
	source.Tell(&p)
	if source.Next(&p) {
		t.Error("news of another flow lets it send")
	}
}
