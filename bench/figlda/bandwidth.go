package figlda

import (
	"context"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
)

var bandwidth = experiment.Experiment{
	Name:   "lda-bandwidth",
	Group:  group,
	Title:  "Bandwidth of probes for equal accuracy",
	Claim:  "Probes need 50 to 60 times the bandwidth of an LDA for results of similar accuracy (section IV-C).",
	Weight: 22, Quick: 2.5,
	Run: runBandwidth,
}

func runBandwidth(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	const (
		hashes     = 50 // runs of the LDA
		confidence = 0.95
		paperLow   = 50
		paperHigh  = 60
	)
	t, err := NewTrace(run, Laws[0])
	if err != nil {
		return experiment.Result{}, err
	}
	shares := []float64{0.001, someLoss, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2}
	checks := run.Pick(50, 200) // runs of probes at the rate that should be as good
	step := run.Steps(ctx, len(shares)*(hashes+1))

	figure := plot.Figure{
		Title:   "Probe bandwidth over LDA bandwidth for equal error of the average delay",
		Caption: fmt.Sprintf("Root mean square error of %d runs of the two-bank LDA; the bars are its %.0f %% interval. Loss episodes of %d packets, %s delays.", hashes, 100*confidence, episode, t.Law.Name),
		X:       LossAxis, Y: plot.Axis{Label: "times the bandwidth", Scale: plot.Log},
	}
	claimed := plot.Series{Name: "the paper's 50 to 60", Kind: plot.Band, Paper: true}
	measured := plot.Series{Name: "two-bank LDA"}
	table := experiment.Table{
		Name: "bandwidth", Title: "What probes need to be as good as a two-bank LDA",
		Columns: []string{"loss rate", "LDA error (r.m.s.)", "probes a second for the same", "their error, measured", "bandwidth ratio"},
	}
	var config any
	var tuned, lowest, highest float64
	for _, share := range shares {
		p, err := t.Lose(run, share, episode)
		if err != nil {
			return experiment.Result{}, err
		}
		pt, err := p.measure(run, twoBanks, hashes, step)
		if err != nil {
			return experiment.Result{}, err
		}
		c := pt.config
		config = c
		rms := math.Sqrt(pt.squares / hashes)
		// The mean of n delays is off by their variation over √n.
		probesFor := func(rms float64) float64 {
			variation := p.Truth.StdDev / p.Truth.Mean
			return variation * variation / (rms * rms) / (1 - p.LossRate)
		}
		ratio := func(rms float64) float64 { return probesFor(rms) * probeSize / float64(c.EncodedSize()) }
		limits := estimate.DeviationInterval(rms, hashes, confidence)
		got := ratio(rms)
		measured.AddRange(100*p.LossRate, got, ratio(limits.High), ratio(limits.Low))
		claimed.AddRange(100*p.LossRate, math.Sqrt(paperLow*paperHigh), paperLow, paperHigh)

		var squares float64
		for r := range checks {
			random := run.Rand(fmt.Sprint("check ", share, r))
			d, err := p.probe(probesFor(rms), random)
			if err != nil {
				return experiment.Result{}, err
			}
			off := estimate.RelativeError(d.Mean, p.Truth.Mean)
			squares += off * off
		}
		if err := step(); err != nil {
			return experiment.Result{}, err
		}
		table.Add(experiment.Percent(p.LossRate), experiment.Percent(rms), experiment.Number(probesFor(rms)),
			experiment.Percent(math.Sqrt(squares/float64(checks))), experiment.Number(got))
		if share == someLoss {
			tuned = got
		}
		if lowest == 0 || got < lowest {
			lowest = got
		}
		highest = max(highest, got)
	}
	figure.Series = []plot.Series{claimed, measured}

	v := experiment.AsGood
	switch {
	case tuned > paperHigh:
		v = experiment.Win
	case tuned < paperLow:
		v = experiment.Loss
	}
	between := experiment.AsGood
	if lowest < paperLow {
		between = experiment.DoesNotHold
	}
	return experiment.Result{
		Figures: []plot.Figure{figure},
		Tables:  []experiment.Table{table},
		Claims: []experiment.Claim{
			{What: "bandwidth of probes for the error of the LDA at 0.16 % loss, in times the LDA's", Paper: "50–60", Ours: experiment.Number(tuned), Verdict: v},
			{What: "the same at every loss rate from 0.1 % to 20 %", Paper: "50–60", Ours: experiment.Number(lowest) + " to " + experiment.Number(highest), Verdict: between},
		},
		Config: map[string]any{
			"packets": len(t.Delays), "hashes": hashes, "checks": checks, "losses": shares, "episode": episode, "law": t.Law.Name, "mean delay ns": meanDelay,
			"bytes of a probe": probeSize, "lda": config,
		},
		Notes: []string{
			"An LDA is sent once an interval in its encoding; a probe has 64 bytes. How many probes are as good follows from the variation of the delays, c²/error²; the fourth column checks it by sending them.",
		},
	}, nil
}
