package figclock

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

const (
	second  = 1e9
	epoch   = 1_790_000_000_000_000_000 // when a world begins, by the near clock
	ahead   = 5e6                       // ns, the far clock
	gaining = 30e-6

	jitter = 2e3 // ns, mean of each of the two further hops of packets

	probeBytes = 90 // an NTP packet on Ethernet
	polls      = 8  // number from which NTP's filter chooses, one a second
)

// A setting is what all runs of one row of a table share.
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
	work     float64 // left in the queue by that packet
	burst    int     // packets that follow it in its burst
	count    uint64
	sum, n   float64 // of the delays measured
	true     float64 // sum of the true delays
}

func newRoad(rng *rand.Rand, set *setting, side int) *road {
	config := lda.DefaultConfig
	config.DigestBits = 16
	up, down := experiment.Try(lda.New(config)), experiment.Try(lda.New(config))
	return &road{rng: rng, set: set, side: side, up: up, down: down}
}

// least returns what a packet takes apart from the queue: the floor, and two hops that are hardly loaded.
func (r *road) least() float64 {
	return r.set.floor[r.side] + jitter*(r.rng.ExpFloat64()+r.rng.ExpFloat64())
}

// gap returns the time to the next packet.
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

// drive sends the packets of a second, and returns how long the queue would have delayed a probe at each of the
// given ascending times. skew is how far the far clock is ahead.
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

// An exchange is a probe going there and its answer.
type exchange struct {
	sent, there, back float64 // when, and the measured delays
}

// offset returns NTP's estimate from an exchange, and roundTrip the length by which NTP chooses.
func (e *exchange) offset() float64    { return (e.there - e.back) / 2 }
func (e *exchange) roundTrip() float64 { return e.there + e.back }

// exchanges drives both directions for a second, with a number of probes.
func exchanges(roads [2]*road, end float64, count int, skew func(float64) float64) []exchange {
	sent := make([]float64, count)
	for i := range sent {
		sent[i] = end - second + (float64(i)+roads[0].rng.Float64())*0.98*second/float64(count)
	}
	there := roads[0].drive(end, sent, skew)
	order, times := make([]int, len(there)), make([]float64, len(there)) // in the order in which they are answered
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

// The methods, by index.
const (
	means  = iota // half the difference of the mean delays, in the last second
	filter        // NTP's: of eight polls, one a second, the one with the shortest round trip
	probed        // as many bytes of probes as the LDAs take, over all seconds, through package clock
	ours          // the cells of all seconds
	methods
)

var names = [methods]string{"means", "NTP's filter, 1 probe/s", "probes of equal bytes, our line", "cells, 10 s"}

// An outcome holds the error of each method, NaN if it has no answer.
type outcome struct {
	offset           [methods]float64 // ns
	drift            float64          // error of ours, as a fraction
	certain, likely  float64          // widths of our intervals, ns
	excluded, missed bool             // the truth is outside the certain or the likely interval
}

// measure runs one world of a setting through all methods.
func measure(rng *rand.Rand, set setting) outcome {
	theta := func(t float64) float64 { return ahead + gaining*t }
	roads := [2]*road{newRoad(rng, &set, 0), newRoad(rng, &set, 1)}
	bytes := lda.DefaultConfig.EncodedSize()
	trackers := [methods]*clock.Tracker{}
	for _, m := range []int{probed, ours} {
		c := clock.DefaultConfig
		c.Window, c.Asymmetry = max(1, set.seconds), 0
		trackers[m] = experiment.Try(clock.New(c))
	}
	out := outcome{}
	for m := range methods {
		out.offset[m] = math.NaN()
	}
	var polled []exchange
	for s := range set.seconds {
		end := float64(s+1) * second
		probes := exchanges(roads, end, bytes/probeBytes, theta)
		if len(probes) > 0 {
			polled = append(polled, probes[rng.IntN(len(probes))])
		}
		feed(trackers, roads, probes, end)
		mean := (roads[0].sum/roads[0].n - roads[1].sum/roads[1].n) / 2
		if s < set.seconds-1 {
			continue
		}
		middle := end - second/2
		out.offset[means] = math.Abs(mean - theta(middle))
		e := slices.MinFunc(polled[max(0, len(polled)-polls):],
			func(a, b exchange) int { return cmp.Compare(a.roundTrip(), b.roundTrip()) })
		out.offset[filter] = math.Abs(e.offset() - theta(e.sent))
		out.read(trackers, epoch+int64(middle), theta(middle))
	}
	return out
}

// feed gives each tracker its samples of a second: the probes', and those of
// cells of one packet in both directions.
func feed(trackers [methods]*clock.Tracker, roads [2]*road, probes []exchange, end float64) {
	var there, back []clock.Sample
	for _, e := range probes {
		there = append(there, clock.Sample{Time: epoch + int64(e.sent), Delay: int64(math.Ceil(e.there)), Packets: 1})
		back = append(back, clock.Sample{Time: epoch + int64(e.sent+e.roundTrip()), Delay: int64(math.Ceil(e.back)), Packets: 1})
	}
	// An error means that the offset is not known yet; read finds out at the end.
	_, _ = trackers[probed].Add(there, back)
	middle := epoch + int64(end-second/2)
	there = experiment.Try(lda.AppendClockSamples(nil, roads[0].up, roads[0].down, middle, false))
	back = experiment.Try(lda.AppendClockSamples(nil, roads[1].up, roads[1].down, middle, true))
	_, _ = trackers[ours].Add(there, back)
}

// read reads the trackers.
func (o *outcome) read(trackers [methods]*clock.Tracker, at int64, truth float64) {
	for _, m := range []int{probed, ours} {
		r, err := trackers[m].At(at)
		if err != nil {
			continue
		}
		o.offset[m] = math.Abs(r.Offset - truth)
		if m == ours {
			o.drift = math.Abs(r.Drift - gaining)
			o.certain, o.likely = r.Certain.High-r.Certain.Low, r.Likely.High-r.Likely.Low
			o.excluded, o.missed = !r.Certain.Contains(truth), !r.Likely.Contains(truth)
		}
	}
}

// typical returns the median of a method's errors, NaN if half the runs had none.
func typical(all []outcome, of func(*outcome) float64) float64 {
	var known []float64
	for i := range all {
		known = append(known, of(&all[i]))
	}
	if known = perflow.Known(known); 2*len(known) <= len(all) {
		return math.NaN()
	}
	slices.Sort(known)
	return known[len(known)/2]
}
