package experiment

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/plot"
)

// An Experiment reproduces one figure of a paper, or several that show the
// same runs.
type Experiment struct {
	Name  string // on the command line: lower case, "lda-4"; unique
	Group string // set by In: heading in the list and in the report: the paper
	Title string
	Claim string // what the paper claims, with section and figure, in our words

	// Weight is the approximate duration of the full run on one core in
	// seconds, for estimates of the time left. Quick is that of the quick run;
	// 0 means a thirtieth of Weight.
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

// Possible reports whether there is anything to run.
func (e *Experiment) Possible() bool { return e.Measure != nil }

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
	Claims  []Claim
	Figures []plot.Figure
	Tables  []Table
	Notes   []string // paragraphs of plain text: how it was run, where it differs from the paper, what it means
	Config  any      // all choices, as JSON
	Outside []string // what was read from outside the project
}

// A Table appears in the report and can be copied into README.md. Cells are
// text; format numbers in them with Number and Percent.
type Table struct {
	Name    string // within the experiment, lower case; "" for its only table
	Title   string
	Columns []string
	Rows    [][]string
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Row is Add for cells that are text, whole numbers, or lists of text:
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
	t.Add(row...)
}
