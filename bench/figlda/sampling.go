package figlda

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
)

var ldaSampling = experiment.Experiment{
	Name:  "ours-lda-sampling",
	Group: ours,
	Title: "Sampling: p = 0.5·m/(L+1), p = m/L, and powers of two",
	Claim: "The paper samples with p = αm/(L+1) and α = 0.5, which maximises the bound of eq. (2), E[S] ≥ α(1 − α)·mR/(L+1) " +
		"(sections III-D, IV). The expectation itself, pR·(1 − p/m)^L, is greatest at p = m/L: a sample 21 % larger, so an error of the " +
		"mean about 9 % smaller.",
	Weight: 12, Quick: 1.5,
	Measure: measureSampling,
}

// A tuning chooses the sampling probability by the number of lost packets.
type tuning struct {
	name  string
	paper bool
	share func(lost float64) float64
}

var tunings = []tuning{
	{"p = 0.5·m/(L+1)", true, func(lost float64) float64 { return min(1, alpha*rows/(lost+1)) }},
	{"the power of two below", true, func(lost float64) float64 { return shareOf(lda.Paper.ShiftFor(rows, lost, alpha)) }},
	{"p = m/L", false, func(lost float64) float64 { return min(1, rows/lost) }},
	{"the power of two below that", false, func(lost float64) float64 { return shareOf(lda.ShiftFor(rows, lost)) }},
}

// atBest is how far behind one of the paper's tunings its counterpart is.
const atBest = 2

// sampled is what some runs of a tuning at one loss rate gave.
type sampled struct {
	share    float64 // of the packets
	sample   estimate.Moments
	mean     estimate.Moments // relative error
	expected float64          // sample
}

// tunedSweep is what a tuning gave, by law and loss rate.
type tunedSweep [][]sampled

func measureSampling(run *experiment.Run) {
	const runs = 10
	of := make([]tunedSweep, len(tunings))
	for i, law := range experiment.Each(run, Laws) {
		for j := range of {
			of[j] = append(of[j], make([]sampled, len(ourLosses)))
		}
		for k, p := range passages(run, law, ourLosses) {
			for j, tune := range experiment.Each(run, tunings) {
				s := &of[j][i][k]
				s.share = tune.share(float64(p.Losses))
				for r := range runs {
					s.measure(p, run.SeedOf(fmt.Sprint("hash ", r)))
				}
			}
		}
	}
	drawSampling(run, of, runs)
	tabulateSampling(run, of)
	judgeSampling(run, of, runs)
	run.Config("laws", Laws, "losses", ourLosses, "runs", runs, "rows", rows, "sum bits", sumBits, "alpha", alpha)
	run.Note(
		"Where the probability is 1 because few packets are lost, all tunings but the power of two below 0.5·m/(L+1) take every packet.",
		"A power of two at or below p = m/L is, where it is not the same, as likely to be near it as near half of it, where the paper's is; "+
			"it costs up to 18 % of the sample, where the paper's costs up to 36 % of its own.",
		"The error of a mean varies with the delays' deviation over √S, so 21 % more samples are 9 % less error; ten runs at one point need "+
			"not show that, all points together do.",
	)
}

// measure adds a run.
func (s *sampled) measure(p *Passage, seed uint64) {
	up, down := onBank(p, s.share, seed)
	result := experiment.Try(lda.Estimate(up, down))
	s.sample.Add(float64(result.N))
	s.mean.Add(estimate.RelativeError(result.Mean, p.Truth.Mean))
	c := up.Config()
	s.expected = c.Expect(s.share*float64(len(p.Delays)), p.LossRate).Sample
}

func drawSampling(run *experiment.Run, of []tunedSweep, runs int) {
	sample := run.Figure(plot.Figure{
		Name: "sample", Title: "Effective sample, of the most that is possible", X: LossAxis,
		Y:       plot.Axis{Label: "share of the expectation at p = m/L (%)"},
		Caption: fmt.Sprintf("Markers: average of %d runs and %d distributions. Lines: the exact expectation.", runs, len(Laws)),
	})
	mean := run.Figure(plot.Figure{
		Name: "mean", Title: "Relative error of the average delay, " + Laws[0].Name, X: LossAxis, Y: errorAxis,
		Caption: fmt.Sprintf("Average of %d runs.", runs),
	})
	for j, tune := range tunings {
		got := plot.Series{Name: tune.name, Pair: j + 1, Kind: plot.Markers, Paper: tune.paper}
		expected := plot.Series{Pair: j + 1, Kind: plot.Line, Paper: tune.paper}
		off := plot.Series{Name: tune.name, Pair: j + 1, Paper: tune.paper}
		for k, loss := range ourLosses {
			best := of[atBest][0][k].expected
			var all estimate.Moments
			for i := range of[j] {
				all.Merge(of[j][i][k].sample)
			}
			got.Add(100*loss, 100*all.Mean()/best)
			expected.Add(100*loss, 100*of[j][0][k].expected/best)
			off.Add(100*loss, 100*of[j][0][k].mean.Mean())
		}
		sample.Series = append(sample.Series, got, expected)
		mean.Series = append(mean.Series, off)
	}
}

// worstMean is the greatest error of the mean of any distribution.
func (t tunedSweep) worstMean(counts func(loss float64) bool) float64 {
	worst := 0.0
	for _, points := range t {
		for k := range points {
			if counts(ourLosses[k]) {
				worst = max(worst, points[k].mean.Mean())
			}
		}
	}
	return worst
}

func tabulateSampling(run *experiment.Run, of []tunedSweep) {
	t := run.Table("sampling", "Sampling probability, sample, and error of the mean (worst of the distributions)", "loss rate")
	for _, tune := range tunings {
		t.Columns = append(t.Columns, tune.name)
	}
	for k, loss := range ourLosses {
		row := []string{experiment.Percent(loss)}
		for _, tuned := range of {
			s := &tuned[0][k]
			worst := tuned.worstMean(func(l float64) bool { return l == loss })
			row = append(row, fmt.Sprintf("%s; %.0f; %s", experiment.Number(s.share), s.sample.Mean(), experiment.Percent(worst)))
		}
		t.Add(row...)
	}
}

// over is the geometric mean, over all points at which another tuning leaves out
// packets, of what this one has over it.
func (t tunedSweep) over(other tunedSweep, value func(*sampled) float64) float64 {
	var logs estimate.Moments
	for i := range t {
		for k := range t[i] {
			if other[i][k].share == 1 {
				continue
			}
			logs.Add(math.Log(value(&t[i][k]) / value(&other[i][k])))
		}
	}
	return math.Exp(logs.Mean())
}

func judgeSampling(run *experiment.Run, of []tunedSweep, runs int) {
	ratio := func(x float64) string { return fmt.Sprintf("%.2f times", x) }
	for j, kind := range []string{"with the exact probability", "with a power of two"} {
		more := of[atBest+j].over(of[j], func(s *sampled) float64 { return s.sample.Mean() })
		less := of[atBest+j].over(of[j], func(s *sampled) float64 { return s.mean.Mean() })
		run.Claim("sample at p = m/L over that at p = 0.5·m/(L+1), "+kind+", where the latter is below 1", "1", ratio(more),
			experiment.Judge(1/more, 1, 0.02))
		run.Claim("error of the mean at p = m/L over that at p = 0.5·m/(L+1), "+kind, "1", ratio(less),
			experiment.Judge(less, 1, 0.02)).Headline = j == 1
	}
	for _, c := range []struct {
		name  string
		limit float64
		at    func(loss float64) bool
	}{
		{"below 0.1 % loss", 0.003, func(loss float64) bool { return loss < 0.001 }},
		{"at 20 % loss", 0.04, func(loss float64) bool { return loss == 0.2 }},
	} {
		run.Within("error of the mean "+c.name+" with the power of two below m/L, worst of the distributions",
			"< "+experiment.Percent(c.limit), of[atBest+1].worstMean(c.at), c.limit, chance(runs))
	}
}
