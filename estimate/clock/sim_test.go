package clock

import (
	"math"
	"math/rand/v2"
)

// A link makes the delays of one direction: a floor, and what queueing adds.
type link struct {
	rng   *rand.Rand
	floor float64
	law   func(rng *rand.Rand, gap float64) float64
	last  float64
}

// queueing is the wait in a queue of Poisson arrivals that are as many to a second as given: by Lindley's
// recurrence, with service times drawn by serve.
func queueing(load, packets float64, serve func(*rand.Rand) float64) func(*rand.Rand, float64) float64 {
	wait := 0.0
	mean := 1e9 / packets * load
	return func(rng *rand.Rand, gap float64) float64 {
		left := gap
		// The packets that are not sampled come in between; beyond 5,000 they are not worth counting.
		for range 5000 {
			step := rng.ExpFloat64() * 1e9 / packets
			if step > left {
				break
			}
			left -= step
			wait = max(0, wait-step) + mean*serve(rng)
		}
		wait = max(0, wait-left)
		return wait
	}
}

func independent(draw func(*rand.Rand) float64) func(*rand.Rand, float64) float64 {
	return func(rng *rand.Rand, _ float64) float64 { return draw(rng) }
}

// A world is two points and what lies between them.
type world struct {
	rng   *rand.Rand
	links [2]link
	theta func(t float64) float64 // the far clock less the near one, by the near one
	rate  [2]float64              // samples a second
	now   int64
}

func newWorld(seed uint64, theta func(float64) float64, floors [2]float64, rate float64, laws ...func(*rand.Rand, float64) float64) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 7)), theta: theta, rate: [2]float64{rate, rate}, now: epoch}
	for d := range w.links {
		w.links[d] = link{rng: w.rng, floor: floors[d], law: laws[d%len(laws)]}
	}
	return w
}

// epoch is when the worlds begin, by the near clock: in 2026.
const epoch = 1_790_000_000_000_000_000

// interval makes the samples of the next interval, of the given length in nanoseconds.
func (w *world) interval(length float64) (samples [2][]Sample) {
	for d := range w.links {
		l := &w.links[d]
		for {
			gap := w.rng.ExpFloat64() * 1e9 / w.rate[d]
			if l.last+gap >= float64(w.now-epoch)+length {
				break
			}
			l.last += gap
			delay := l.floor + l.law(w.rng, gap)
			near, measured := l.last, delay+w.theta(l.last+delay)
			if d == back {
				near, measured = l.last+delay, delay-w.theta(l.last)
			}
			samples[d] = append(samples[d], Sample{epoch + int64(near), int64(math.Ceil(measured)), 1})
		}
	}
	w.now += int64(length)
	return samples
}

// steady is a clock of an offset and a drift.
func steady(offset, drift float64) func(float64) float64 {
	return func(t float64) float64 { return offset + drift*t }
}
