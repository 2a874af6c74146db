// Package experiment is the framework for the experiments in this directory.
// It defines what an experiment is, what it gets, and how it reports what it
// found. A group of experiments is a package with one function, Experiments,
// which the command names:
//
//	func Experiments() []experiment.Experiment {
//		return experiment.In("Coins", experiment.Experiment{
//			Name: "coin-1", Title: "Heads against tosses",
//			Claim:   "Half of all tosses are heads (section 2, Fig. 1).",
//			Weight:  20, // seconds that the full run takes, roughly
//			Measure: heads,
//		})
//	}
//
//	func heads(run *experiment.Run) {
//		coin := experiment.Try(mint.Strike(1)) // an error ends the run
//		random := run.Rand("tosses")           // a generator of its own, from the seed
//		table := run.Table("", "Share of heads", "tosses", "heads")
//		heads := 0.0
//		for i := range run.Times(run.Pick(10, 100)) { // quick, full; ends when interrupted
//			heads += coin.Toss(random)
//			table.Row(i+1, experiment.Percent(heads/float64(i+1)))
//		}
//		run.Between("share of heads", "0.5", heads/100, 0.5, 0.5, 0.1)
//		run.Config("coin", coin) // everything that was chosen; any value that encodes to JSON
//	}
//
// The same seed must give the same result, bit for bit. Draw from run.Rand, or
// give run.Seed to a Config. Never read a clock, and never let the order of a
// map or of goroutines show. An experiment runs on one core. The command runs
// as many side by side as there are cores, so experiments must not share
// mutable state. If several tables show the same runs, make them one
// experiment with several tables.
package experiment

import "fmt"

// An Experiment reproduces one figure of a paper, or several that show the
// same runs.
type Experiment struct {
	Name  string // on the command line: lower case, "lda-4"; unique
	Group string // set by In: heading in the list and in the report: the paper
	Title string
	Claim string // what the paper claims, with section and figure, in our words

	// Weight is the approximate duration of the full run on one core in
	// seconds. Quick is that of the quick run; 0 means a thirtieth of Weight.
	Weight, Quick float64

	// Measure runs the experiment and reports to the run what it finds. Try
	// ends it with an error.
	Measure func(run *Run)
}

// In puts experiments under a heading.
func In(group string, all ...Experiment) []Experiment {
	for i := range all {
		all[i].Group = group
	}
	return all
}

// Seconds returns the approximate duration of the experiment on one core.
func (e *Experiment) Seconds(quick bool) float64 {
	switch {
	case !quick:
		return e.Weight
	case e.Quick == 0:
		return e.Weight / 30
	}
	return e.Quick
}

// A Result is what an experiment found.
type Result struct {
	Claims   []*Claim
	Pictures []Picture
	Tables   []*Table
	Notes    []string // paragraphs of plain text: how it was run, where it differs from the paper, what it means
	Config   any      // all choices, as JSON
}

// A Picture is a drawing, in a file of its own beside the record.
type Picture struct {
	Title, Caption string
	File           string // the experiment's name, what it shows, and ".svg"
	SVG            []byte `json:"-"`
}

// A Table appears in the report. Cells are text; format numbers in them with
// Number and Percent.
type Table struct {
	Name    string // within the experiment, lower case; "" for its only table
	Title   string
	Columns []string
	Rows    [][]string
}

// Row appends a row of cells that are text, whole numbers, or lists of text:
//
//	t.Row(law.Name, packets, cells)
func (t *Table) Row(cells ...any) {
	var row []string
	for _, c := range cells {
		if list, ok := c.([]string); ok {
			row = append(row, list...)
		} else {
			row = append(row, fmt.Sprint(c))
		}
	}
	t.Rows = append(t.Rows, row)
}
