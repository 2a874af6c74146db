package figlds

import (
	"context"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/lds"
)

var underLoss = experiment.Experiment{
	Name:   "lds-11",
	Group:  Group,
	Title:  "Rows of different sampling rates under loss (Fig. 11)",
	Claim:  "With flows spread over 5 cells a row, rows that sample 100, 50, 10 and 1 % of the packets do well at 0.1, 0.5 and 1 % loss; four rows at 100 % lose too many cells as loss grows, and at 5 % are poor even at the least (section 5.2, Fig. 11).",
	Weight: 40, Quick: 3,
	Run: runUnderLoss,
}

// spread is k where packets are lost, and by how much the sketch is larger for
// it.
const spread = 5

// lossy are the shares of packets lost.
var lossy = []float64{0.001, 0.005, 0.01}

// sampled are the rates of the three sketches.
var sampled = []struct {
	name  string
	rates []float64
}{{"100 %", everything(4)}, {"5 %", []float64{0.05, 0.05, 0.05, 0.05}}, {"multi-bank", multiBank}}

var multiBank = []float64{1, 0.5, 0.1, 0.01}

func runUnderLoss(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	intervals := run.Pick(3, 4)
	newMethods := func() [][]*method { // by loss and sketch
		out := make([][]*method, len(lossy))
		for l := range out {
			for _, s := range sampled {
				out[l] = append(out[l], &method{name: s.name})
			}
		}
		return out
	}
	paper, ours, decoded := newMethods(), newMethods(), newMethods()
	step := run.Steps(ctx, 2*intervals*len(lossy))
	var configs []lds.Config
	for _, s := range sampled {
		configs = append(configs, shape(run, spread*17500, spread, s.rates...))
	}
	for n := range intervals {
		iv, err := newInterval(run, n)
		if err != nil {
			return experiment.Result{}, err
		}
		for l, share := range lossy {
			observed, err := iv.observe(share, nil, configs...)
			if err != nil {
				return experiment.Result{}, err
			}
			if err := step(); err != nil {
				return experiment.Result{}, err
			}
			for i, s := range observed {
				paper[l][i].add(iv, iv.estimated(s, lds.EstimateInverted), nil)
				ours[l][i].add(iv, iv.estimated(s, lds.Estimate), nil)
				_, a, err := iv.decode(ctx, s, iv.packets)
				if err != nil {
					return experiment.Result{}, err
				}
				decoded[l][i].add(iv, a, nil)
			}
			if err := step(); err != nil {
				return experiment.Result{}, err
			}
		}
	}

	result := experiment.Result{Config: map[string]any{"intervals": intervals, "losses": lossy, "sketches": configs}}
	table := experiment.Table{
		Name: "loss", Title: "Relative error of flows' means under loss: median / 95th percentile",
		Columns: []string{"loss", "rows sample", "≥ 100: as in section 4.2", "Estimate", "joint decoding", "≥ 1,000: as in section 4.2", "Estimate", "joint decoding", "flows without estimate"},
	}
	for _, c := range []int{fromThousand, fromHundred} {
		for l, share := range lossy {
			f := plot.Figure{
				Name: string(rune('a' + len(result.Figures))), Title: fmt.Sprintf("Relative error at %s loss, %s (Fig. 11)", experiment.Percent(share), classes[c].name),
				Caption: fmt.Sprintf("Over the flows of %d intervals, by what the rows sample. Dashed: the paper's estimator. Solid, multi-bank: Estimate, and joint decoding with known counts, from the same cells.", intervals),
				X:       errorAxis(0.1), Y: shareAxis,
			}
			for i, s := range sampled {
				series := paper[l][i].cdf(c)
				series.Pair, series.Paper = i+1, true
				if series.Name = s.name; i == 2 {
					series.Name += ", section 4.2"
				}
				f.Series = append(f.Series, series)
			}
			better, best := ours[l][2].cdf(c), decoded[l][2].cdf(c)
			better.Name, better.Pair = "multi-bank, Estimate", 3
			best.Name, best.Pair = "multi-bank, joint", 4
			f.Series = append(f.Series, better, best)
			result.Figures = append(result.Figures, f)
		}
	}
	for l, share := range lossy {
		for i, s := range sampled {
			table.Add(experiment.Percent(share), s.name,
				paper[l][i].cell(fromHundred), ours[l][i].cell(fromHundred), decoded[l][i].cell(fromHundred),
				paper[l][i].cell(fromThousand), ours[l][i].cell(fromThousand), decoded[l][i].cell(fromThousand),
				experiment.Number(math.Round(float64(paper[l][i].missing)/float64(intervals))))
		}
	}
	result.Tables = []experiment.Table{table}

	percent := experiment.Percent
	for _, e := range []struct {
		name  string
		by    [][]*method
		paper bool
	}{{"by section 4.2", paper, true}, {"Estimate", ours, false}, {"joint decoding", decoded, false}} {
		for _, c := range []int{fromThousand, fromHundred} {
			for l, share := range lossy {
				full, few, banks := e.by[l][0], e.by[l][1], e.by[l][2]
				claimed, judge := "better than both", experiment.Holds
				if !e.paper {
					claimed, judge = "ours: better than both", kept
				}
				result.Claims = append(result.Claims, experiment.Claim{
					What:  fmt.Sprintf("%s, %s, %s loss: multi-bank against rows at 100 %% and at 5 %%, median / 95th percentile", e.name, classes[c].name, percent(share)),
					Paper: claimed, Ours: fmt.Sprintf("%s against %s and %s", banks.cell(c), full.cell(c), few.cell(c)),
					Verdict: judge(banks.median(c) < min(full.median(c), few.median(c)) && banks.high(c) < min(full.high(c), few.high(c))),
				})
			}
		}
	}
	last := len(lossy) - 1
	for _, c := range []int{fromThousand, fromHundred} {
		by := paper[last][2].median(c)
		for _, m := range []struct {
			name string
			*method
		}{{"Estimate, which compares bounds", ours[last][2]}, {"joint decoding with known counts", decoded[last][2]}} {
			result.Claims = append(result.Claims, experiment.Claim{
				What:  fmt.Sprintf("multi-bank, %s, %s loss: median by section 4.2 and by %s", classes[c].name, percent(lossy[last]), m.name),
				Paper: percent(by), Ours: percent(m.median(c)), Verdict: experiment.Judge(m.median(c), by, 0.05),
			})
		}
	}
	result.Notes = []string{
		"The figure of the paper has no numbers to compare with; the claims are of order, in this run. Flows of which every cell lost a packet have no estimate, an error of 100 %. That multi-bank is better than both holds where its median and its 95th percentile are the smallest.",
		"By section 4.2, a cell of the 1 % row that happened to sample one packet out of hundreds passes for the purest, and the estimate rests on that packet. Where the delays of a flow are alike there is no harm in it, as it must have been on the paper's trace; here they have two modes. Estimate compares upper bounds instead.",
		"Joint decoding weighs all usable cells by what they are worth. A flow of some hundred packets keeps most of its cells at these losses, and a row that samples tells less of it than one that does not: the better the estimator, the smaller the median from rows at 100 %. What multi-bank is for are the flows that lose nearly all cells there, at the 95th percentile.",
		"Packets are lost one by one, which is hard on a sketch: a flow of 10,000 packets loses 100 at 1 %, where a burst would spoil few cells.",
	}
	return result, nil
}
