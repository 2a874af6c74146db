package figlds

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
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
	name string
	by   [][]*method
}

func newEstimator(name string) *estimator {
	e := &estimator{name: name, by: make([][]*method, len(lossy))}
	for l := range lossy {
		for _, s := range sampled {
			e.by[l] = append(e.by[l], newMethod(s.name))
		}
	}
	return e
}

func measureUnderLoss(run *experiment.Run) {
	intervals := run.Pick(1, 4)
	single, decoded := newEstimator("Estimate"), newEstimator("joint decoding")
	var configs []lds.Config
	for _, s := range sampled {
		configs = append(configs, shape(run, spread*17500, spread, s.rates...))
	}
	for n := range intervals {
		iv := newInterval(run, n)
		for l, share := range lossy {
			for i, s := range iv.observe(share, configs...) {
				single.by[l][i].add(iv, iv.estimated(s), nil)
				decoded.by[l][i].add(iv, usable(iv.decode(s, iv.packets)), nil)
			}
		}
	}
	for _, e := range []*estimator{single, decoded} {
		e.judge(run)
	}
	for _, c := range []int{fromThousand, fromHundred} {
		where := fmt.Sprintf("multi-bank, %s, %s loss: median by Estimate and by ", classes[c].Name, percent(lossy[len(lossy)-1]))
		one, joint := single.by[len(lossy)-1][2].median(c), decoded.by[len(lossy)-1][2].median(c)
		run.Claim(where+"joint decoding with known counts", "ours: "+percent(one), percent(joint), experiment.Judge(joint, one, 0.05))
	}
	run.Note("The figure of the paper has no numbers to compare with; the claims are of order, in this run. Flows of which every cell lost a "+
		"packet have no estimate, an error of 100 %. That multi-bank is better than both holds where its median and its 95th percentile are "+
		"the smallest.",
		"Joint decoding weighs all usable cells by what they are worth. A flow of some hundred packets keeps most of its cells at these "+
			"losses, and a row that samples tells less of it than one that does not: the better the estimator, the smaller the median from rows "+
			"at 100 %. What multi-bank is for are the flows that lose nearly all cells there, at the 95th percentile.",
		"Packets are lost one by one, which is hard on a sketch: a flow of 10,000 packets loses 100 at 1 %, where a burst would spoil few cells.")
}

// judge compares rows of different rates with rows of one rate.
func (e *estimator) judge(run *experiment.Run) {
	for _, c := range []int{fromThousand, fromHundred} {
		for l, share := range lossy {
			full, few, banks := e.by[l][0], e.by[l][1], e.by[l][2]
			run.Keeps(fmt.Sprintf("%s, %s, %s loss: multi-bank against rows at 100 %% and at 5 %%, median / 95th percentile",
				e.name, classes[c].Name, percent(share)),
				"ours: both", fmt.Sprintf("%s against %s and %s", banks.cell(c), full.cell(c), few.cell(c)),
				banks.median(c) < min(full.median(c), few.median(c)) && banks.high(c) < min(full.high(c), few.high(c)))
		}
	}
}
