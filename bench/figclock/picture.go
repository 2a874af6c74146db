package figclock

import (
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/lda"
)

// picture draws mean delays over time, as they are measured and corrected, of a
// far clock that drifts, wanders and steps twice.
func picture(run *experiment.Run) {
	set := usual
	set.packets = 2e4
	seconds := run.Pick(30, 120)
	length := float64(seconds) * second
	theta := func(t float64) float64 {
		x := 2e6 - 25e-6*t + 10e3*math.Sin(2*math.Pi*t/(60*second))
		if t > 0.35*length {
			x += 1.5e6
		}
		if t > 0.7*length {
			x -= 4e5
		}
		return x
	}
	rng := run.Rand("picture")
	roads := [2]*road{newRoad(rng, &set, 0), newRoad(rng, &set, 1)}
	config := clock.DefaultConfig
	config.Wander = 2e-6
	tracker := experiment.Try(clock.New(config))
	raw := plot.Series{Name: "as measured", Kind: plot.Line, Paper: true}
	fixed := plot.Series{Name: "corrected", Kind: plot.Markers}
	truth := plot.Series{Name: "truth", Kind: plot.Line}
	band := plot.Series{Name: "certain", Kind: plot.Band}
	for s := range seconds {
		run.Alive()
		end := float64(s+1) * second
		set.load[0] = 0.5 + 0.4*math.Sin(2*math.Pi*float64(s)/25)
		exchanges(roads, end, 1, theta)
		middle := epoch + int64(end-second/2)
		there := experiment.Try(lda.AppendClockSamples(nil, roads[0].up, roads[0].down, clock.There, middle))
		back := experiment.Try(lda.AppendClockSamples(nil, roads[1].up, roads[1].down, clock.Back, middle))
		_, _ = tracker.Add(there, back)
		r := experiment.Try(lda.Estimate(roads[0].up, roads[0].down))
		x := end/second - 0.5
		raw.Add(x, r.Mean/1e3)
		truth.Add(x, roads[0].true/roads[0].n/1e3)
		reading, err := tracker.Between(epoch+int64(end-second), epoch+int64(end))
		if err != nil {
			continue
		}
		certain := reading.Correct(r.Delay, second/math.Sqrt(12)).Certain
		roads[0].down.Correct(reading)
		corrected := experiment.Try(lda.Estimate(roads[0].up, roads[0].down))
		fixed.Add(x, corrected.Mean/1e3)
		band.AddRange(x, corrected.Mean/1e3, certain.Low/1e3, certain.High/1e3)
	}
	run.Draw("corrected", "Mean delay each second, before and after",
		"The far clock loses 25 millionths, wanders by 10 µs within a minute, and is set ahead by 1.5 ms and back by 0.4 ms. The "+
			"band is what is certain of the corrected mean; in a second in which the clock was set it holds both.", plot.LinearAxis("time (s)"),
		plot.LinearAxis("mean delay (µs)"), band, raw, truth, fixed)
}
