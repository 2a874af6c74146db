package figlds

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/lds"
)

var byLoss = experiment.Experiment{
	Name: "ours-lds-default", Title: "Which sketch bears which loss, at the same memory",
	Claim: "Ours: of 70,000 cells in four rows, two that see every packet and two that sample 10 and 1 % answer nearly all large flows " +
		"up to 1 % loss, and without loss cost little.",
	Weight: 150, Quick: 10, Measure: measureByLoss,
}

// A candidate is a way to divide 70,000 cells.
type candidate struct {
	name    string
	columns int
	spread  int
	rates   []float64
}

var candidates = []candidate{
	{"4 rows", 17500, 1, everything(4)},
	{"2 rows", 35000, 1, everything(2)},
	{"1, 1, 10, 1 % (default)", 17500, 1, []float64{1, 1, 0.1, 0.01}},
	{"1, 10, 1 %", 23333, 1, []float64{1, 0.1, 0.01}},
	{"1, 1, 1, 10 %", 17500, 1, []float64{1, 1, 1, 0.1}},
	{"1, 1, 10, 1 %, k = 2", 17500, 2, []float64{1, 1, 0.1, 0.01}},
	{"4 rows, k = 5", 17500, 5, everything(4)},
	{"1, 50, 10, 1 %, k = 5", 17500, 5, multiBank},
	{"1, 1, 10, 1 %, k = 16", 17500, 16, []float64{1, 1, 0.1, 0.01}},
}

const defaultCandidate = 2

var chosenLoss = []float64{0, 0.001, 0.01}

func measureByLoss(run *experiment.Run) {
	intervals := run.Pick(2, 2)
	var configs []lds.Config
	read, decoded := make([][]*method, len(chosenLoss)), make([][]*method, len(chosenLoss))
	for _, c := range candidates {
		configs = append(configs, shape(run, c.columns, c.spread, c.rates...))
		for l := range chosenLoss {
			read[l], decoded[l] = append(read[l], newMethod(c.name)), append(decoded[l], newMethod(c.name))
		}
	}
	for n := range run.Times(intervals) {
		iv := newInterval(run, n)
		for l, loss := range experiment.Each(run, chosenLoss) {
			for i, s := range experiment.Each(run, iv.observe(loss, nil, configs...)) {
				read[l][i].add(iv, iv.estimated(s, lds.Estimate), nil)
				_, a := iv.decode(run, s, iv.packets)
				decoded[l][i].add(iv, a, nil)
			}
		}
	}
	for l, loss := range chosenLoss {
		title := fmt.Sprintf("70,000 cells at a loss of %s: median / 95th percentile", percent(loss))
		table := run.Table(fmt.Sprintf("loss-%d", l), title,
			"rows sample", "Estimate answers, ≥ 100 packets", "errors", "≥ 1,000: answers", "errors", "Decode, ≥ 100", "≥ 1,000")
		for i, c := range candidates {
			r := read[l][i]
			table.Row(c.name, percent(r.answers(fromHundred)), r.cell(fromHundred), percent(r.answers(fromThousand)), r.cell(fromThousand),
				decoded[l][i].cell(fromHundred), decoded[l][i].cell(fromThousand))
		}
	}
	last := len(chosenLoss) - 1
	run.Beats("1 % loss: share of flows of 1,000 packets and more without an answer, default and the paper's four rows",
		1-read[last][defaultCandidate].answers(fromThousand), 1-read[last][0].answers(fromThousand), 0.05).Headline = true
	run.Beats("no loss: median of Estimate, flows of 100 packets and more, default and the paper's four rows",
		read[0][defaultCandidate].median(fromHundred), read[0][0].median(fromHundred), 0.05)
	run.Config("intervals", intervals, "losses", chosenLoss, "sketches", configs)
	run.Note("A flow without an answer counts as an error of 100 %. Packets are lost one by one.")
}

// answers is the share of a class's flows that have an answer.
func (m *method) answers(c int) float64 {
	return 1 - float64(m.Missing(classes[c]))/float64(len(m.Of(classes[c])))
}
