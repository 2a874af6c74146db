package queue

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

var lossyLink = LinkConfig{
	Rate: 3e9, Seed: 9,
	Queue: QueueConfig{Packets: 60, RED: REDConfig{Min: 10, Max: 40, Weight: 0.05, Probability: 0.1, Typical: 500}},
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

// reference is a link above all readable: exact rational time, the queue as a slice, RED copied line by line
// from figure 2 of the 1993 paper.
type reference struct {
	rate    int64
	queue   *referenceQueue
	serving *referencePacket
	end     *big.Rat          // of its service
	done    []referencePacket // in order of departure or drop
}

type referencePacket struct {
	number int
	bytes  int32
	egress int64
	fate   Fate
}

type referenceQueue struct {
	waiting []*referencePacket
	packets int64 // with the one in service
	config  QueueConfig

	avg    float64
	count  int
	qTime  *big.Rat
	random *rand.PCG
}

func newReference(rate int64, seed uint64, c QueueConfig) *reference {
	return &reference{rate: rate, queue: &referenceQueue{config: c, count: -1, qTime: new(big.Rat), random: generator(seed, 'R')}}
}

func (r *reference) run(packets []Packet) []referencePacket {
	q := r.queue
	for i := 0; i < len(packets) || r.serving != nil; {
		var now *big.Rat
		if i < len(packets) {
			now = new(big.Rat).SetInt64(packets[i].Time)
		}
		if p := r.serving; p != nil && (now == nil || r.end.Cmp(now) <= 0) { // a departure goes before an arrival
			now = r.end
			p.egress = floor(now)
			r.done, r.serving = append(r.done, *p), nil
			if q.packets--; q.packets == 0 {
				q.qTime = now
			}
		} else {
			p := &referencePacket{number: i, bytes: packets[i].Bytes, egress: packets[i].Time}
			i++
			if p.fate = q.arrive(now, r.rate); p.fate == Passed {
				q.waiting = append(q.waiting, p)
			} else {
				r.done = append(r.done, *p)
			}
		}
		if r.serving == nil && len(q.waiting) > 0 {
			r.serving, q.waiting = q.waiting[0], q.waiting[1:]
			r.end = big.NewRat(int64(r.serving.bytes)*8_000_000_000, r.rate)
			r.end.Add(r.end, now)
		}
	}
	return r.done
}

func floor(x *big.Rat) int64 {
	return new(big.Int).Div(x.Num(), x.Denom()).Int64()
}

func (q *referenceQueue) arrive(time *big.Rat, rate int64) Fate {
	length, limit := q.packets, int64(q.config.Packets)
	if q.config.RED != (REDConfig{}) {
		if fate := q.red(time, length, rate); fate != Passed {
			return fate
		}
	}
	if limit > 0 && length+1 > limit {
		return Full
	}
	q.packets++
	return Passed
}

func (q *referenceQueue) red(time *big.Rat, length, rate int64) Fate {
	c := q.config.RED
	wq, minth, maxth, maxp := c.Weight, c.Min, c.Max, c.Probability
	if q.packets > 0 {
		q.avg = (1-wq)*q.avg + wq*float64(length)
	} else {
		idle, _ := new(big.Rat).Sub(time, q.qTime).Float64()
		s := float64(c.Typical) * 8e9 / float64(rate)
		q.avg = math.Pow(1-wq, idle/s) * q.avg
		q.qTime = time // not in the figure: see the comment in early
	}
	var pb float64
	switch {
	case minth <= q.avg && q.avg < maxth:
		pb = maxp * (q.avg - minth) / (maxth - minth)
	case maxth <= q.avg:
		q.count = 0
		return Forced
	default:
		q.count = -1
		return Passed
	}
	q.count++
	pa := 1.0
	if float64(q.count)*pb < 1 {
		pa = pb / (1 - float64(q.count)*pb)
	}
	if uniform(q.random) < pa {
		q.count = 0
		return Early
	}
	return Passed
}

// bursty returns packets, in order of time, that fill and empty queues.
func bursty(n int, seed uint64) []Packet {
	random := generator(seed, 0)
	packets := make([]Packet, n)
	now, gap := int64(0), 100.0
	for i := range packets {
		if random.Uint64()%50 == 0 {
			gap = []float64{0, 150, 400, 1000, 20000}[random.Uint64()%5]
		}
		now += int64(gap * -math.Log(uniform(random)))
		packets[i] = Packet{Time: now, Bytes: []int32{1, 40, 40, 576, 1500}[random.Uint64()%5]}
	}
	return packets
}

var referenceQueues = map[string]QueueConfig{
	"unlimited":  {},
	"one packet": {Packets: 1},
	"packets":    {Packets: 40},
	"red":        {Packets: 100, RED: REDConfig{Min: 5, Max: 15, Weight: 0.1, Probability: 0.1, Typical: 500}},
	"red full":   {Packets: 25, RED: REDConfig{Min: 2, Max: 15, Weight: 0.3, Probability: 0.5, Typical: 500}},
	"red eager":  {RED: REDConfig{Min: 0, Max: 4, Weight: 1, Probability: 1, Typical: 40}},
}

// 7 and 3 Gb/s leave remainders of whole nanoseconds, 8 does not: departures and arrivals then fall on the same
// instant often.
var referenceRates = []int64{3e9, 7e9 + 1, 8e9}

func TestLinkIsReference(t *testing.T) {
	Heavy(t)
	packets := bursty(3000, 1)
	for name, q := range referenceQueues {
		for _, rate := range referenceRates {
			want := make([]referencePacket, len(packets))
			for _, p := range newReference(rate, 5, q).run(packets) {
				want[p.number] = p
			}
			link := must(NewLink(LinkConfig{Rate: rate, Queue: q, Seed: 5}))(t)
			fates := map[Fate]int{}
			for i, p := range packets {
				egress, fate := link.Send(p.Time, int(p.Bytes))
				if egress != want[i].egress || fate != want[i].fate {
					t.Fatalf("%s at %d bit/s: packet %d of %d bytes at %d: %d, %v; reference says %d, %v",
						name, rate, i, p.Bytes, p.Time, egress, fate, want[i].egress, want[i].fate)
				}
				fates[fate]++
			}
			if name != "unlimited" && fates[Passed] > len(packets)*99/100 || fates[Passed] < 100 {
				t.Errorf("%s at %d bit/s: fates %v show too little", name, rate, fates)
			}
		}
	}
}

// Once the queue is as long as it gets, nothing allocates.
func TestAllocations(t *testing.T) {
	packets := bursty(20000, 13)
	link, offset := must(NewLink(lossyLink))(t), int64(0)
	if got := testing.AllocsPerRun(3, func() {
		for _, p := range packets {
			link.Send(offset+p.Time, int(p.Bytes))
		}
		offset += packets[len(packets)-1].Time + 100_000
	}); got != 0 {
		t.Errorf("%v allocations for %d packets, want none", got, len(packets))
	}
}
