package figlda

import (
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
)

var worstCase = experiment.Experiment{
	Name: "lda-max", Title: "Largest error of ten runs at 0.16 % loss",
	Claim: "At 0.16 % loss, for which the two-bank LDA was tuned, no run is off by more than 0.17 %; of the probes, runs are off by up to " +
		"87 % at 7 a second, 13 % at 144 and 0.15 % at 10,000 (section IV-C).",
	Weight: 8, Quick: 0.8, Measure: measureWorstCase,
}

// doubtful is the probability below which the paper's largest error does not
// fit its sample.
const doubtful = 0.01

// typicalLargest is the median, over repeats of the paper's ten runs, of the
// largest error among them.
func typicalLargest(errors []float64) float64 {
	var largest []float64
	for ten := range slices.Chunk(errors, runs) {
		largest = append(largest, slices.Max(ten))
	}
	slices.Sort(largest)
	return largest[len(largest)/2]
}

func measureWorstCase(run *experiment.Run) {
	t := NewTrace(run, Laws[0])
	p := t.Lose(run, someLoss, episode)
	repeats := run.Pick(11, 21)
	pt := p.measure(run, twoBanks, runs*repeats)
	variation := p.Truth.StdDev / p.Truth.Mean

	table := run.Table("max", fmt.Sprintf("Largest relative error of %d runs at %s loss, %s", runs, percent(someLoss), t.Law.Name),
		"method", "sample", "paper", "measured", "to expect of such a sample", "probability of the paper's or less")
	judge := func(name string, claimed, sample, worst float64) {
		one := variation / math.Sqrt(sample)
		expected := one * maximum(runs)
		chance := math.Pow(math.Erf(claimed/one/math.Sqrt2), runs)
		off := worst > 1.5*claimed || worst < claimed/1.5
		table.Row(name, number(sample), percent(claimed), percent(worst), percent(expected), fmt.Sprintf("%.2g", chance))
		run.Holds("largest of ten errors, "+name, percent(claimed), percent(worst), !(off && chance < doubtful))
	}
	judge("LDA, two banks", 0.0017, pt.sample.Mean(), typicalLargest(pt.errors))
	for i, claimed := range []float64{0.87, 0.13, 0.0015} {
		hertz := frequencies[1+i]
		pr := p.probes(run, hertz, runs*repeats)
		judge(perSecond(hertz), claimed, pr.sample.Mean(), typicalLargest(pr.errors))
	}
	run.Config("packets", len(t.Delays), "runs", runs, "repeats", repeats, "loss", someLoss, "loss that came about", p.LossRate,
		"episode", episode, "law", t.Law.Name, "mean delay ns", meanDelay, "lda", pt.config)
	run.Notef("Ten runs were repeated %d times; of the largest errors the median is given. The claim does not hold where that is off by more "+
		"than a factor of 1.5 and the paper's number has a probability below %s.", repeats, percent(doubtful))
	run.Notef("The mean of S independent delays whose deviation is c times their mean is off by c/√S in the root mean square, whichever way "+
		"they are picked; %s delays have c = %.2f. The largest of ten such errors is %.2f times that on average. The last column is the chance "+
		"that ten errors are all as small as the paper's largest: where it is next to nothing, the paper's numbers are not those of averages "+
		"of so many independent delays.", t.Law.Name, variation, maximum(runs))
}

var bandwidth = experiment.Experiment{
	Name: "lda-bandwidth", Title: "Bandwidth of probes for equal accuracy",
	Claim:  "Probes need 50 to 60 times the bandwidth of an LDA for results of similar accuracy (section IV-C).",
	Weight: 22, Quick: 2.5, Measure: measureBandwidth,
}

func measureBandwidth(run *experiment.Run) {
	const (
		hashes     = 50 // runs of the LDA
		confidence = 0.95
		paperLow   = 50
		paperHigh  = 60
	)
	t := NewTrace(run, Laws[0])
	shares := []float64{0.001, someLoss, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2}
	checks := run.Pick(50, 200) // runs of probes at the rate that should be as good

	claimed := plot.Series{Name: "the paper's 50 to 60", Kind: plot.Band, Paper: true}
	measured := plot.Series{Name: "two-bank LDA"}
	table := run.Table("bandwidth", "What probes need to be as good as a two-bank LDA",
		"loss rate", "LDA error (r.m.s.)", "probes a second for the same", "their error, measured", "bandwidth ratio")
	var tuned, highest float64
	lowest := math.Inf(1)
	for _, share := range experiment.Each(run, shares) {
		p := t.Lose(run, share, episode)
		pt := p.measure(run, twoBanks, hashes)
		rms := math.Sqrt(pt.squares / hashes)
		ratio := func(rms float64) float64 { return p.probesFor(rms) * probeSize / float64(pt.config.EncodedSize()) }
		limits := estimate.DeviationInterval(rms, hashes, confidence)
		got := ratio(rms)
		measured.AddRange(100*p.LossRate, got, ratio(limits.High), ratio(limits.Low))
		claimed.AddRange(100*p.LossRate, math.Sqrt(paperLow*paperHigh), paperLow, paperHigh)
		var squares estimate.Moments
		for r := range checks {
			d := p.probe(p.probesFor(rms), run.Rand(fmt.Sprint("check ", share, r)))
			off := estimate.RelativeError(d.Mean, p.Truth.Mean)
			squares.Add(off * off)
		}
		table.Row(percent(p.LossRate), percent(rms), number(p.probesFor(rms)), percent(math.Sqrt(squares.Mean())), number(got))
		if share == someLoss {
			tuned = got
		}
		lowest, highest = min(lowest, got), max(highest, got)
		run.Config("lda", pt.config)
	}
	run.Draw("", "Probe bandwidth over LDA bandwidth for equal error of the average delay",
		fmt.Sprintf("Root mean square error of %d runs of the two-bank LDA; the bars are its %.0f %% interval. "+
			"Loss episodes of %d packets, %s delays.", hashes, 100*confidence, episode, t.Law.Name), LossAxis, plot.LogAxis("times the bandwidth"),
		claimed, measured)
	run.Claim("bandwidth of probes for the error of the LDA at 0.16 % loss, in times the LDA's", "50–60", number(tuned),
		ratioVerdict(tuned, paperLow, paperHigh))
	run.Holds("the same at every loss rate from 0.1 % to 20 %", "50–60", number(lowest)+" to "+number(highest), lowest >= paperLow)
	run.Config("packets", len(t.Delays), "hashes", hashes, "checks", checks, "losses", shares, "episode", episode, "law", t.Law.Name,
		"mean delay ns", meanDelay, "bytes of a probe", probeSize)
	run.Note("An LDA is sent once an interval in its encoding; a probe has 64 bytes. How many probes are as good follows from the variation " +
		"of the delays, c²/error²; the fourth column checks it by sending them.")
}

// ratioVerdict judges a ratio that is the better the greater it is.
func ratioVerdict(ratio, low, high float64) experiment.Verdict {
	switch {
	case ratio > high:
		return experiment.Win
	case ratio < low:
		return experiment.Loss
	}
	return experiment.AsGood
}

// probesFor is how many probes a second are off by a root mean square error:
// the mean of n delays is off by their variation over √n.
func (p *Passage) probesFor(rms float64) float64 {
	variation := p.Truth.StdDev / p.Truth.Mean
	return variation * variation / (rms * rms) / (1 - p.LossRate)
}
