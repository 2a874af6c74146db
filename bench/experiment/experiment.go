// Package experiment is the framework for the experiments in this directory. It defines what an experiment is,
// what it gets, and how it reports what it found. The command names each:
//
//	var Heads = experiment.Experiment{
//		Name: "coin-1", Title: "Heads against tosses",
//		Claim:   "Half of all tosses are heads (section 2, Fig. 1).",
//		Weight:  20, // seconds that the full run takes, roughly
//		Measure: heads,
//	}
//
//	func heads(run *experiment.Run) {
//		coin := experiment.Try(mint.Strike(1)) // an error ends the run
//		random := run.Rand("tosses")           // a generator of its own, from the seed
//		table := run.Table("Share of heads", "tosses", "heads")
//		heads := 0.0
//		for i := range run.Pick(10, 100) { // quick, full
//			heads += coin.Toss(random)
//			table.Row(i+1, experiment.Percent(heads/float64(i+1)))
//		}
//		run.Between("share of heads", "about 0.5", heads/100, 0.45, 0.55, 0.2)
//	}
//
// The same seed must give the same result, bit for bit. Draw from run.Rand, or give run.Seed to a Config. Never
// read a clock, and never let the order of a map or of goroutines show. An experiment runs on one core. The
// command runs as many side by side as there are cores, so experiments must not share mutable state. If several
// tables show the same runs, make them one experiment with several tables.
package experiment

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// An Experiment reproduces one figure of a paper, or several that show the same runs.
type Experiment struct {
	Name  string // on the command line: lower case, "lda-4"; unique
	Group string // set by In: heading in the list and in the results: the paper
	Title string
	Claim string // what the paper claims, with section and figure, in our words

	// Weight is the approximate duration of the full run on one core in seconds. Quick is that of the quick
	// run; 0 means a thirtieth of Weight.
	Weight, Quick float64

	// Measure runs the experiment and reports to the run what it finds. Try ends it with an error.
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
}

// A Picture is a drawing, in a file of its own.
type Picture struct {
	Title, Caption string
	File           string // the experiment's name, what it shows, and ".svg"
	SVG            []byte
}

// A Table is what was measured, for readers who want to know more than the claims say. Cells are text; format
// numbers in them with Number and Percent.
type Table struct {
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

// Picture adds a drawing.
func (r *Run) Picture(p Picture) { r.found.Pictures = append(r.found.Pictures, p) }

// Table adds a table and returns it, to add rows to it.
func (r *Run) Table(title string, columns ...string) *Table {
	t := &Table{Title: title, Columns: columns}
	r.found.Tables = append(r.found.Tables, t)
	return t
}

// Note adds paragraphs of plain text: how it was run, where it differs from the paper, what it means.
func (r *Run) Note(paragraphs ...string) { r.found.Notes = append(r.found.Notes, paragraphs...) }

// Save writes what an experiment found into a directory: NAME.md, and its pictures. It says nothing about when
// and where, so that the same seed gives the same bytes.
func Save(dir string, e *Experiment, run *Run, result *Result) error {
	for _, p := range result.Pictures {
		if err := os.WriteFile(filepath.Join(dir, p.File), p.SVG, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, e.Name+".md"), []byte(e.section(run, result)+result.details()), 0o644)
}

// words are the verdicts at the end of a sentence.
var words = map[Verdict]string{
	Win: "Better.", AsGood: "It holds.", Nearly: "Nearly.", Loss: "**Worse.**", Lower: "Differs: lower.", DoesNotHold: "**Does not hold.**",
}

// section returns the question, a line for each claim, and the command.
func (e *Experiment) section(run *Run, result *Result) string {
	var out strings.Builder
	fmt.Fprintf(&out, "### %s\n\n*What was asked.* %s\n\n", e.Title, e.Claim)
	for _, c := range result.Claims {
		first, bar := "Paper", c.Paper
		if aim, ours := strings.CutPrefix(bar, "ours: "); ours || strings.HasPrefix(e.Name, "ours-") {
			first, bar = "To beat", aim
		}
		line := fmt.Sprintf("- %s. %s: %s; here: %s. %s", capital(c.What), first, bar, c.Ours, words[c.Verdict])
		fmt.Fprintln(&out, strings.TrimRight(line, " "))
	}
	quick := map[bool]string{true: "-quick "}[run.Quick]
	fmt.Fprintf(&out, "\n<sub>`go run ./bench -seed %d %s%s`</sub>\n", run.Seed, quick, e.Name)
	return out.String()
}

// details returns pictures, tables and notes.
func (r *Result) details() string {
	var out strings.Builder
	for _, p := range r.Pictures {
		fmt.Fprintf(&out, "\n![%s](%s)\n%s\n", p.Title, p.File, p.Caption)
	}
	for _, t := range r.Tables {
		fmt.Fprintf(&out, "\n%s\n\n| %s |\n|%s\n", t.Title, strings.Join(t.Columns, " | "), strings.Repeat("---|", len(t.Columns)))
		for _, row := range t.Rows {
			fmt.Fprintf(&out, "| %s |\n", strings.Join(row, " | "))
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&out, "\n%s\n", note)
	}
	return out.String()
}

// capital capitalises the beginning of a sentence.
func capital(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
