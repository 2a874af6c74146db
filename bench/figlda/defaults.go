package figlda

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

// ldaDefaults tries the default Config over its whole range.
var ldaDefaults = experiment.Experiment{
	Name: "ours-lda-defaults", Title: "The default Config over its range",
	Claim: "One Config for 10⁴ to 10⁷ packets an interval: without loss its deviation is within 2 % whatever the delays, and never worse " +
		"than by eq. (5).",
	Weight: 55, Quick: 2,
	Measure: measureDefaults,
}

// A tail is a law of delays of mean about 1.
type tail struct {
	name string
	draw func(r *rand.Rand) float64
}

var tails = []tail{
	{"constant", func(*rand.Rand) float64 { return 1 }},
	{"exponential", (*rand.Rand).ExpFloat64},
	{"Weibull 0.6", func(r *rand.Rand) float64 { return math.Pow(r.ExpFloat64(), 1/0.6) / 1.5 }},
	{"Pareto 3", func(r *rand.Rand) float64 { return math.Pow(1-r.Float64(), -1.0/3) / 1.5 }},
	{"lognormal σ=2", func(r *rand.Rand) float64 { return math.Exp(2*r.NormFloat64() - 2) }},
	{"one in 10⁴ 1,000 times slower", func(r *rand.Rand) float64 {
		if r.IntN(10_000) == 0 {
			return 1000 * r.ExpFloat64()
		}
		return r.ExpFloat64()
	}},
}

// measureDefaults measures the error of the deviation without loss, and that
// of eq. (5).
func measureDefaults(run *experiment.Run) {
	t := run.Table("deviation", "Error of the deviation without loss", "delays", "packets", "ours", "eq. (5)")
	sizes := []int{10_000, 100_000, 1_000_000}
	sizes = sizes[:run.Pick(2, 3)]
	worst, behind := 0.0, 0.0
	for _, law := range experiment.Each(run, tails) {
		for _, packets := range sizes {
			var mine, theirs estimate.Moments
			for range run.Pick(8, 40) {
				a, b := deviationErrors(run, run.Rand(fmt.Sprint(law.name, packets, mine.N())), law, packets)
				mine.Add(a)
				theirs.Add(b)
			}
			t.Row(law.name, packets, percent(mine.Mean()), percent(theirs.Mean()))
			worst = max(worst, mine.Mean())
			behind = max(behind, mine.Mean()-1.1*theirs.Mean())
		}
	}
	run.Within("worst error of the deviation without loss", "≤ 2 %", worst, 0.02, 0).Headline = true
	run.Keeps("deviation worse than eq. (5) by over a tenth", "nowhere",
		map[bool]string{true: "nowhere", false: "by " + percent(behind) + " of the deviation"}[behind <= 0.001], behind <= 0.001)
}

// deviationErrors returns the errors of ours and of eq. (5), relative to the
// deviation, or to the mean if the deviation is 0.
func deviationErrors(run *experiment.Run, random *rand.Rand, law tail, packets int) (mine, theirs float64) {
	run.Alive()
	up, down := experiment.Try(lda.New(lda.DefaultConfig)), experiment.Try(lda.New(lda.DefaultConfig))
	var truth estimate.Moments
	for i := range int64(packets) {
		p, delay := hashing.Packet(random.Uint64()), int64(1e6*law.draw(random))
		truth.Add(float64(delay))
		up.Update(p, 1000*i)
		down.Update(p, 1000*i+delay)
	}
	want, scale := math.Sqrt(truth.PopulationVariance()), math.Sqrt(truth.PopulationVariance())
	if want == 0 {
		scale = truth.Mean()
	}
	r := experiment.Try(lda.Estimate(up, down))
	variance := experiment.Try(lda.Paper.CollapsedVariance(up, down))
	return math.Abs(r.StdDev-want) / scale, math.Abs(math.Sqrt(max(variance, 0))-want) / scale
}
