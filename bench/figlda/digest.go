package figlda

import (
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/figreal"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

var ldaDigest = experiment.Experiment{
	Name:  "ours-lda-digest",
	Group: ours,
	Title: "Stream digest: intervals cut by the clock, behind a queue that reorders",
	Claim: "The paper asks for a path that does not reorder and for markers in the stream (sections II, III). Without them a cell that " +
		"loses a packet to the next interval and gains one from the interval before looks sound, and its sum is off by the length of an " +
		"interval. A digest of each cell's packets, a byte or two of it on the wire, should find such cells.",
	Weight: 2.5, Quick: 0.8,
	Measure: measureDigest,
}

// digestConfig is one for some 2,000 packets in 100 ms, with the widest digest.
var digestConfig = lda.Config{
	Banks:   [lda.MaxBanks]lda.Bank{{Rows: 512, Shift: 0}, {Rows: 512, Shift: 3}},
	SumBits: sumBits, DigestBits: 29,
}

var (
	digestWidths  = []uint8{0, 8, 16}
	digestLengths = []int64{25e6, 50e6, 100e6, 250e6, 500e6, 1000e6} // ns
)

// digested is what intervals of one length gave with one width of digest.
type digested struct {
	intervals, answered, absurd int
	usable, wrong               int // cells taken for usable; of these, how many are not
	squares                     estimate.Moments
}

// A cut is a length of intervals.
type cut struct {
	first, length int64
	exact         []estimate.Moments // delays of packets sent and received in the same interval
	longest       float64
}

func newCut(packets []figreal.Passing, length int64) *cut {
	c := &cut{first: packets[0].In, length: length}
	last := 0
	for i := range packets {
		last = max(last, c.of(packets[i].In), c.of(packets[i].Out))
	}
	c.exact = make([]estimate.Moments, last+1)
	for i := range packets {
		p := &packets[i]
		if delay := float64(p.Out - p.In); !p.Lost {
			c.longest = max(c.longest, delay)
			if in := c.of(p.In); in == c.of(p.Out) {
				c.exact[in].Add(delay)
			}
		}
	}
	return c
}

func (c *cut) of(t int64) int { return max(0, int((t-c.first)/c.length)) }

// measure puts an aggregator at each end for every interval.
func (c *cut) measure(packets []figreal.Passing, config lda.Config) []lda.Result {
	ups := experiment.Try(lda.NewClasses(config, len(c.exact)))
	downs := experiment.Try(lda.NewClasses(config, len(c.exact)))
	for i := range packets {
		p := &packets[i]
		id := hashing.Word(config.Identity, uint64(p.ID))
		ups.Update(c.of(p.In), id, p.In)
		if !p.Lost {
			downs.Update(c.of(p.Out), id, p.Out)
		}
	}
	results := make([]lda.Result, len(c.exact))
	for i := range results {
		results[i], _ = experiment.Answer(lda.Estimate(ups.Class(i), downs.Class(i)))
	}
	return results
}

// add judges the results of one seed, beside those with the widest digest,
// which is never wrong.
func (d *digested) add(c *cut, results, right []lda.Result) {
	for i := range results {
		r, exact := &results[i], &c.exact[i]
		if exact.N() == 0 {
			continue
		}
		d.intervals++
		d.usable += r.Usable
		d.wrong += r.Usable - right[i].Usable
		if r.N == 0 {
			continue
		}
		d.answered++
		if r.Mean < 0 || r.Mean > c.longest || r.StdDev > c.longest {
			d.absurd++
		}
		off := estimate.RelativeError(r.Mean, exact.Mean())
		d.squares.Add(off * off)
	}
}

func measureDigest(run *experiment.Run) {
	packets, err := figreal.Reordered()
	if errors.Is(err, fs.ErrNotExist) {
		run.Note("Not measured: the capture it needs is not part of the project.")
		return
	}
	run.Try(err)
	run.Outside("a pair of captures")
	seeds := run.Pick(5, 20)
	of := make([][]digested, len(digestWidths)) // by width, then by length
	for j := range of {
		of[j] = make([]digested, len(digestLengths))
	}
	for k, length := range experiment.Each(run, digestLengths) {
		c := newCut(packets, length)
		for s := range run.Times(seeds) {
			config := digestConfig
			config.Identity = run.SeedOf(fmt.Sprint("hash ", s))
			right := c.measure(packets, config)
			for j, width := range digestWidths {
				config.DigestBits = width
				of[j][k].add(c, c.measure(packets, config), right)
			}
		}
	}
	drawDigest(run, of, seeds)
	judgeDigest(run, of)
	run.Config("lda", digestConfig, "widths", digestWidths, "lengths ns", digestLengths, "seeds", seeds)
	run.Note(
		"The capture htb2_reorder: 213,228 packets in two classes, 2.6 % lost, 7,077 overtaken. An absurd answer is a negative mean, or a mean "+
			"or a deviation above the longest delay of any packet. Which cells are wrong is told by a digest of 29 bits.",
		"Keeping the digest costs no time: one addition updates a cell's count and digest, whatever the width that is sent.",
		"What error is left with a digest is that of the sample, which has no packet that crossed the end of its interval, nor others of its "+
			"cell.",
	)
}

// size is what an interval takes on the wire with a digest of a width.
func size(width uint8) int {
	config := digestConfig
	config.DigestBits = width
	return config.EncodedSize()
}

// share is that of the cells that look sound and are not, rms the root mean
// square error of the mean.
func (d *digested) share() float64 { return float64(d.wrong) / float64(max(1, d.usable)) }
func (d *digested) rms() float64   { return math.Sqrt(d.squares.Mean()) }

func drawDigest(run *experiment.Run, of [][]digested, seeds int) {
	lengthAxis := plot.Axis{Label: "length of an interval (ms)", Scale: plot.Log}
	wrong := run.Figure(plot.Figure{
		Name: "cells", Title: "Cells that look sound and are not", X: lengthAxis,
		Y: plot.Axis{Label: "of those that look sound (%)", Scale: plot.Log},
		Caption: fmt.Sprintf("Intervals cut by the clock, both classes of packets together, %d seeds. "+
			"Where there is no marker, there was no such cell.", seeds),
	})
	off := run.Figure(plot.Figure{
		Name: "mean", Title: "Error of an interval's mean", X: lengthAxis,
		Y:       plot.Axis{Label: "relative error, root mean square (%)", Scale: plot.Log},
		Caption: "Against the packets that were sent and received in the same interval.",
	})
	table := run.Table("digest", "What the digest costs and finds", "interval", "digest bits", "bytes on the wire", "intervals",
		"without an answer", "absurd answers", "cells wrongly taken for sound", "error of the mean (r.m.s.)")
	for j, width := range digestWidths {
		cells := plot.Series{Name: fmt.Sprintf("%d bits", width)}
		mean := plot.Series{Name: cells.Name}
		for k, length := range digestLengths {
			d := &of[j][k]
			ms := float64(length) / 1e6
			cells.Add(ms, 100*d.share())
			mean.Add(ms, 100*d.rms())
			table.Add(experiment.Number(ms)+" ms", fmt.Sprint(width), fmt.Sprint(size(width)), fmt.Sprint(d.intervals),
				fmt.Sprint(d.intervals-d.answered), fmt.Sprint(d.absurd), experiment.Percent(d.share()), experiment.Percent(d.rms()))
		}
		wrong.Series = append(wrong.Series, cells)
		off.Series = append(off.Series, mean)
	}
}

func judgeDigest(run *experiment.Run, of [][]digested) {
	const k = 2 // 100 ms
	ms := float64(digestLengths[k]) / 1e6
	widest := len(digestWidths) - 1
	none, last := &of[0][k], &of[widest][k]
	// counts compares numbers that need not be fractions.
	counts := func(what, paper, ours string, got, theirs int, slack float64) {
		run.Claim(what, paper, ours, experiment.Judge(float64(got), float64(theirs), slack))
	}
	counts(fmt.Sprintf("absurd answers of %d, intervals of %.0f ms: without a digest, and with 16 bits", none.intervals, ms),
		fmt.Sprint(none.absurd), fmt.Sprint(last.absurd), last.absurd, none.absurd, 0)
	counts("the same: cells wrongly taken for sound", experiment.Percent(none.share()), experiment.Percent(last.share()),
		last.wrong, none.wrong, 0)
	run.Beats(fmt.Sprintf("error of the mean over %.0f ms (r.m.s.) where packets overtake, without a digest and with 16 bits", ms),
		last.rms(), none.rms(), 0.1).Headline = true
	bare, wide := size(digestWidths[0]), size(digestWidths[widest])
	counts("bytes on the wire, without a digest and with 16 bits", fmt.Sprint(bare), fmt.Sprint(wide), wide, bare, 0.1)
}
