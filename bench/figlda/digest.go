package figlda

import (
	"context"
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
	Name:   "ours-lda-digest",
	Group:  ours,
	Title:  "Stream digest: intervals cut by the clock, behind a queue that reorders",
	Claim:  "The paper asks for a path that does not reorder and for markers in the stream (sections II, III). Without them a cell that loses a packet to the next interval and gains one from the interval before looks sound, and its sum is off by the length of an interval. A digest of each cell's packets, a byte or two of it on the wire, should find such cells.",
	Weight: 2.5, Quick: 0.8,
	Run: runDigest,
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
func (c *cut) measure(packets []figreal.Passing, config lda.Config) ([]lda.Result, error) {
	ups, err := lda.NewClasses(config, len(c.exact))
	if err != nil {
		return nil, err
	}
	downs, err := lda.NewClasses(config, len(c.exact))
	if err != nil {
		return nil, err
	}
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
		results[i], err = lda.Estimate(ups.Class(i), downs.Class(i))
		if err != nil && !errors.Is(err, estimate.ErrNoSamples) {
			return nil, err
		}
	}
	return results, nil
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

func runDigest(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	packets, err := figreal.Reordered()
	if errors.Is(err, fs.ErrNotExist) {
		return experiment.Result{Notes: []string{"Not measured: the capture it needs is not part of the project, and not here. " + err.Error()}}, nil
	}
	if err != nil {
		return experiment.Result{}, err
	}
	seeds := run.Pick(5, 20)
	step := run.Steps(ctx, len(digestLengths)*seeds)
	of := make([][]digested, len(digestLengths)) // by width
	for k, length := range digestLengths {
		of[k] = make([]digested, len(digestWidths))
		c := newCut(packets, length)
		for s := range seeds {
			config := digestConfig
			config.Identity = run.SeedOf(fmt.Sprint("hash ", s))
			right, err := c.measure(packets, config)
			if err != nil {
				return experiment.Result{}, err
			}
			for j, width := range digestWidths {
				config.DigestBits = width
				results, err := c.measure(packets, config)
				if err != nil {
					return experiment.Result{}, err
				}
				of[k][j].add(c, results, right)
			}
			if err := step(); err != nil {
				return experiment.Result{}, err
			}
		}
	}

	wrong := plot.Figure{
		Name: "cells", Title: "Cells that look sound and are not", X: plot.Axis{Label: "length of an interval (ms)", Scale: plot.Log},
		Y:       plot.Axis{Label: "of those that look sound (%)", Scale: plot.Log},
		Caption: fmt.Sprintf("Intervals cut by the clock, both classes of packets together, %d seeds. Where there is no marker, there was no such cell.", seeds),
	}
	off := plot.Figure{
		Name: "mean", Title: "Error of an interval's mean", X: wrong.X, Y: plot.Axis{Label: "relative error, root mean square (%)", Scale: plot.Log},
		Caption: "Against the packets that were sent and received in the same interval.",
	}
	table := experiment.Table{
		Name: "digest", Title: "What the digest costs and finds",
		Columns: []string{"interval", "digest bits", "bytes on the wire", "intervals", "without an answer", "absurd answers", "cells wrongly taken for sound", "error of the mean (r.m.s.)"},
	}
	sizes := make([]int, len(digestWidths))
	for j, width := range digestWidths {
		config := digestConfig
		config.DigestBits = width
		sizes[j] = config.EncodedSize()
		cells := plot.Series{Name: fmt.Sprintf("%d bits", width)}
		mean := plot.Series{Name: cells.Name}
		for k, length := range digestLengths {
			d := &of[k][j]
			ms := float64(length) / 1e6
			share, rms := float64(d.wrong)/float64(max(1, d.usable)), math.Sqrt(d.squares.Mean())
			cells.Add(ms, 100*share)
			mean.Add(ms, 100*rms)
			table.Add(experiment.Number(ms)+" ms", fmt.Sprint(width), fmt.Sprint(sizes[j]), fmt.Sprint(d.intervals), fmt.Sprint(d.intervals-d.answered), fmt.Sprint(d.absurd), experiment.Percent(share), experiment.Percent(rms))
		}
		wrong.Series = append(wrong.Series, cells)
		off.Series = append(off.Series, mean)
	}
	return experiment.Result{
		Figures: []plot.Figure{wrong, off}, Tables: []experiment.Table{table},
		Claims: digestClaims(of, sizes),
		Config: map[string]any{"lda": digestConfig, "widths": digestWidths, "lengths ns": digestLengths, "seeds": seeds},
		Notes: []string{
			"The capture htb2_reorder: 213,228 packets in two classes, 2.6 % lost, 7,077 overtaken. An absurd answer is a negative mean, or a mean or a deviation above the longest delay of any packet. Which cells are wrong is told by a digest of 29 bits.",
			"Keeping the digest costs no time: one addition updates a cell's count and digest, whatever the width that is sent.",
			"What error is left with a digest is that of the sample, which has no packet that crossed the end of its interval, nor others of its cell.",
		},
	}, nil
}

func digestClaims(of [][]digested, sizes []int) []experiment.Claim {
	const k = 2 // 100 ms
	ms := float64(digestLengths[k]) / 1e6
	none, last := &of[k][0], &of[k][len(digestWidths)-1]
	share := func(d *digested) string { return experiment.Percent(float64(d.wrong) / float64(max(1, d.usable))) }
	rms := func(d *digested) float64 { return math.Sqrt(d.squares.Mean()) }
	return []experiment.Claim{
		{What: fmt.Sprintf("absurd answers of %d, intervals of %.0f ms: without a digest, and with 16 bits", none.intervals, ms), Paper: fmt.Sprint(none.absurd), Ours: fmt.Sprint(last.absurd), Verdict: experiment.Judge(float64(last.absurd), float64(none.absurd), 0)},
		{What: "the same: cells wrongly taken for sound", Paper: share(none), Ours: share(last), Verdict: experiment.Judge(float64(last.wrong), float64(none.wrong), 0)},
		{What: fmt.Sprintf("error of the mean over %.0f ms (r.m.s.) where packets overtake, without a digest and with 16 bits", ms), Paper: experiment.Percent(rms(none)), Ours: experiment.Percent(rms(last)), Verdict: experiment.Judge(rms(last), rms(none), 0.1), Headline: true},
		{What: "bytes on the wire, without a digest and with 16 bits", Paper: fmt.Sprint(sizes[0]), Ours: fmt.Sprint(sizes[len(sizes)-1]), Verdict: experiment.Judge(float64(sizes[len(sizes)-1]), float64(sizes[0]), 0.1)},
	}
}
