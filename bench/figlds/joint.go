package figlds

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/perflow"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lds"
)

// Joint decodes all flows together.
var Joint = experiment.Experiment{
	Name: "ours-lds-joint", Title: "All flows decoded together, from the same cells",
	Claim: "Ours: given the flows' keys and packet counts, estimating all flows from all cells at once has at most a quarter of the " +
		"median error of Fig. 6 for flows of 100 packets and more, is never worse than the mean of all, and says how far off it may be.",
	Weight: 150, Quick: 5, Measure: measureJoint,
}

const confidence = 0.95 // of the intervals whose coverage is measured
var coverings = []string{"Fig. 6", "counts known", "counts decoded"}

// A race compares the estimators on one of the paper's sketches.
type race struct {
	name                  string
	paper, known, unknown *method
	covered               [3][]perflow.Coverage // by coverings and class
}

func measureJoint(run *experiment.Run) {
	intervals := run.Pick(1, 3)
	mean := newMethod("mean of all packets")
	var races []*race
	var configs []lds.Config
	for i, columns := range append(columnsOf, lds.DefaultConfig.Columns) {
		r := &race{name: number(float64(columns)) + " × 4", paper: newMethod("Fig. 6"),
			known: newMethod("joint, counts known"), unknown: newMethod("joint, counts decoded")}
		for i := range r.covered {
			r.covered[i] = make([]perflow.Coverage, len(classes))
		}
		races = append(races, r)
		configs = append(configs, shape(run, columns))
		if i == len(columnsOf) {
			r.name += ", two of which sample"
			configs[i].Rates = lds.DefaultConfig.Rates
		}
	}
	for n := range intervals {
		iv := newInterval(run, n)
		mean.add(iv, same(iv.Mean), nil)
		for i, r := range races {
			observed := iv.observe(0, configs[i])
			read := make([]lds.Result, len(iv.keys)) // without an answer, of no packets
			for f, key := range iv.keys {
				read[f], _ = lds.Estimate(observed[0].up, observed[0].down, key)
			}
			r.paper.add(iv, func(f int) float64 { return read[f].Mean / min(float64(read[f].N), 1) }, nil)
			iv.cover(func(f int) estimate.Interval { return read[f].MeanInterval(confidence) }, r.covered[0])
			for k, packets := range [][]float64{iv.packets, nil} {
				decoded := iv.decode(observed[0], packets)
				[]*method{r.known, r.unknown}[k].add(iv, usable(decoded), nil)
				iv.cover(func(f int) estimate.Interval { return decoded.MeanInterval(f, confidence) }, r.covered[k+1])
			}
		}
	}
	tabulateJoint(run, races, mean)
	judgeJoint(run, races, mean)
	judgeCovered(run, races)
	run.Note("Both estimators read the same cells. Joint decoding is also given the keys of the interval's flows, and, where counts are " +
		"known, their packets, as flow records have them. Half-widths are medians, by the median error: as they are, and the least that " +
		"would do for 95 % of the flows of each size to hold in each fifth of the answers, by how sure they say to be. Fig. 6 does not " +
		"know a flow's size. What is exact has none.")
}

func tabulateJoint(run *experiment.Run, races []*race, mean *method) {
	table := run.Table("Relative error of flows' means: median / 95th percentile", "sketch", "flows", "mean of all packets",
		"Fig. 6", "joint, counts known", "joint, counts decoded")
	cover := run.Table("Share of flows whose mean is within its 95 % interval", "sketch", "flows", "half-width: Fig. 6, least",
		"joint, least", coverings[0], coverings[1], coverings[2])
	for _, r := range races {
		for c := range classes {
			table.Row(r.name, classes[c].Name, mean.cell(c), r.paper.cell(c), r.known.cell(c), r.unknown.cell(c))
		}
		for c := range classes {
			one, all, before, after := &r.covered[0][c], &r.covered[1][c], r.paper.median(c), r.known.median(c)
			cover.Row(r.name, classes[c].Name, number(one.HalfWidth()/before)+", "+number(one.Least(confidence, r.covered[0]...)/before),
				number(all.HalfWidth()/after)+", "+number(all.Least(confidence, *all)/after),
				percent(one.Share()), percent(all.Share()), percent(r.covered[2][c].Share()))
		}
	}
}

func (iv *interval) cover(within func(f int) estimate.Interval, by []perflow.Coverage) {
	for i := range iv.Flows {
		f, in := &iv.Flows[i], within(i)
		in.Low, in.High = in.Low-1e-9*f.Mean, in.High+1e-9*f.Mean // what is exact but for rounding holds
		for c := range classes {
			if classes[c].Has(f.Size) {
				by[c].Add(in, f.Mean)
			}
		}
	}
}

func judgeJoint(run *experiment.Run, races []*race, mean *method) {
	for _, r := range races {
		for _, m := range []*method{r.known, r.unknown} {
			before, after := max(1e-6, r.paper.median(fromHundred)), max(1e-6, m.median(fromHundred)) // less is exact
			run.Claim(fmt.Sprintf("%s: median of Fig. 6 and of %s, %s", r.name, m.Name, classes[fromHundred].Name), percent(before),
				fmt.Sprintf("%s, %s of it", percent(after), number(after/before)), experiment.Judge(after, before, percent))
			if r == races[1] {
				run.Meets(fmt.Sprintf("%s: %s has at most a quarter of Fig. 6's median, %s", r.name, m.Name, classes[fromHundred].Name),
					"ours: ≤ 0.25", number(after/before), after <= before/4)
			}
			worst := firstBin
			for c := firstBin; c < firstBin+5; c++ { // below 500 packets
				if m.median(c)/mean.median(c) > m.median(worst)/mean.median(worst) {
					worst = c
				}
			}
			run.Claim(fmt.Sprintf("%s: median of %s, against the mean of all packets, where it is least good below 500 packets (%s)", r.name,
				m.Name, classes[worst].Name),
				"ours: never worse", percent(m.median(worst))+" against "+percent(mean.median(worst)),
				experiment.Judge(m.median(worst), mean.median(worst), percent))
		}
	}
}

// judgeCovered judges the lowest coverage of any class: as good if no worse than by chance.
func judgeCovered(run *experiment.Run, races []*race) {
	for k, name := range coverings {
		worst, where := perflow.Coverage{Held: 1, All: 1}, ""
		for _, r := range races {
			for c := range classes {
				if x := r.covered[k][c]; x.All > 0 && x.Share() < worst.Share() {
					worst, where = x, r.name+", "+classes[c].Name
				}
			}
		}
		run.Claim("95 % intervals, "+name+": lowest coverage of any class ("+where+")", "ours: ≥ 95 %",
			fmt.Sprintf("%.1f %% of %s flows", 100*worst.Share(), number(float64(worst.All))),
			experiment.Covers(worst.Held, worst.All, confidence, 0.99))
	}
}
