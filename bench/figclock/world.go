package figclock

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

const (
	second  = 1e9
	epoch   = 1_790_000_000_000_000_000 // when a world begins, by the near clock
	ahead   = 5e6                       // ns, the far clock
	gaining = 30e-6

	jitter = 2e3 // ns, mean of each of the two hops more that packets take

	probeBytes = 90 // an NTP packet on Ethernet
	polls      = 8  // that NTP's filter chooses from, one a second
)

// A setting is what one point of a figure has in common.
type setting struct {
	load    [2]float64 // there, and back
	packets float64    // a second, each way
	loss    float64
	floor   [2]float64 // ns
	bursts  bool
	seconds int
}

var usual = setting{load: [2]float64{0.8, 0.8}, packets: 1e5, floor: [2]float64{5e5, 5e5}, loss: 0.001, seconds: 10}

// A road carries packets one way.
type road struct {
	rng      *rand.Rand
	set      *setting
	side     int
	up, down *lda.Aggregator
	now      float64 // when the latest packet was sent
	work     float64 // that it left in the queue
	burst    int     // packets that come with it
	count    uint64
	sum, n   float64 // of the delays measured
	true     float64 // sum of the delays that they were
}

func newRoad(rng *rand.Rand, set *setting, side int) *road {
	config := lda.DefaultConfig
	config.DigestBits = 16
	up, down := experiment.Try(lda.New(config)), experiment.Try(lda.New(config))
	return &road{rng: rng, set: set, side: side, up: up, down: down}
}

// least is what a packet takes beside the queue: the floor, and two hops that
// are hardly loaded.
func (r *road) least() float64 {
	return r.set.floor[r.side] + jitter*(r.rng.ExpFloat64()+r.rng.ExpFloat64())
}

// gap is the time to the next packet.
func (r *road) gap() float64 {
	const inBurst = 1.3 / (1.3 - 1) * 4 // mean size of a burst, roughly
	mean := second / r.set.packets
	if !r.set.bursts {
		return mean * r.rng.ExpFloat64()
	}
	if r.burst--; r.burst > 0 {
		return 0
	}
	r.burst = int(min(4*math.Pow(1-r.rng.Float64(), -1/1.3), 1e4))
	return inBurst * mean * r.rng.ExpFloat64()
}

// drive sends the packets of a second, and returns what the queue would have
// delayed a probe at each of some times, which ascend. skew is what the far
// clock is ahead.
func (r *road) drive(end float64, probes []float64, skew func(float64) float64) []float64 {
	service := second / r.set.packets * r.set.load[r.side]
	r.up.Reset()
	r.down.Reset()
	r.sum, r.n, r.true = 0, 0, 0
	delays := make([]float64, 0, len(probes))
	for {
		gap := r.gap()
		for len(delays) < len(probes) && probes[len(delays)] < r.now+gap {
			delays = append(delays, r.least()+max(0, r.work-(probes[len(delays)]-r.now)))
		}
		r.now += gap
		r.work = max(0, r.work-gap)
		delay := r.least() + r.work
		r.work += service * r.rng.ExpFloat64()
		if r.now >= end {
			return delays
		}
		r.count++
		p := hashing.Word(uint64(r.side)+77, r.count)
		sent, received := r.now, r.now+delay
		if r.side == 0 {
			received += skew(received)
		} else {
			sent += skew(sent)
		}
		r.up.Update(p, epoch+int64(sent))
		if r.rng.Float64() >= r.set.loss {
			r.down.Update(p, epoch+int64(received))
			r.sum += received - sent
			r.true += delay
			r.n++
		}
	}
}

// An exchange is a probe there and its answer.
type exchange struct {
	sent, there, back float64 // when, and the delays as they are measured
}

// offset is what NTP makes of an exchange, and roundTrip how it chooses.
func (e *exchange) offset() float64    { return (e.there - e.back) / 2 }
func (e *exchange) roundTrip() float64 { return e.there + e.back }

// samples are the bounds that an exchange gives.
func (e *exchange) samples() (there, back clock.Sample) {
	there = clock.Sample{Time: epoch + int64(e.sent), Delay: int64(math.Ceil(e.there)), Packets: 1}
	back = clock.Sample{Time: epoch + int64(e.sent+e.roundTrip()), Delay: int64(math.Ceil(e.back)), Packets: 1}
	return there, back
}

// exchanges drives both roads for a second, with a number of probes.
func exchanges(roads [2]*road, end float64, count int, skew func(float64) float64) []exchange {
	sent := make([]float64, count)
	for i := range sent {
		sent[i] = end - second + (float64(i)+roads[0].rng.Float64())*0.98*second/float64(count)
	}
	there := roads[0].drive(end, sent, skew)
	order, times := make([]int, len(there)), make([]float64, len(there)) // in which they are answered
	for i, d := range there {
		order[i], times[i] = i, sent[i]+d
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(times[i], times[j]) })
	slices.Sort(times)
	var all []exchange
	for k, d := range roads[1].drive(end, times, skew) {
		i := order[k]
		all = append(all, exchange{sent[i], there[i] + skew(times[k]), d - skew(times[k])})
	}
	slices.SortFunc(all, func(a, b exchange) int { return cmp.Compare(a.sent, b.sent) })
	return all
}

// shortest is the exchange of the shortest round trip.
func shortest(all []exchange) exchange {
	return slices.MinFunc(all, func(a, b exchange) int { return cmp.Compare(a.roundTrip(), b.roundTrip()) })
}

// cells are what cells of one packet say of the clocks, in both directions.
func cells(roads [2]*road, middle int64) (there, back []clock.Sample) {
	return experiment.Try(lda.AppendClockSamples(nil, roads[0].up, roads[0].down, clock.There, middle)),
		experiment.Try(lda.AppendClockSamples(nil, roads[1].up, roads[1].down, clock.Back, middle))
}
