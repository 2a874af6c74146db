package figlds

import (
	"context"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/lds"
)

var mined = experiment.Experiment{
	Name:   "lds-mined",
	Group:  Group,
	Title:  "What else the cells tell: deviation, packets, loss, heavy hitters",
	Claim:  "From the same cells follow a rough deviation of a flow's delay, its packets (never fewer than they were), its losses and the heavy hitters (section 4.3; without measurements).",
	Weight: 14, Quick: 2,
	Run: runMined,
}

// spreads are over how many cells of a row flows are scattered for the
// deviation.
var spreads = []int{5, 16, 64}

const (
	minedColumns = spread * 17500
	minedLoss    = 0.005 // for the losses
)

func runMined(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	intervals := run.Pick(3, 4)
	deviations := make([]*method, len(spreads))
	var configs []lds.Config
	for i, k := range spreads {
		deviations[i] = &method{name: fmt.Sprintf("k = %d", k)}
		configs = append(configs, shape(run, minedColumns, k, everything(4)...))
	}
	banks := shape(run, minedColumns, spread, multiBank...)
	plain := shape(run, 17500, 1, everything(4)...)
	countMin := &method{name: "least row (section 4.3)"}
	decoded := &method{name: "decoded together (DecodePackets)"}
	lost := &method{name: "losses"}
	thresholds := []uint64{1000, 10_000}
	hits := make([]struct{ listed, there, found float64 }, len(thresholds))
	tooFew := 0
	step := run.Steps(ctx, 2*intervals)
	for n := range intervals {
		iv, err := newInterval(run, n)
		if err != nil {
			return experiment.Result{}, err
		}
		observed, err := iv.observe(0, nil, append(configs, plain)...)
		if err != nil {
			return experiment.Result{}, err
		}
		afterLoss, err := iv.observe(minedLoss, nil, banks)
		if err != nil {
			return experiment.Result{}, err
		}
		if err := step(); err != nil {
			return experiment.Result{}, err
		}
		losses := make([]float64, len(iv.Flows))
		for i := range iv.Flows {
			for p := range iv.Flows[i].Packets() {
				if iv.loses(p, minedLoss) {
					losses[i]++
				}
			}
		}
		for i, s := range observed[:len(spreads)] {
			deviations[i].addOf(iv, func(i int) (got, truth float64, ok bool) {
				r, err := lds.Estimate(s.up, s.down, iv.keys[i])
				return r.StdDev, iv.Flows[i].StdDev, err == nil && r.DegreesOfFreedom > 0
			}, nil)
		}
		lost.addOf(iv, func(i int) (got, truth float64, ok bool) {
			r, _ := lds.Estimate(afterLoss[0].up, afterLoss[0].down, iv.keys[i]) // Lost is told without a delay, too
			return float64(r.Lost), losses[i], true
		}, func(i int) bool { return losses[i] > 0 })

		s := observed[len(spreads)].up
		packets, _, err := s.DecodePackets(ctx, iv.keys)
		if err != nil {
			return experiment.Result{}, err
		}
		countMin.addOf(iv, func(i int) (got, truth float64, ok bool) {
			got = float64(s.Packets(iv.keys[i]))
			if got < iv.packets[i] {
				tooFew++
			}
			return got, iv.packets[i], true
		}, nil)
		decoded.addOf(iv, func(i int) (got, truth float64, ok bool) { return packets[i], iv.packets[i], true }, nil)
		for t, threshold := range thresholds {
			sizes := make(map[uint64]uint64, len(iv.keys))
			for i, f := range iv.keys {
				sizes[uint64(f)] = uint64(iv.Flows[i].Size)
				if iv.packets[i] >= float64(threshold) {
					hits[t].there++
				}
			}
			for _, h := range s.HeavyHitters(nil, iv.keys, threshold) {
				hits[t].listed++
				if sizes[uint64(h.Flow)] >= threshold {
					hits[t].found++
				}
			}
		}
		if err := step(); err != nil {
			return experiment.Result{}, err
		}
	}

	deviation := plot.Figure{
		Name: "a", Title: "Relative error of the deviation of a flow's delay, flows of 1,000 packets and more",
		Caption: fmt.Sprintf("Count-conditioned, over the flows of %d intervals; 4 rows of %s cells, no loss.", intervals, experiment.Number(minedColumns)),
		X:       errorAxis(0.1), Y: shareAxis,
	}
	for _, m := range deviations {
		deviation.Series = append(deviation.Series, m.cdf(fromThousand))
	}
	packets := plot.Figure{
		Name: "b", Title: "Median relative error of a flow's packets, 17,500 × 4 cells",
		Caption: "The same intervals; bars from the lowest to the highest median of an interval.",
		X:       binAxis(), Y: plot.Axis{Label: "relative error (%)", Scale: plot.Log},
	}
	paper := countMin.byBin(countMin.name, false)
	paper.Paper = true
	packets.Series = []plot.Series{paper, decoded.byBin(decoded.name, false)}

	percent := experiment.Percent
	heavy := experiment.Table{Name: "heavy", Title: "Heavy hitters with 17,500 × 4 cells, all flows being candidates", Columns: []string{"packets at least", "there are", "listed", "found", "of the listed, true"}}
	claims := []experiment.Claim{
		{What: "flows whose packets are told too few, 17,500 × 4 cells", Paper: "none", Ours: experiment.Number(float64(tooFew)), Verdict: experiment.Holds(tooFew == 0)},
	}
	for t, h := range hits {
		per := float64(intervals)
		heavy.Add(experiment.Number(float64(thresholds[t])), experiment.Number(math.Round(h.there/per)), experiment.Number(math.Round(h.listed/per)),
			percent(h.found/h.there), percent(h.found/h.listed))
		claims = append(claims, experiment.Claim{
			What:  fmt.Sprintf("heavy hitters of %s packets and more: found, and true of the listed", experiment.Number(float64(thresholds[t]))),
			Paper: "all found", Ours: percent(h.found/h.there) + ", " + percent(h.found/h.listed), Verdict: experiment.Holds(h.found == h.there),
		})
	}
	c := fromHundred
	claims = append(claims,
		experiment.Claim{What: "median error of a flow's packets, " + classes[c].name + ": least row, and decoded together", Paper: percent(countMin.median(c)), Ours: percent(decoded.median(c)),
			Verdict: experiment.Judge(decoded.median(c), countMin.median(c), 0.05)},
	)
	table := experiment.Table{Name: "deviation", Title: "Relative error of the deviation: median / 95th percentile", Columns: []string{"cells a row (k)", "≥ 100 packets", "≥ 1,000 packets", "≥ 10,000 packets"}}
	for i, k := range spreads {
		m := deviations[i]
		table.Add(fmt.Sprint(k), m.cell(fromHundred), m.cell(fromThousand), m.cell(len(classes)-1))
	}
	losses := experiment.Table{
		Name: "loss", Title: fmt.Sprintf("Relative error of a flow's losses, at %s loss, of flows that lost packets: median / 95th percentile", percent(minedLoss)),
		Columns: []string{"sketch", "≥ 100 packets", "≥ 1,000 packets", "≥ 10,000 packets"},
	}
	losses.Add("87,500 × 4, k = 5, multi-bank", lost.cell(fromHundred), lost.cell(fromThousand), lost.cell(len(classes)-1))
	claims = append(claims, experiment.Claim{
		What: fmt.Sprintf("median error of the deviation, %s, k = %d and k = %d", classes[fromThousand].name, spreads[0], spreads[len(spreads)-1]), Paper: "rough",
		Ours: percent(deviations[0].median(fromThousand)) + " and " + percent(deviations[len(spreads)-1].median(fromThousand)), Verdict: experiment.AsGood,
	})
	return experiment.Result{
		Figures: []plot.Figure{deviation, packets},
		Tables:  []experiment.Table{table, heavy, losses},
		Claims:  claims,
		Config:  map[string]any{"intervals": intervals, "sketches": append(configs, plain, banks), "loss": minedLoss},
		Notes: []string{
			"The deviation needs several usable cells in one row; flows for which there are none count as an error of 100 %. The neighbours in the cells add the distance of their means from the flow's own, which here is as large as what is looked for.",
		},
	}, nil
}
