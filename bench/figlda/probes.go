package figlda

import (
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
)

// frequencies are those of section IV-C: as often as an LDA is sent, as many
// packets as it takes, as many bytes, and enough to compare with it.
var frequencies = []float64{1, 7, 144, 10_000}

// perSecond names a frequency.
func perSecond(hertz float64) string {
	if hertz == 1 {
		return "1 probe a second"
	}
	return number(hertz) + " probes a second"
}

// probe sends probes for one interval, at the times of a Poisson process of so
// many a second. Each has a delay of the packets' law, and is lost if the
// packet is that is sent when it is. They do not disturb the packets. Where no
// probe arrives all is 0.
func (p *Passage) probe(hertz float64, random *rand.Rand) estimate.Delay {
	delays := p.Law.draw(random.Uint64())
	var arrived estimate.Moments
	for at := random.ExpFloat64() / hertz; at < 1; at += random.ExpFloat64() / hertz {
		delay := delays.Draw()
		if !p.Lost[int(at*float64(len(p.Lost)))] {
			arrived.Add(delay)
		}
	}
	d, _ := experiment.Answer(arrived.Delay())
	return d
}

// probing is what runs of probes at one loss rate gave.
type probing struct {
	mean, stdDev estimate.Moments // relative errors
	sample       estimate.Moments
	errors       []float64 // relative error of the mean, by run
}

// probes runs probes at a rate a number of times. A run without a probe that
// arrives has no mean, and one with fewer than two no deviation; both count as
// answers of 0, an error of 100 %.
func (p *Passage) probes(run *experiment.Run, hertz float64, runs int) probing {
	random := run.Rand("probes " + number(hertz) + " " + number(p.LossRate))
	var pr probing
	for range runs {
		d := p.probe(hertz, random)
		off := estimate.RelativeError(d.Mean, p.Truth.Mean)
		pr.mean.Add(off)
		pr.errors = append(pr.errors, off)
		pr.stdDev.Add(estimate.RelativeError(d.StdDev, p.Truth.StdDev))
		pr.sample.Add(float64(d.N))
	}
	return pr
}

// maximum returns the mean of the largest of n absolute values of standard
// normal numbers.
func maximum(runs int) float64 {
	sum := 0.0
	const step = 1e-3
	for x := step / 2; x < 10; x += step {
		sum += step * (1 - math.Pow(math.Erf(x/math.Sqrt2), float64(runs)))
	}
	return sum
}
