package figreal

import (
	"encoding/json"
	"fmt"
	"os/exec"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/estimate"
)

// LDA measures real packets with an LDA.
var LDA = experiment.Experiment{
	Name: "real-lda", Title: "LDA beside the exact answer, interval by interval",
	Claim: "In the paper packets are from a trace and delays are drawn (section IV). What it claims of them, that the mean is as good as " +
		"a random sample of the packets in usable cells, should hold of real queues too, whose delays depend on one another and on loss, " +
		"since cells are chosen by a hash.",
	Weight: 2, Quick: 2, Measure: measureLDA,
}

const (
	confidence = 0.95 // of all intervals shown
	period     = 0.25 // seconds, of an interval
)

// An interval is what the program says about one.
type interval struct {
	Start          float64 // seconds
	Sent, Received figure
	Mean, StdDev   *figure           // ns, nil if they are unknown
	MeanInterval95 estimate.Interval // zero if unbounded, as none is here
	Crossed        bool
}

type figure struct{ LDA, Exact float64 }

func measureLDA(run *experiment.Run) {
	program := exec.Command("go", "run", "./examples/twopoint", "-json", "-interval", fmt.Sprint(period, "s"),
		"-seed", fmt.Sprint(run.Seed))
	var found struct{ Intervals []interval }
	experiment.Check(json.Unmarshal(experiment.Try(program.Output()), &found))
	draw(run, found.Intervals)
	judge(run, found.Intervals)
}

// draw shows the delay over time.
func draw(run *experiment.Run, all []interval) {
	mean, deviation := curve{name: "mean"}, curve{name: "deviation"}
	for _, w := range all {
		middle := w.Start + period/2
		if m := w.Mean; m != nil {
			mean.exact = append(mean.exact, [2]float64{middle, m.Exact / 1e6})
			mean.measured = append(mean.measured,
				[4]float64{middle, m.LDA / 1e6, max(0, w.MeanInterval95.Low/1e6), w.MeanInterval95.High / 1e6})
		}
		if d := w.StdDev; d != nil {
			deviation.exact = append(deviation.exact, [2]float64{middle, d.Exact / 1e6})
			deviation.measured = append(deviation.measured, [4]float64{middle, d.LDA / 1e6, d.LDA / 1e6, d.LDA / 1e6})
		}
	}
	title := "Delay over time, queue of 12 Mb/s"
	run.Picture(experiment.Picture{Title: title, File: "real-lda-delay-shipped.svg",
		SVG: drawing(title, "time (s)", "delay (ms)", [2]curve{mean, deviation}),
		Caption: fmt.Sprintf("One LDA for every %g s. Bars: the %.0f %% interval of the mean, wider where packets were lost, for "+
			"those that no cell saw.", period, 100*confidence)})
}

// judge judges the bars of intervals whose ends no packet crossed and, if nothing was lost, the mean.
func judge(run *experiment.Run, all []interval) {
	var held, exactly perflow.Coverage
	for _, w := range all {
		if w.Mean == nil || w.Crossed {
			continue
		}
		held.Count(w.MeanInterval95.Contains(w.Mean.Exact))
		if w.Sent.Exact == w.Received.Exact {
			exactly.Count(estimate.RelativeError(w.Mean.LDA, w.Mean.Exact) < 1e-9)
		}
	}
	run.Claim(fmt.Sprintf("true means within the %.0f %% intervals, of %d whose ends no packet crossed", 100*confidence, held.All),
		fmt.Sprintf("at least %.0f %%", 100*confidence), experiment.Percent(held.Share()),
		experiment.Covers(held.Held, held.All, confidence, confidence))
	run.Holds(fmt.Sprintf("means that are exact, of %d intervals in which nothing was lost or crossed", exactly.All),
		"all", fmt.Sprint(exactly.Held), exactly.Held == exactly.All)
}
