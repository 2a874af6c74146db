package figlds

import (
	"context"
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/lds"
)

var jointDecoding = experiment.Experiment{
	Name:   "ours-lds-joint",
	Group:  "Ours: LDS",
	Title:  "All flows decoded together, from the same cells",
	Claim:  "Ours: given the flows' keys and packet counts, estimating all flows from all cells at once has at most a quarter of the median error of the paper's estimator (Fig. 6) for flows of 100 packets and more with 17,500 × 4 cells, is never worse than the mean of all packets for small flows, and tells for each flow how far off it may be.",
	Weight: 55, Quick: 5,
	Run: runJoint,
}

// A setting is a sketch and what it is put through.
type setting struct {
	name    string
	columns int
	spread  int
	rates   []float64
	loss    float64
}

var settings = []setting{
	{"1,750 × 4", 1750, 1, everything(4), 0},
	{"17,500 × 4", 17500, 1, everything(4), 0},
	{"175,000 × 4", 175000, 1, everything(4), 0},
	{"87,500 × 4, k = 5, multi-bank, 0.5 % loss", spread * 17500, spread, multiBank, 0.005},
}

const confidence = 0.95 // of the intervals whose coverage is measured

// A race is between the estimators on the sketches of one setting.
type race struct {
	setting
	paper, known, unknown *method
	covered               [2][]coverage // known and unknown, by class
}

// coverage is how many flows have their true mean in their interval.
type coverage struct{ in, all uint64 }

func (c coverage) share() float64 { return float64(c.in) / float64(c.all) }

func runJoint(ctx context.Context, run *experiment.Run) (experiment.Result, error) {
	intervals := run.Pick(2, 3)
	mean := &method{name: "mean of all packets"}
	var races []*race
	var configs []lds.Config
	for _, s := range settings {
		r := &race{setting: s, paper: &method{name: "Fig. 6"}, known: &method{name: "joint, counts known"}, unknown: &method{name: "joint, counts decoded"}}
		for i := range r.covered {
			r.covered[i] = make([]coverage, len(classes))
		}
		races = append(races, r)
		configs = append(configs, shape(run, s.columns, s.spread, s.rates...))
	}
	step := run.Steps(ctx, intervals*len(races)*2)
	for n := range intervals {
		iv, err := newInterval(run, n)
		if err != nil {
			return experiment.Result{}, err
		}
		mean.add(iv, same(iv.Mean), nil)
		for i, r := range races {
			observed, err := iv.observe(r.loss, nil, configs[i])
			if err != nil {
				return experiment.Result{}, err
			}
			r.paper.add(iv, iv.estimated(observed[0], lds.EstimateInverted), nil)
			for k, m := range []*method{r.known, r.unknown} {
				packets := iv.packets
				if k == 1 {
					packets = nil
				}
				decoded, answers, err := iv.decode(ctx, observed[0], packets)
				if err != nil {
					return experiment.Result{}, err
				}
				m.add(iv, answers, nil)
				iv.cover(decoded, r.covered[k])
				if err := step(); err != nil {
					return experiment.Result{}, err
				}
			}
		}
	}

	result := experiment.Result{Config: map[string]any{"intervals": intervals, "sketches": configs, "loss of the last": settings[len(settings)-1].loss}}
	main := races[1]
	cdf := plot.Figure{
		Name: "a", Title: "Relative error, flows of 100 packets and more, 17,500 × 4 cells",
		Caption: fmt.Sprintf("Distribution over the flows of %d intervals, from the same cells.", intervals),
		X:       errorAxis(0.01), Y: shareAxis,
	}
	paper := main.paper.cdf(fromHundred)
	paper.Paper = true
	cdf.Series = []plot.Series{paper, main.known.cdf(fromHundred), main.unknown.cdf(fromHundred), mean.cdf(fromHundred)}
	result.Figures = append(result.Figures, cdf)
	for i, r := range races {
		f := plot.Figure{
			Name: string(rune('b' + i)), Title: "Median relative error by size, " + r.name,
			Caption: "The same intervals; bars from the lowest to the highest median of an interval.",
			X:       binAxis(), Y: plot.Axis{Label: "relative error (%)", Scale: plot.Log},
		}
		for _, m := range []*method{r.paper, r.known, r.unknown, mean} {
			s := m.byBin(m.name, false)
			s.Paper = m == r.paper
			f.Series = append(f.Series, s)
		}
		result.Figures = append(result.Figures, f)
	}
	coverages := plot.Figure{
		Name: "f", Title: "Flows whose mean is within its 95 % interval, counts known",
		Caption: "By joint decoding, of the same flows.",
		X:       binAxis(), Y: plot.Axis{Label: "flows (%)", Min: 90, Max: 100},
	}
	decodedCoverages := coverages
	decodedCoverages.Name, decodedCoverages.Title, decodedCoverages.Caption = "g", "Flows whose mean is within its 95 % interval, counts decoded", "The same flows; their packets are decoded from the cells, too."
	for _, r := range races {
		for k, f := range []*plot.Figure{&coverages, &decodedCoverages} {
			s := plot.Series{Name: r.name}
			for b := range bins {
				if c := r.covered[k][firstBin+b]; c.all > 0 {
					s.Add(float64(b), 100*c.share())
				}
			}
			f.Series = append(f.Series, s)
		}
	}
	level := plot.Level("asked for", 100*confidence, 0, float64(len(bins)-1))
	coverages.Series = append(coverages.Series, level)
	decodedCoverages.Series = append(decodedCoverages.Series, level)
	result.Figures = append(result.Figures, coverages, decodedCoverages)

	table := experiment.Table{
		Name: "joint", Title: "Relative error of flows' means: median / 95th percentile",
		Columns: []string{"sketch", "flows", "mean of all packets", "Fig. 6", "joint, counts known", "joint, counts decoded"},
	}
	cover := experiment.Table{
		Name: "coverage", Title: "Share of flows whose mean is within its 95 % interval",
		Columns: []string{"sketch", "flows", "counts known", "counts decoded"},
	}
	for _, r := range races {
		for _, c := range []int{all, fromHundred, fromThousand} {
			table.Add(r.name, classes[c].name, mean.cell(c), r.paper.cell(c), r.known.cell(c), r.unknown.cell(c))
		}
		for c := range classes {
			cover.Add(r.name, classes[c].name, fmt.Sprintf("%.1f %%", 100*r.covered[0][c].share()), fmt.Sprintf("%.1f %%", 100*r.covered[1][c].share()))
		}
	}
	result.Tables = []experiment.Table{table, cover}
	result.Claims = jointClaims(races, mean)
	result.Notes = []string{
		"Both estimators read the same cells. Joint decoding is also given the keys of the interval's flows, as flow records of one of the points have them, and, where counts are known, their packets. It computes for a second or so, for all flows at once.",
		"With rows of different rates, the paper's estimator is that of section 4.2. Estimate, which compares bounds instead, is in between: see lds-11.",
		"Coverage: small flows have the skew and the modes of the delays themselves, for which a normal interval would be too narrow.",
	}
	return result, nil
}

// cover counts flows whose mean is in their interval.
func (iv *interval) cover(r *joint.Result, by []coverage) {
	for i := range iv.Flows {
		f := &iv.Flows[i]
		in := r.MeanInterval(i, confidence).Contains(f.Mean)
		for c := range classes {
			if classes[c].has(f) {
				by[c].all++
				if in {
					by[c].in++
				}
			}
		}
	}
}

func jointClaims(races []*race, mean *method) []experiment.Claim {
	percent := experiment.Percent
	var claims []experiment.Claim
	for _, r := range races {
		for _, m := range []*method{r.known, r.unknown} {
			before, after := r.paper.median(fromHundred), m.median(fromHundred)
			c := experiment.Claim{
				What: fmt.Sprintf("%s: median of Fig. 6 and of %s, %s", r.name, m.name, classes[fromHundred].name), Paper: percent(before),
				Ours: fmt.Sprintf("%s, %s of it", percent(after), experiment.Number(after/before)), Verdict: experiment.Judge(after, before, 0.05),
			}
			c.Headline = r == races[1]
			claims = append(claims, c)
			if r == races[1] {
				c.What = fmt.Sprintf("%s: %s has at most a quarter of Fig. 6's median, %s", r.name, m.name, classes[fromHundred].name)
				c.Paper, c.Verdict = "ours: ≤ 0.25", kept(after <= before/4)
				c.Ours, c.Headline = experiment.Number(after/before), false
				claims = append(claims, c)
			}
		}
	}
	for _, r := range races {
		for _, m := range []*method{r.known, r.unknown} {
			worst := firstBin
			for b := range bins[:5] { // below 500 packets
				if c := firstBin + b; m.median(c)/mean.median(c) > m.median(worst)/mean.median(worst) {
					worst = c
				}
			}
			claims = append(claims, experiment.Claim{
				What:  fmt.Sprintf("%s: median of %s, against the mean of all packets, where it is least good below 500 packets (%s)", r.name, m.name, classes[worst].name),
				Paper: "ours: never worse", Ours: percent(m.median(worst)) + " against " + percent(mean.median(worst)), Verdict: experiment.Judge(m.median(worst), mean.median(worst), 0.02),
			})
		}
	}
	for k, name := range []string{"counts known", "counts decoded"} {
		worst, where := coverage{1, 1}, ""
		for _, r := range races {
			for c := range classes {
				if x := r.covered[k][c]; x.all > 0 && x.share() < worst.share() {
					worst, where = x, r.name+", "+classes[c].name
				}
			}
		}
		// As good, if no worse than chance would have it.
		v := experiment.AsGood
		chance := estimate.ProportionInterval(worst.in, worst.all, 0.99)
		if chance.High < confidence {
			v = experiment.Loss
		}
		claims = append(claims, experiment.Claim{
			What:  "95 % intervals, " + name + ": lowest coverage of any class (" + where + ")",
			Paper: "ours: ≥ 95 %", Ours: fmt.Sprintf("%.1f %% of %s flows", 100*worst.share(), experiment.Number(float64(worst.all))), Verdict: v,
		})
	}
	return claims
}
