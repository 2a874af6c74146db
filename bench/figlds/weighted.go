package figlds

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lds"
)

var weighted = experiment.Experiment{
	Name: "lds-12", Title: "Flows that count for more than others (Fig. 12)",
	Claim: "Of 90 % bronze, 9 % silver and 1 % gold flows, with weights such as 1, 10 and 100, those of a higher weight are measured far " +
		"better than without weights, and bronze ones hardly worse, because few flows are of the others (section 5.3, Fig. 12).",
	Weight: 11, Quick: 2, Measure: measureWeighted,
}

// customers are the classes of section 5.3, each with its number of flows in a
// hundred.
var customers = []struct {
	name string
	most uint64
}{{"bronze", 90}, {"silver", 99}, {"gold", 100}}

// weights are those of Fig. 12, and none.
var weights = [][3]uint32{{1, 1, 1}, {1, 25, 100}, {1, 10, 100}, {1, 50, 2500}}

// A weighing is the result of one size and choice of weights: bronze, silver
// and gold.
type weighing [3]*method

// weightSizes are columns of the sketches.
var weightSizes = []int{10_000, 25_000}

func measureWeighted(run *experiment.Run) {
	intervals := run.Pick(1, 5)
	found := make([][]weighing, len(weightSizes)) // by size and weights
	var configs []lds.Config
	for s, columns := range weightSizes {
		configs = append(configs, shape(run, columns, 1, everything(4)...))
		for range weights {
			found[s] = append(found[s], weighing{newMethod("bronze"), newMethod("silver"), newMethod("gold")})
		}
	}
	for n := range intervals {
		iv := newInterval(run, n)
		customer := make([]int, len(iv.keys))
		for i, f := range iv.keys {
			for h := uint64(hashing.Word(iv.seed, uint64(f))) % 100; h >= customers[customer[i]].most; {
				customer[i]++
			}
		}
		for w, weights := range weights {
			for s, observed := range iv.observe(0, func(i int) uint32 { return weights[customer[i]] }, configs...) {
				for c, m := range found[s][w] {
					m.add(iv, iv.estimated(observed), func(i int) bool { return customer[i] == c })
				}
			}
		}
	}
	judgeWeighted(run, found)
	run.Note("Bronze is taken to be not highly penalised where its median grows by less than a quarter. Without weights all customers are " +
		"one, but for chance: of gold there are few flows of 100 packets and more.")
}

func judgeWeighted(run *experiment.Run, found [][]weighing) {
	for s, n := range weightSizes {
		cells := number(float64(4*n)) + " cells"
		for w := 1; w < len(weights); w++ {
			for _, c := range []int{fromHundred, all} {
				bronze, silver, gold := found[s][w][0].median(c), found[s][w][1].median(c), found[s][w][2].median(c)
				run.Holds(fmt.Sprintf("%s, weights %v, %s: gold before silver before bronze, medians", cells, weights[w], classes[c].Name),
					"in this order", fmt.Sprintf("%s, %s, %s", percent(gold), percent(silver), percent(bronze)), gold < silver && silver < bronze)
			}
		}
		// The cost and benefit of the middle weights, 1, 10 and 100.
		for _, c := range []int{fromHundred, all} {
			bronze, before := found[s][2][0].median(c), found[s][0][0].median(c)
			run.Holds(fmt.Sprintf("%s, weights 1, 10 and 100: what they cost bronze, median, %s", cells, classes[c].Name), "not highly penalised",
				fmt.Sprintf("%s → %s, by a factor of %s", percent(before), percent(bronze), number(bronze/before)), bronze < 1.25*before)
			gold, before := found[s][2][2].median(c), found[s][0][2].median(c)
			run.Holds(fmt.Sprintf("%s, weights 1, 10 and 100: what they bring gold, median, %s", cells, classes[c].Name), "significantly better",
				fmt.Sprintf("%s → %s, by a factor of %s", percent(before), percent(gold), number(before/gold)), gold < before/2)
		}
	}
}
