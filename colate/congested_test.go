package colate

import (
	"math/rand/v2"

	"github.com/hoplag/hoplag/hashing"
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

// pass returns what is sent.
func (j jam) pass(rng *rand.Rand) (sent []passage) {
	seed := rng.Uint64()
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
		} else {
			queue += service
			p.At = p.Sent + int64(queue*1e9)
		}
		sent = append(sent, p)
	}
	return sent
}
