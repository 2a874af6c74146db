package figrli

import (
	"context"
	"fmt"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/rli"
)

var quantiles = experiment.Experiment{
	Name:   "ours-rli-quantiles",
	Group:  oursGroup,
	Title:  "A flow's median and 99th percentile",
	Claim:  "The paper keeps count, sum and sum of squares, and no distribution. A histogram of each flow, 8 buckets to a doubling, gives quantiles of its estimated delays within a sixteenth; what they are off by beyond that is the estimates' error.",
	Weight: 12, Quick: 1,
	Run: runQuantiles,
}

// fewest packets that a flow's 99th percentile is asked of.
const fewest = 100

func runQuantiles(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	packets := run.Pick(150_000, 1_500_000)
	kinds := drawn
	shares := []float64{0.5, 0.99}
	result := experiment.Result{
		Config: map[string]any{"packets": packets, "injector": adaptive, "fewest": fewest, "buckets": buckets, "floor": bucketFloor},
		Notes: []string{
			fmt.Sprintf("Flows of at least %d packets that arrived. Each receiver has %d buckets a flow from %d ns on, which is %d bytes.", fewest, buckets, bucketFloor, 4*buckets),
			"The histogram's own error is that of a receiver that is told each packet's true delay, by a reference of the packet's size at each: at most 1/16 by design.",
		},
	}
	table := experiment.Table{Title: "Relative error of quantiles over flows: median / 75th percentile", Columns: []string{"traffic", "utilisation", "flows", "median: histogram alone", "RLI", "busy-aware", "99th: histogram alone", "RLI", "busy-aware"}}
	worst := 0.0
	done := 0
	for _, kind := range kinds {
		figure := plot.Figure{Name: kind.slug, Title: "Error of flows' 99th percentile, " + kind.name, Caption: fmt.Sprintf("Median over flows of %d packets and more; bars up to the 75th percentile.", fewest),
			X: loadAxis, Y: plot.Axis{Label: "relative error (%)", Scale: plot.Log},
			Series: []plot.Series{{Name: "RLI", Paper: true, Pair: 1}, {Name: "busy-aware", Pair: 2}, {Name: "histogram of true delays", Pair: 3}}}
		for _, u := range utilisations {
			p, err := simulate(run, setting{kind: kind, utilisation: u, packets: packets, injector: adaptive}, func() error {
				return run.Progress(ctx, done, len(kinds)*len(utilisations))
			})
			if err != nil {
				return experiment.Result{}, err
			}
			done++
			delays := make([][]float64, len(p.flows))
			for i := range p.events {
				if d := &p.events[i]; d.regular() && p.flows[d.flow].delays.N() >= fewest {
					delays[d.flow] = append(delays[d.flow], float64(d.delay))
				}
			}
			truth := make([][]float64, len(p.flows))
			born := make([]int32, len(p.flows)) // only these are measured, from the beginning
			flows := 0
			for i, list := range delays {
				if list == nil {
					born[i] = -1
					continue
				}
				flows++
				slices.Sort(list)
				e := estimate.NewEmpirical(list)
				for _, q := range shares {
					x, err := e.Quantile(q)
					if err != nil {
						return experiment.Result{}, err
					}
					truth[i] = append(truth[i], x)
				}
			}
			off := func(r *rli.Receiver) ([2][]float64, error) {
				errors := [2][]float64{nothing(len(p.flows)), nothing(len(p.flows))}
				for i := range truth {
					for k := range truth[i] {
						x, err := r.Quantile(p.flows[i].key, shares[k])
						if err != nil {
							return errors, err
						}
						errors[k][i] = estimate.RelativeError(x, truth[i][k])
					}
				}
				return errors, nil
			}
			exact, err := p.exact(born)
			if err != nil {
				return experiment.Result{}, err
			}
			receivers := []*rli.Receiver{exact}
			for _, m := range []method{byLine, byPeriod} {
				c := p.config(m)
				c.Buckets, c.Floor, c.Flows = buckets, bucketFloor, flows
				r, err := p.receive(c, born)
				if err != nil {
					return experiment.Result{}, err
				}
				receivers = append(receivers, r)
			}
			var lists [3][2][]float64
			for i, r := range receivers {
				if lists[i], err = off(r); err != nil {
					return experiment.Result{}, err
				}
			}
			row := []string{kind.name, percent(u), fmt.Sprint(flows)}
			for k := range shares {
				for i := range lists {
					row = append(row, percent(median(lists[i][k]))+" / "+percent(quantile(lists[i][k], 0.75)))
				}
				worst = max(worst, quantile(lists[0][k], 1))
			}
			table.Rows = append(table.Rows, row)
			for s, i := range []int{1, 2, 0} {
				list := lists[i][1]
				figure.Series[s].AddRange(100*u, 100*median(list), 100*median(list), 100*quantile(list, 0.75))
			}
			line, ours := median(lists[1][1]), median(lists[2][1])
			result.Claims = append(result.Claims, experiment.Claim{What: fmt.Sprintf("%s, %s: median error of flows' 99th percentile, RLI's delays against busy-aware's", kind.name, percent(u)), Paper: percent(line) + " (RLI here)", Ours: percent(ours), Verdict: experiment.Judge(ours, line, 0.1)})
		}
		result.Figures = append(result.Figures, figure)
	}
	verdict := experiment.AsGood
	if worst > 1.0/16+1e-9 {
		verdict = experiment.Loss
	}
	result.Claims = append(result.Claims, experiment.Claim{What: "largest error of the histogram alone, of all flows", Paper: "1/16, 6.25 % (as documented)", Ours: percent(worst), Verdict: verdict})
	result.Tables = []experiment.Table{table}
	return result, run.Progress(ctx, 1, 1)
}

const (
	buckets     = 160
	bucketFloor = 16 // ns; the shortest packet takes 32
)

// exact is a receiver whose every delay is the true one: RLI-L without a
// rate, told each packet's delay before it. It measures the flows that were
// born.
func (p *passage) exact(born []int32) (*rli.Receiver, error) {
	c := p.config(byLeft)
	c.Rate = 0
	c.Buckets, c.Floor, c.Flows = buckets, bucketFloor, 0
	for _, number := range born {
		if number >= 0 {
			c.Flows++
		}
	}
	r, err := rli.NewReceiver(c)
	if err != nil {
		return nil, err
	}
	number := uint64(0)
	for i := range p.events {
		if d := &p.events[i]; d.regular() && born[d.flow] >= 0 {
			r.Reference(rli.ReferencePacket{Sequence: number, Sent: d.out - d.delay}, d.out)
			r.Update(p.flows[d.flow].key, int(d.bytes), d.out)
			number++
		}
	}
	return r, nil
}
