package figlds

import (
	"context"
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lds"
)

var weighted = experiment.Experiment{
	Name:   "lds-12",
	Group:  Group,
	Title:  "Flows that count for more than others (Fig. 12)",
	Claim:  "Of 90 % bronze, 9 % silver and 1 % gold flows, with weights such as 1, 10 and 100, those of a higher weight are measured far better than without weights, and bronze ones hardly worse, because few flows are of the others (section 5.3, Fig. 12).",
	Weight: 11, Quick: 2,
	Run: runWeighted,
}

// customers are the classes of section 5.3, each with its flows of a hundred.
var customers = []struct {
	name string
	most uint64
}{{"bronze", 90}, {"silver", 99}, {"gold", 100}}

// weights are those of Fig. 12, and none.
var weights = [][3]uint32{{1, 1, 1}, {1, 25, 100}, {1, 10, 100}, {1, 50, 2500}}

func runWeighted(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	intervals := run.Pick(5, 5)
	columns := []int{10_000, 25_000}
	found := make([][][]*method, len(columns)) // by size, weights and customer
	for s := range found {
		for w := range weights {
			found[s] = append(found[s], nil)
			for _, c := range customers {
				found[s][w] = append(found[s][w], &method{name: c.name})
			}
		}
	}
	var configs []lds.Config
	for _, c := range columns {
		configs = append(configs, shape(run, c, 1, everything(4)...))
	}
	step := run.Steps(ctx, intervals*len(weights))
	for n := range intervals {
		iv, err := newInterval(run, n)
		if err != nil {
			return experiment.Result{}, err
		}
		customer := make([]int, len(iv.keys))
		for i, f := range iv.keys {
			for h := uint64(hashing.Word(iv.seed, uint64(f))) % 100; h >= customers[customer[i]].most; {
				customer[i]++
			}
		}
		for w, weights := range weights {
			observed, err := iv.observe(0, func(i int) uint32 { return weights[customer[i]] }, configs...)
			if err != nil {
				return experiment.Result{}, err
			}
			for s := range columns {
				for c := range customers {
					found[s][w][c].add(iv, iv.estimated(observed[s], lds.Estimate), func(i int) bool { return customer[i] == c })
				}
			}
			if err := step(); err != nil {
				return experiment.Result{}, err
			}
		}
	}

	result := experiment.Result{Config: map[string]any{"intervals": intervals, "sketches": configs, "weights": weights}}
	table := experiment.Table{
		Name: "weights", Title: "Relative error of flows' means: median / 95th percentile",
		Columns: []string{"cells", "weights", "flows", "bronze", "silver", "gold"},
	}
	for s, n := range columns {
		cells := experiment.Number(float64(4 * n))
		for w, weights := range weights {
			name := fmt.Sprintf("%d, %d, %s", weights[0], weights[1], experiment.Number(float64(weights[2])))
			for _, c := range []int{fromHundred, all} {
				row := []string{cells, name, classes[c].name}
				for _, m := range found[s][w] {
					row = append(row, m.cell(c))
				}
				table.Rows = append(table.Rows, row)
			}
			if w == 0 {
				continue
			}
			f := plot.Figure{
				Name: string(rune('a' + len(result.Figures))), Title: fmt.Sprintf("Relative error with %s cells and weights %s (Fig. 12)", cells, name),
				Caption: fmt.Sprintf("Flows of 100 packets and more, of %d intervals. Dashed: bronze ones without weights, like all others then.", intervals),
				X:       errorAxis(0.01), Y: shareAxis,
			}
			even := found[s][0][0].cdf(fromHundred)
			even.Name, even.Pair, even.Paper = "bronze, no weights", 1, true
			f.Series = []plot.Series{found[s][w][0].cdf(fromHundred), even, found[s][w][1].cdf(fromHundred), found[s][w][2].cdf(fromHundred)}
			for i, pair := range []int{1, 1, 2, 3} {
				f.Series[i].Pair = pair
			}
			result.Figures = append(result.Figures, f)
		}
	}
	result.Tables = []experiment.Table{table}

	percent := experiment.Percent
	for s, n := range columns {
		cells := experiment.Number(float64(4*n)) + " cells"
		for w := 1; w < len(weights); w++ {
			name := fmt.Sprint(weights[w])
			m := found[s][w]
			for _, c := range []int{fromHundred, all} {
				bronze, silver, gold := m[0].median(c), m[1].median(c), m[2].median(c)
				result.Claims = append(result.Claims, experiment.Claim{
					What: fmt.Sprintf("%s, weights %s, %s: gold before silver before bronze, medians", cells, name, classes[c].name), Paper: "in this order",
					Ours: fmt.Sprintf("%s, %s, %s", percent(gold), percent(silver), percent(bronze)), Verdict: experiment.Holds(gold < silver && silver < bronze),
				})
			}
		}
		// What the middle weights, 1, 10 and 100, cost and bring.
		for _, c := range []int{fromHundred, all} {
			bronze, before := found[s][2][0].median(c), found[s][0][0].median(c)
			result.Claims = append(result.Claims, experiment.Claim{
				What: fmt.Sprintf("%s, weights 1, 10 and 100: what they cost bronze, median, %s", cells, classes[c].name), Paper: "not highly penalised",
				Ours: fmt.Sprintf("%s → %s, by a factor of %s", percent(before), percent(bronze), experiment.Number(bronze/before)), Verdict: experiment.Holds(bronze < 1.25*before),
			})
			gold, before := found[s][2][2].median(c), found[s][0][2].median(c)
			result.Claims = append(result.Claims, experiment.Claim{
				What: fmt.Sprintf("%s, weights 1, 10 and 100: what they bring gold, median, %s", cells, classes[c].name), Paper: "significantly better",
				Ours: fmt.Sprintf("%s → %s, by a factor of %s", percent(before), percent(gold), experiment.Number(before/gold)), Verdict: experiment.Holds(gold < before/2),
			})
		}
	}
	result.Notes = []string{
		"Bronze is taken to be not highly penalised where its median grows by less than a quarter. Without weights all customers are one, but for chance: of gold there are few flows of 100 packets and more.",
	}
	return result, nil
}
