package figlds

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lds"
)

var underLoss = experiment.Experiment{
	Name: "lds-11", Title: "Rows of different sampling rates under loss (Fig. 11)",
	Claim: "With flows spread over 5 cells a row, rows that sample 100, 50, 10 and 1 % of the packets do well at 0.1, 0.5 and 1 % loss; " +
		"four rows at 100 % lose too many cells as loss grows, and at 5 % are poor even at the least (section 5.2, Fig. 11).",
	Weight: 40, Quick: 3, Measure: measureUnderLoss,
}

// spread is k if packets are lost, and the factor by which the sketch is
// larger for it.
const spread = 5

// lossy are the fractions of packets lost.
var lossy = []float64{0.001, 0.005, 0.01}

// sampled are the rates of the three sketches.
var sampled = []struct {
	name  string
	rates []float64
}{{"100 %", everything(4)}, {"5 %", []float64{0.05, 0.05, 0.05, 0.05}}, {"multi-bank", multiBank}}

var multiBank = []float64{1, 0.5, 0.1, 0.01}

// An estimator under loss, and its methods by loss and sketch.
type estimator struct {
	name  string
	paper bool
	by    [][]*method
}

func newEstimator(name string, paper bool) *estimator {
	e := &estimator{name: name, paper: paper, by: make([][]*method, len(lossy))}
	for l := range lossy {
		for _, s := range sampled {
			e.by[l] = append(e.by[l], newMethod(s.name))
		}
	}
	return e
}

func measureUnderLoss(run *experiment.Run) {
	intervals := run.Pick(3, 4)
	paper, decoded := newEstimator("Estimate", true), newEstimator("joint decoding", false)
	var configs []lds.Config
	for _, s := range sampled {
		configs = append(configs, shape(run, spread*17500, spread, s.rates...))
	}
	for n := range run.Times(intervals) {
		iv := newInterval(run, n)
		for l, share := range experiment.Each(run, lossy) {
			for i, s := range iv.observe(share, nil, configs...) {
				paper.by[l][i].add(iv, iv.estimated(s, lds.Estimate), nil)
				decoded.by[l][i].add(iv, usable(iv.decode(run, s, iv.packets)), nil)
			}
		}
	}
	drawUnderLoss(run, intervals, paper, decoded)
	table := run.Table("loss", "Relative error of flows' means under loss: median / 95th percentile", "loss", "rows sample",
		"≥ 100: Estimate", "joint decoding", "≥ 1,000: Estimate", "joint decoding", "flows without estimate")
	for l, share := range lossy {
		for i, s := range sampled {
			row := []string{percent(share), s.name}
			for _, c := range []int{fromHundred, fromThousand} {
				row = append(row, paper.by[l][i].cell(c), decoded.by[l][i].cell(c))
			}
			missing := paper.by[l][i].Missing(classes[all])
			table.Row(row, number(math.Round(float64(missing)/float64(intervals))))
		}
	}
	for _, e := range []*estimator{paper, decoded} {
		e.judge(run)
	}
	last := len(lossy) - 1
	for _, c := range []int{fromThousand, fromHundred} {
		where := fmt.Sprintf("multi-bank, %s, %s loss: median by Estimate and by ", classes[c].Name, percent(lossy[last]))
		run.Beats(where+"joint decoding with known counts", decoded.by[last][2].median(c), paper.by[last][2].median(c), 0.05)
	}
	run.Config("intervals", intervals, "losses", lossy, "sketches", configs)
	run.Note("The figure of the paper has no numbers to compare with; the claims are of order, in this run. Flows of which every cell lost a "+
		"packet have no estimate, an error of 100 %. That multi-bank is better than both holds where its median and its 95th percentile are "+
		"the smallest.",
		"By section 4.2, which divides counts by rates, a cell of the 1 % row that happened to sample one packet out of hundreds passes for "+
			"the purest, and the estimate rests on that packet. Estimate compares upper bounds instead.",
		"Joint decoding weighs all usable cells by what they are worth. A flow of some hundred packets keeps most of its cells at these "+
			"losses, and a row that samples tells less of it than one that does not: the better the estimator, the smaller the median from rows "+
			"at 100 %. What multi-bank is for are the flows that lose nearly all cells there, at the 95th percentile.",
		"Packets are lost one by one, which is hard on a sketch: a flow of 10,000 packets loses 100 at 1 %, where a burst would spoil few cells.")
}

func drawUnderLoss(run *experiment.Run, intervals int, paper, decoded *estimator) {
	name := 'a'
	for _, c := range []int{fromThousand, fromHundred} {
		for l, share := range lossy {
			f := run.Draw(string(name), fmt.Sprintf("Relative error at %s loss, %s (Fig. 11)", percent(share), classes[c].Name),
				fmt.Sprintf("Over the flows of %d intervals, by what the rows sample. Dashed: Estimate. Solid, multi-bank: "+
					"joint decoding with known counts, from the same cells.", intervals), errorAxis(0.1), shareAxis)
			name++
			add := func(m *method, name string, pair int, paper bool) {
				s := m.cdf(c)
				s.Name, s.Pair, s.Paper = name, pair, paper
				f.Add(s)
			}
			add(paper.by[l][0], sampled[0].name, 1, true)
			add(paper.by[l][1], sampled[1].name, 2, true)
			add(paper.by[l][2], sampled[2].name, 3, true)
			add(decoded.by[l][2], "multi-bank, joint", 4, false)
		}
	}
}

// judge compares rows of different rates with rows of one rate.
func (e *estimator) judge(run *experiment.Run) {
	judge, claimed := run.Keeps, "ours: better than both"
	if e.paper {
		judge, claimed = run.Holds, "better than both"
	}
	for _, c := range []int{fromThousand, fromHundred} {
		for l, share := range lossy {
			full, few, banks := e.by[l][0], e.by[l][1], e.by[l][2]
			judge(fmt.Sprintf("%s, %s, %s loss: multi-bank against rows at 100 %% and at 5 %%, median / 95th percentile", e.name, classes[c].Name,
				percent(share)),
				claimed, fmt.Sprintf("%s against %s and %s", banks.cell(c), full.cell(c), few.cell(c)),
				banks.median(c) < min(full.median(c), few.median(c)) && banks.high(c) < min(full.high(c), few.high(c)))
		}
	}
}

var byLoss = experiment.Experiment{
	Name: "ours-lds-default", Title: "Which sketch bears which loss, at the same memory",
	Claim: "Ours: of 70,000 cells in four rows, two that see every packet and two that sample 10 and 1 % answer nearly all large flows " +
		"up to 1 % loss, and without loss cost little.",
	Weight: 85, Quick: 6, Measure: measureByLoss,
}

// candidates are ways to divide 70,000 cells.
var candidates = []setting{
	{"4 rows", 17500, 1, everything(4), 0},
	{"2 rows", 35000, 1, everything(2), 0},
	{"1, 1, 10, 1 % (default)", 17500, 1, []float64{1, 1, 0.1, 0.01}, 0},
	{"1, 10, 1 %", 23333, 1, []float64{1, 0.1, 0.01}, 0},
	{"1, 1, 1, 10 %", 17500, 1, []float64{1, 1, 1, 0.1}, 0},
	{"1, 1, 10, 1 %, k = 2", 17500, 2, []float64{1, 1, 0.1, 0.01}, 0},
	{"4 rows, k = 5", 17500, 5, everything(4), 0},
	{"1, 50, 10, 1 %, k = 5", 17500, 5, multiBank, 0},
	{"1, 1, 10, 1 %, k = 16", 17500, 16, []float64{1, 1, 0.1, 0.01}, 0},
}

const defaultCandidate = 2

var chosenLoss = []float64{0, 0.001, 0.01}

func measureByLoss(run *experiment.Run) {
	const intervals = 2
	var configs []lds.Config
	of := make([][]reading, len(chosenLoss))
	for _, c := range candidates {
		configs = append(configs, shape(run, c.columns, c.spread, c.rates...))
		for l := range of {
			of[l] = append(of[l], newReading(c.name))
		}
	}
	held := make([][defaultCandidate + 1]covered, len(chosenLoss))
	for n := range run.Times(intervals) {
		iv := newInterval(run, n)
		for l, loss := range experiment.Each(run, chosenLoss) {
			for i, s := range experiment.Each(run, iv.observe(loss, nil, configs...)) {
				of[l][i].ask(run, iv, s)
				if i == 0 || i == defaultCandidate {
					iv.ofEstimate(s, &held[l][i])
				}
			}
		}
	}
	for l, loss := range chosenLoss {
		table := run.Table(fmt.Sprintf("loss-%d", l), fmt.Sprintf("70,000 cells at a loss of %s: median / 95th percentile", percent(loss)),
			"rows sample", "Estimate answers, ≥ 100 packets", "errors", "≥ 1,000: answers", "errors", "Decode, ≥ 100", "≥ 1,000")
		for i, c := range candidates {
			table.Row(c.name, of[l][i].cells())
		}
	}
	judgeEstimates(run, held)
	last := len(chosenLoss) - 1
	run.Beats("1 % loss: share of flows of 1,000 packets and more without an answer, default and the paper's four rows",
		1-of[last][defaultCandidate].read.answers(fromThousand), 1-of[last][0].read.answers(fromThousand), 0.05).Headline = true
	run.Beats("no loss: median of Estimate, flows of 100 packets and more, default and the paper's four rows",
		of[0][defaultCandidate].read.median(fromHundred), of[0][0].read.median(fromHundred), 0.05)
	run.Config("intervals", intervals, "losses", chosenLoss, "sketches", configs)
	run.Note("A flow without an answer counts as an error of 100 %. Packets are lost one by one.")
}

// covered is what the intervals of a sketch are, by bin.
type covered [8]perflow.Coverage

// ofEstimate adds the intervals of the flows that Estimate answers.
func (iv *interval) ofEstimate(s points, by *covered) {
	for i := range iv.Flows {
		f := &iv.Flows[i]
		r, err := lds.Estimate(s.up, s.down, f.Key)
		for b := range bins {
			if err == nil && bins[b].Has(f.Size) {
				by[b].Add(r.MeanInterval(confidence), f.Mean)
			}
		}
	}
}

// judgeEstimates tells how wide the intervals of Estimate are and how many hold
// the truth.
func judgeEstimates(run *experiment.Run, held [][defaultCandidate + 1]covered) {
	table := run.Table("intervals", "95 % intervals of Estimate: flows whose mean they hold / median of half their width",
		"loss", "rows sample")
	for b := range bins {
		table.Columns = append(table.Columns, bins[b].Name)
	}
	worst, where := perflow.Coverage{Held: 1, All: 1}, ""
	for l, loss := range chosenLoss {
		for _, i := range []int{0, defaultCandidate} {
			row := []string{percent(loss), candidates[i].name}
			for b := range bins {
				c := &held[l][i][b]
				if c.All == 0 {
					row = append(row, "–")
					continue
				}
				row = append(row, fmt.Sprintf("%.1f %% / %s", 100*c.Share(), percent(c.HalfWidth())))
				if c.Share() < worst.Share() {
					worst, where = *c, fmt.Sprintf("%s, %s loss, %s packets", candidates[i].name, percent(loss), bins[b].Name)
				}
			}
			table.Add(row...)
		}
	}
	run.Meets("95 % intervals of Estimate, lowest coverage of any class ("+where+")", "ours: ≥ 95 %",
		fmt.Sprintf("%.1f %% of %s flows", 100*worst.Share(), number(float64(worst.All))),
		estimate.ProportionInterval(worst.Held, worst.All, 0.99).High >= confidence)
}
