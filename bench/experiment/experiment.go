package experiment

import (
	"github.com/hoplag/hoplag/bench/plot"
)

// An Experiment reproduces one figure of a paper, or a few that show the same
// runs.
type Experiment struct {
	Name  string // on the command line: lower case, "lda-4"; unique
	Group string // by In: heading in the list and in the report: the paper
	Title string
	Claim string // what the paper claims, with section and figure, in our words

	// Weight is roughly how many seconds the full run takes on one core, by
	// which time left is told; Quick the same for the quick run. Quick 0 means
	// a thirtieth of Weight.
	Weight, Quick float64

	// Measure does it, and tells the run what it finds. An error ends it by Try.
	Measure func(run *Run)
}

// In puts experiments under a heading.
func In(group string, all ...Experiment) []Experiment {
	for i := range all {
		all[i].Group = group
	}
	return all
}

// Possible reports whether there is anything to run.
func (e *Experiment) Possible() bool { return e.Measure != nil }

// Seconds is how long the experiment takes, roughly, on one core.
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
	Claims  []Claim
	Figures []plot.Figure
	Tables  []Table
	Notes   []string // paragraphs of plain text: how it was run, where it differs from the paper, what to make of it
	Config  any      // everything that was chosen, to JSON
	Outside []string // what was read that is not part of the project
}

// A Table is shown in the report and can be copied into README.md. Cells are
// text; numbers in them come from Number and Percent.
type Table struct {
	Name    string // within the experiment, lower case; "" for its only table
	Title   string
	Columns []string
	Rows    [][]string
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }
