package figlda

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
)

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
