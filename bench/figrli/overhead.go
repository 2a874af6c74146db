package figrli

import (
	"context"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/hashing"
)

var overhead = experiment.Experiment{
	Name:   "rli-12",
	Group:  group,
	Title:  "What references cost (Fig. 12)",
	Claim:  "References take about 0.1 % of the link at low utilisation and 0.007 % at 90 % (section V-D, Fig. 12a). Delays of flows change little, and about a tenth of them fall, as other packets are dropped than before (Fig. 12b). Loss differs by at most 0.001 % of the packets at almost 80 % utilisation (Fig. 12c).",
	Weight: 25, Quick: 1.5,
	Run: runOverhead,
}

// steps of utilisation, and the most of a link's capacity that references may
// take.
var (
	grades       = []float64{0.2, 0.3, 0.4, 0.55, 0.6, 0.7, 0.8, 0.88, 0.95}
	mostCapacity = 0.002
)

func runOverhead(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	packets := run.Pick(60_000, 1_000_000)
	kinds, notes, err := everyKind()
	if err != nil {
		return experiment.Result{}, err
	}
	result := experiment.Result{
		Config: map[string]any{"packets": packets, "injector": adaptive, "utilisations": grades},
		Notes: append(notes,
			"The same packets are sent with references and without. A packet's identity does not show in what the queue does, so whether it is dropped depends on its place only.",
			"The share of capacity depends on the size of packets: one reference of 48 bytes to 10 packets is 1.4 % of the bytes where packets have 340 bytes on average, so 0.3 % of a link at 20 %. The paper's 0.1 % would want packets of about 1,000 bytes at that rate.",
		),
	}
	capacity := plot.Figure{Name: "a", Title: "Capacity that references take (Fig. 12a)", X: loadAxis, Y: plot.Axis{Label: "share of the link's capacity (%)", Scale: plot.Log}, Caption: "The adaptive injector, references of 48 bytes."}
	losses := plot.Figure{Name: "c", Title: "Loss with references less loss without (Fig. 12c)", X: loadAxis, Y: plot.Axis{Label: "percentage points"}, Caption: "The same packets with and without references."}
	delays := plot.Figure{Name: "b", Title: "How much a flow's mean delay changes at 88 % (Fig. 12b)", X: plot.Axis{Label: "change (µs)", Scale: plot.Log, Min: 1e-4, Max: 1e4}, Y: plot.Axis{Label: "share of all flows that change by at least so much", Scale: plot.Log}, Caption: "PI: flows whose mean delay rises with references. NI: flows whose falls."}
	table := experiment.Table{Title: "With references and without", Columns: []string{"traffic", "utilisation", "references per packet", "capacity", "mean delay without", "with", "a flow's change: 10th percentile", "median", "90th", "loss without", "with"}}
	steps, done := 2*len(kinds)*len(grades), 0
	step := func() error { return run.Progress(ctx, done, steps) }
	for k, kind := range kinds {
		taken := plot.Series{Name: kind.name, Pair: k + 1}
		lost := plot.Series{Name: kind.name, Pair: k + 1}
		most, change, fallen := 0.0, 0.0, 0.0
		for _, u := range grades {
			s := setting{kind: kind, utilisation: u, packets: kind.enough(packets)}
			without, err := simulate(run, s, step)
			if err != nil {
				return experiment.Result{}, err
			}
			done++
			s.injector = adaptive
			with, err := simulate(run, s, step)
			if err != nil {
				return experiment.Result{}, err
			}
			done++
			share := with.cost.Capacity(rate)
			most = max(most, share)
			taken.Add(100*u, 100*share)
			more := with.loss() - without.loss()
			lost.Add(100*u, 100*more)
			if u == 0.8 {
				change = more
			}
			was := map[hashing.Flow]float64{}
			for i := range without.flows {
				was[without.flows[i].key] = without.flows[i].mean()
			}
			var changes, up, down []float64
			for i := range with.flows {
				if before, ok := was[with.flows[i].key]; ok {
					d := with.flows[i].mean() - before
					changes = append(changes, d)
					if d > 0 {
						up = append(up, d)
					} else if d < 0 {
						down = append(down, -d)
					}
				}
			}
			table.Add(kind.name, percent(u), percent(with.cost.Rate()), percent(share), duration(without.all.Mean()), duration(with.all.Mean()),
				signed(quantile(changes, 0.1)), signed(median(changes)), signed(quantile(changes, 0.9)), percent(without.loss()), percent(with.loss()))
			if u == 0.88 {
				fallen = float64(len(down)) / float64(len(changes))
				for i, list := range [][]float64{up, down} {
					s := plot.Series{Name: kind.name + []string{", PI", ", NI"}[i], Kind: plot.Line, Paper: i == 1, Pair: k + 1}
					for q := range 100 {
						if len(list) > 0 {
							s.Add(quantile(list, float64(q)/100)/1e3, float64(len(list))/float64(len(changes))*(1-float64(q)/100))
						}
					}
					if len(s.X) > 0 {
						delays.Series = append(delays.Series, s)
					}
				}
			}
		}
		capacity.Series = append(capacity.Series, taken)
		losses.Series = append(losses.Series, lost)
		within := experiment.AsGood
		if most > mostCapacity {
			within = experiment.DoesNotHold
		}
		result.Claims = append(result.Claims,
			experiment.Claim{What: kind.name + ": most of the capacity that references take", Paper: "about 0.1 %, so at most 0.2 %", Ours: percent(most), Verdict: within},
			experiment.Claim{What: kind.name + ": capacity at 95 %", Paper: "0.007 % (at 90 %)", Ours: percent(last(taken.Y) / 100), Verdict: atMost(last(taken.Y)/100, 0.00007)},
			experiment.Claim{What: kind.name + ": additional loss at 80 %", Paper: "at most 0.001 %", Ours: signedPercent(change), Verdict: atMost(max(change, 0), 0.00001)},
			experiment.Claim{What: kind.name + ": flows whose mean delay falls, at 88 %", Paper: "about 10 %", Ours: percent(fallen), Verdict: atMost(fallen, 0.10)},
		)
	}
	result.Figures = []plot.Figure{capacity, delays, losses}
	result.Tables = []experiment.Table{table}
	return result, run.Progress(ctx, 1, 1)
}

// signed is a time in ns with its sign.
func signed(ns float64) string {
	if ns < 0 {
		return "−" + duration(-ns)
	}
	return "+" + duration(ns)
}

func signedPercent(x float64) string {
	return fmt.Sprintf("%s%s", map[bool]string{true: "−", false: "+"}[x < 0], percent(math.Abs(x)))
}
