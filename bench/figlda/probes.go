package figlda

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
)

var againstProbes = experiment.Experiment{
	Name: "lda-6", Title: "Two banks against Poisson probes (Fig. 6a–c)",
	Claim: "With losses in episodes, the two-bank LDA is off by 0.2 to 4 %; probes of as many packets (7 a second) by almost 100 %, and of " +
		"as many bytes (144 a second) by 11 % where LDA is below 1 % (loss rates below 1 %); the deviation by 3 to 9 % against 15 % below " +
		"5 % loss. Only 10,000 probes a second come near LDA; for similar accuracy probes need 50 to 60 times its bandwidth (section IV-C, " +
		"Fig. 6a–c).",
	Weight: 4, Quick: 0.5, Measure: measureAgainstProbes,
}

// A contest is between an LDA and probes at one loss rate.
type contest struct {
	loss   float64
	lda    *point
	probes []*point // by frequency
}

func measureAgainstProbes(run *experiment.Run) {
	t := NewTrace(run, Laws[0])
	var shares []float64
	for _, share := range losses {
		// With a handful of episodes the loss rate could be anything.
		if share*float64(len(t.Delays)) >= 9*episode {
			shares = append(shares, share)
		}
	}
	var contests []contest
	for _, share := range shares {
		p := t.Lose(run, share, episode)
		c := contest{loss: p.LossRate, lda: p.measure(run, twoBanks, runs)}
		for _, hertz := range frequencies {
			c.probes = append(c.probes, p.probes(run, hertz, runs))
		}
		contests = append(contests, c)
	}
	tabulate(run, t.Law, contests)
	judgeContests(run, contests)
	run.Note("The loss rate plotted is the one that came about. A run in which no probe arrives counts as an answer of 0, an error of 100 " +
		"%; likewise a deviation from fewer than two.")
}

func tabulate(run *experiment.Run, law Law, contests []contest) {
	table := run.Table(fmt.Sprintf("Two banks and probes (Fig. 6a–c): sample, relative error of the average delay and of the "+
		"deviation; averages over %d runs of one second, %s delays, loss episodes of %d packets on average", runs, law.Name, episode),
		"loss", "LDA", "deviation by eq. (5)")
	for _, hertz := range frequencies {
		table.Columns = append(table.Columns, number(hertz)+" probes/s")
	}
	for _, c := range contests {
		row := []string{percent(c.loss), "", percent(ofPaper(c.lda))}
		for i, pt := range append([]*point{c.lda}, c.probes...) {
			cell := number(ofSample(pt)) + "; " + percent(ofMean(pt)) + "; " + percent(ofOurs(pt))
			if i == 0 {
				row[1] = cell
			} else {
				row = append(row, cell)
			}
		}
		table.Row(row)
	}
}

func judgeContests(run *experiment.Run, contests []contest) {
	// Averages below a loss rate.
	average := func(limit float64, value func(contest) float64) float64 {
		var m estimate.Moments
		for _, c := range contests {
			if c.loss < limit {
				m.Add(value(c))
			}
		}
		return m.Mean()
	}
	atProbes := func(i int) func(contest) float64 { return func(c contest) float64 { return c.probes[i].means.Mean() } }
	// near judges a number that the paper gives for probes, whichever way it is off.
	slack := chance(runs*len(contests)) + 0.1
	near := func(what, paper string, got, want float64) { run.Between(what, paper, got, want, want, slack) }
	first, last := contests[0].lda.means.Mean(), contests[len(contests)-1].lda.means.Mean()
	small := average(0.01, func(c contest) float64 { return c.lda.means.Mean() })
	frequent := average(0.01, atProbes(3))
	eq5 := average(0.05, func(c contest) float64 { return c.lda.paper.Mean() })
	ours := average(0.05, func(c contest) float64 { return c.lda.ours.Mean() })

	v := experiment.Fits(first, 0.002, 0.04, chance(runs))
	if v == experiment.AsGood {
		v = experiment.Fits(last, 0.002, 0.04, chance(runs))
	}
	run.Claim("LDA, relative error of the mean, from the lowest to the highest loss rate", "0.2–4 %", percent(first)+" to "+percent(last), v)
	run.Within("LDA, the same on average below 1 % loss", "< 1 %", small, 0.01, chance(runs))
	near("as often as an LDA is sent: 1 probe a second, average error at all loss rates", "almost 100 %", average(1, atProbes(0)), 1)
	near("as many packets as the LDA takes: 7 probes a second, the same", "almost 100 %", average(1, atProbes(1)), 1)
	near("144 probes a second, average error below 1 % loss", "11 %", average(0.01, atProbes(2)), 0.11)
	run.Holds("10,000 probes a second come near LDA: average error below 1 % loss", "near (a factor of 3, say)",
		percent(frequent)+" against "+percent(small), frequent <= 3*small)
	judgeBandwidth(run, contests)
	judgeWidths(run, contests)
	run.Between("deviation by eq. (5), average error below 5 % loss", "3–9 %", eq5, 0.03, 0.09, chance(runs))
	run.Beats("deviation, count-conditioned, from the same cells", ours, eq5, 0.1)
	near("deviation from 144 probes a second, average error below 5 % loss", "about 15 %",
		average(0.05, func(c contest) float64 { return c.probes[2].ours.Mean() }), 0.15)
}

// judgeBandwidth judges what probes as good as the LDA would take.
func judgeBandwidth(run *experiment.Run, contests []contest) {
	lowest, highest := math.Inf(1), 0.0
	for _, c := range contests {
		// The mean of n delays is off by their variation over √n.
		variation, rms := c.lda.truth.StdDev/c.lda.truth.Mean, math.Sqrt(c.lda.squares/runs)
		probes := variation * variation / (rms * rms) / (1 - c.loss)
		ratio := probes * probeSize / float64(c.lda.config.EncodedSize())
		lowest, highest = min(lowest, ratio), max(highest, ratio)
	}
	run.Holds("bandwidth of probes for the root mean square error of the LDA, in times the LDA's, over all loss rates", "50–60",
		number(lowest)+" to "+number(highest), lowest >= 50)
}

// judgeWidths judges the intervals of eq. (1) of every run, and the greatest
// error if the banks are tuned to the loss.
func judgeWidths(run *experiment.Run, contests []contest) {
	var low, high, worst float64
	for _, c := range contests {
		for k, result := range c.lda.results {
			d := result.Delay
			d.StdDev = c.lda.truth.StdDev
			half := (estimate.HoeffdingInterval(d, bound).High - d.Mean) / c.lda.truth.Mean
			switch {
			case c.loss < 0.001:
				low = max(low, half)
			case c.loss <= 0.1:
				high = max(high, half)
			}
			if c.loss < 0.003 {
				worst = max(worst, c.lda.errors[k])
			}
		}
	}
	run.Between("half width of the 98 % intervals by eq. (1) below 0.1 % loss, greatest of all runs", "≤ 25 % of the mean", low, 0, 0.25, 0)
	run.Between("the same up to 10 % loss", "a factor below 2", high, 0, 1, 0)
	run.Between("greatest error of the mean of all runs where the loss is about what a bank is tuned to", "0.17 %", worst, 0, 0.0017,
		chance(1))
}

// frequencies are those of section IV-C: as often as an LDA is sent, as many
// packets as it takes, as many bytes, and enough to match it.
var frequencies = []float64{1, 7, 144, 10_000}

// probe sends probes for one interval, at the times of a Poisson process with
// the given rate per second. Each has a delay of the packets' law, and is lost
// if the packet sent at the same time is lost. Probes do not disturb the
// packets. If no probe arrives the result is 0.
func (p *Passage) probe(hertz float64, random *rand.Rand) estimate.Delay {
	delays := p.Law.draw(random.Uint64())
	var arrived estimate.Moments
	for at := random.ExpFloat64() / hertz; at < 1; at += random.ExpFloat64() / hertz {
		delay := delays.Draw()
		if !p.Lost[int(at*float64(len(p.Lost)))] {
			arrived.Add(delay)
		}
	}
	d, _ := arrived.Delay() // of none: zero
	return d
}

// probes runs probes at a rate several times. A run in which no probe arrives
// has no mean, and one with fewer than two has no deviation; both count as
// answers of 0, an error of 100 %.
func (p *Passage) probes(run *experiment.Run, hertz float64, runs int) *point {
	random := run.Rand("probes " + number(hertz) + " " + number(p.LossRate))
	pt := new(point)
	for range runs {
		d := p.probe(hertz, random)
		pt.add(d, p)
		pt.ours.Add(estimate.RelativeError(d.StdDev, p.Truth.StdDev))
	}
	return pt
}
