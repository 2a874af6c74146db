package colate

import (
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/traffic"
)

// A jam is traffic through a queue that loses only what finds its buffer full,
// so that what is lost is lost when delays are longest: bursts of more than the
// link takes, now and then. Flow 1 has half of the packets, flows 2 to 11 a
// twentieth each, the others are small.
type jam struct {
	rate    float64 // packets a second
	seconds float64
	buffer  float64 // s
	load    float64 // while there is no burst
	burst   float64 // and while there is one
	lasting float64 // s, of a burst
	apart   float64 // s, between them
}

// jams lose some 1 to 12 %.
var jams = []jam{
	{rate: 10_000, seconds: 8, buffer: 0.02, load: 0.7, burst: 1.3, lasting: 0.1, apart: 1},
	{rate: 10_000, seconds: 8, buffer: 0.02, load: 0.7, burst: 2, lasting: 0.05, apart: 0.5},
	{rate: 10_000, seconds: 8, buffer: 0.05, load: 0.7, burst: 1.5, lasting: 0.3, apart: 2},
	{rate: 10_000, seconds: 8, buffer: 0.005, load: 0.9, burst: 1.5, lasting: 0.1, apart: 0.2},
}

// pass returns what is sent, and what of it arrived.
func (j jam) pass(seed uint64) (sent []passage, lost int) {
	rng := rand.New(rand.NewPCG(seed, 7))
	queue, now, until := 0.0, 0.0, 0.0
	next, bursting := j.apart*rng.ExpFloat64(), false
	service := j.load / j.rate // s a packet
	for now < j.seconds {
		rate := j.rate
		if bursting {
			rate *= j.burst / j.load
		}
		gap := rng.ExpFloat64() / rate
		now += gap
		queue = max(queue-gap, 0)
		if !bursting && now > next {
			bursting, until = true, now+j.lasting*(0.5+rng.Float64())
		} else if bursting && now > until {
			bursting, next = false, now+j.apart*rng.ExpFloat64()
		}
		flow := hashing.Flow(0)
		switch x := rng.Float64(); {
		case x < 0.4:
			flow = 1
		case x < 0.8:
			flow = 2 + hashing.Flow(rng.IntN(10))
		default:
			flow = 12 + hashing.Flow(300*rng.Float64()*rng.Float64())
		}
		p := passage{Flow: hashing.Flow(hashing.Mix(uint64(flow)*77, seed)), Packet: hashing.Packet(rng.Uint64()), Sent: int64(now * 1e9)}
		if queue > j.buffer {
			p.Lost = true
			lost++
		} else {
			queue += service
			p.At = p.Sent + int64(queue*1e9)
		}
		sent = append(sent, p)
	}
	return sent, lost
}

// Where what is lost is lost when delays are longest, the epochs that a flow's
// counters cannot tell of are the worst ones. Intervals hold these too, of means and of
// deviations, of elephants and of small flows, and those of joint decoding.
func TestLostWhenLongest(t *testing.T) {
	if testing.Short() {
		t.Skip("statistics of one goroutine, which take long")
	}
	var flows, answers, hits, known, held [2]int // of large and of small flows
	decoded, right := 0, 0
	for n, j := range jams {
		all, lost := j.pass(uint64(n))
		t.Logf("%.1f %% lost", 100*float64(lost)/float64(len(all)))
		for oneIn, period := range map[uint32]int64{0: 1e8, 50: 4e8} {
			c := cutAt(period)
			c.Counters, c.OneIn, c.Samples, c.Shift = 1000, oneIn, int(oneIn)*1000, 5
			w := world{config: c}
			epochs, arrived := w.cut(t, all)
			list := traffic.Truths(arrived, 20)
			a := w.follow(t, epochs, recordsOf(list))
			for i, f := range list {
				k := 0
				if f.Packets < uint64(len(arrived)/50) {
					k = 1
				}
				flows[k]++
				r, err := a.ask(i)
				if err != nil {
					continue
				}
				answers[k]++
				if in := r.MeanInterval(0.95); in.Contains(f.Mean) {
					hits[k]++
				}
				if r.StdDev > 0 {
					known[k]++
					if in := r.DeviationInterval(0.95); in.Contains(f.Deviation) {
						held[k]++
					}
				}
			}
			w.config.Period = 2e8
			list, r := w.decoded(t, all, recordsOf)
			for i, f := range list {
				if in := r.MeanInterval(i, 0.95); f.Packets >= 1000 && r.Usable[i] > 0 {
					decoded++
					if in.Contains(f.Mean) {
						right++
					}
				}
			}
		}
	}
	t.Logf("of %v flows %v answers, %v hold; %v deviations, %v hold; decoded: %d, %d hold", flows, answers, hits, known, held, decoded, right)
	enough := func(what string, hits, n, least int) {
		if float64(hits) < 0.95*float64(n)-shortfall(n, 0.95) || n < least {
			t.Errorf("%s: %d of %d intervals hold, want %d answers", what, hits, n, least)
		}
	}
	for k, what := range []string{"large", "small"} {
		enough(what, hits[k], answers[k], flows[k]*6/10)
		enough(what+", deviations", held[k], known[k], 0)
	}
	enough("decoded", right, decoded, 60)
}
