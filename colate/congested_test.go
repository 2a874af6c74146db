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
	buffer         float64 // s
	load, burst    float64 // while there is no burst, and while there is one
	lasting, apart float64 // s, of a burst, and between them
}

// jams lose some 1 to 12 %.
var jams = []jam{
	{buffer: 0.02, load: 0.7, burst: 1.3, lasting: 0.1, apart: 1},
	{buffer: 0.02, load: 0.7, burst: 2, lasting: 0.05, apart: 0.5},
	{buffer: 0.05, load: 0.7, burst: 1.5, lasting: 0.3, apart: 2},
	{buffer: 0.005, load: 0.9, burst: 1.5, lasting: 0.1, apart: 0.2},
}

// pass returns what is sent, and what of it arrived.
func (j jam) pass(seed uint64) (sent []passage, lost int) {
	rng := rand.New(rand.NewPCG(seed, 7))
	queue, now, until := 0.0, 0.0, 0.0
	next, bursting := j.apart*rng.ExpFloat64(), false
	const usual, seconds = 10_000, 8 // packets a second
	service := j.load / usual        // s a packet
	for now < seconds {
		rate := float64(usual)
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
	var flows [2]int // large and small
	var means, deviations [2]score
	var decoded score
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
				r := a.answer(i, false)
				if r.Err != nil {
					continue
				}
				if means[k].add(r.MeanInterval(0.95), f.Mean); r.StdDev > 0 {
					deviations[k].add(r.DeviationInterval(0.95), f.Deviation)
				}
			}
			w.config.Period = 2e8
			list, r := w.decoded(t, all, recordsOf)
			for i, f := range list {
				if f.Packets >= 1000 && r.Usable[i] > 0 {
					decoded.add(r.MeanInterval(i, 0.95), f.Mean)
				}
			}
		}
	}
	for k, what := range []string{"large", "small"} {
		means[k].want(t, what, flows[k]*6/10)
		deviations[k].want(t, what+", deviations", 0)
	}
	decoded.want(t, "decoded", 60)
}
