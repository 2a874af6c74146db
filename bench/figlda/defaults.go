package figlda

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

// ldaDefaults tries the default Config over its whole range.
var ldaDefaults = experiment.Experiment{
	Name: "ours-lda-defaults", Title: "The default Config over its range",
	Claim: "10⁴ to 10⁷ packets an interval and losses of 0 to 30 % by one Config: its deviation without loss, " +
		"its sample against the best banks for each loss.",
	Weight: 60, Quick: 2,
	Measure: func(run *experiment.Run) {
		run.Part(0, 2)
		defaultDeviations(run)
		run.Part(1, 2)
		defaultBanks(run)
	},
}

// defaultDeviations measures the error of the deviation without loss, and that
// of eq. (5).
func defaultDeviations(run *experiment.Run) {
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

// defaultBanks compares the sample of the default banks, and of some others,
// with that of the best single bank of as many cells for each loss.
func defaultBanks(run *experiment.Run) {
	t := run.Table("banks", "Sample by the share that the best single bank of as many cells has for each loss, and packets alone in a cell",
		"rows@shift", "bytes", "worst", "average", "least alone")
	f := run.Draw("sample", "Sample of the default banks", "", plot.LogAxis("loss rate (%)"), plot.LogAxis("packets in the sample (%)"))
	best := 0.0
	var chosen float64
	for i, banks := range experiment.Each(run, bankChoices()) {
		c := lda.DefaultConfig
		c.Banks = banks
		worst, average, alone := bankShares(c)
		t.Row(bankName(banks), c.EncodedSize(), percent(worst), percent(average), fmt.Sprintf("%.0f", alone))
		if i == 0 {
			chosen = worst
		}
		if c.EncodedSize() <= lda.DefaultConfig.EncodedSize() && alone > 200 {
			best = max(best, worst)
		}
	}
	for _, packets := range []float64{1e4, 1e5, 1e6, 1e7} {
		s := f.Line(plot.Series{Name: fmt.Sprintf("%.0e packets", packets)})
		for _, loss := range ourLosses {
			s.Add(100*loss, 100*lda.DefaultConfig.Expect(packets, loss).Sample/packets)
		}
	}
	run.Holds("worst share of the best banks' sample", "as much as any choice of no more bytes with 200 packets alone gives, but a fifth",
		percent(chosen), chosen > 0.8*best)
}

// bankChoices returns the default first, then the earlier default, and others.
func bankChoices() [][lda.MaxBanks]lda.Bank {
	all := [][lda.MaxBanks]lda.Bank{
		lda.DefaultConfig.Banks,
		{{Rows: 1024, Shift: 0}, {Rows: 1024, Shift: 3}, {Rows: 1024, Shift: 10}},
	}
	for _, rows := range [][lda.MaxBanks]int{
		{1024, 1024, 1024, 1024}, {2048, 1024, 1024, 1024}, {2048, 2048, 512, 512}, {2048, 2048, 2048, 2048},
	} {
		for _, shifts := range [][lda.MaxBanks]uint8{{0, 3, 7, 11}, {0, 4, 8, 12}, {0, 5, 9, 12}, {0, 4, 8, 11}} {
			var banks [lda.MaxBanks]lda.Bank
			for j := range banks {
				banks[j] = lda.Bank{Rows: rows[j], Shift: shifts[j]}
			}
			if banks != lda.DefaultConfig.Banks {
				all = append(all, banks)
			}
		}
	}
	return all
}

func bankName(banks [lda.MaxBanks]lda.Bank) string {
	name := ""
	for _, b := range banks {
		if b.Rows > 0 {
			name += fmt.Sprintf(" %d@%d", b.Rows, b.Shift)
		}
	}
	return name[1:]
}

// bankShares judges banks over the range of loads and losses.
func bankShares(c lda.Config) (worst, average, alone float64) {
	cells := 0
	for _, b := range c.Banks {
		cells += b.Rows
	}
	worst, alone = 1, math.Inf(1)
	var logs estimate.Moments
	for packets := 1e4; packets < 1.1e7; packets *= math.Sqrt(math.Sqrt(10)) {
		alone = min(alone, c.Expect(packets, 0).Alone)
		for _, loss := range append([]float64{0, 0.3}, ourLosses...) {
			best := 0.0
			for shift := range uint8(20) {
				one := lda.Config{Banks: [lda.MaxBanks]lda.Bank{{Rows: cells, Shift: shift}}}
				best = max(best, one.Expect(packets, loss).Sample)
			}
			share := c.Expect(packets, loss).Sample / best
			worst = min(worst, share)
			logs.Add(math.Log(share))
		}
	}
	return worst, math.Exp(logs.Mean()), alone
}
