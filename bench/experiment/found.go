package experiment

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/plot"
)

// findings are what a run has found so far, in the order it was told.
type findings struct {
	claims  []*Claim
	figures []*plot.Figure
	tables  []*Table
	notes   []string
	config  any
	outside []string
}

func (f *findings) result() Result {
	return Result{Claims: values(f.claims), Figures: values(f.figures), Tables: values(f.tables), Notes: f.notes, Config: f.config,
		Outside: f.outside}
}

func values[T any](list []*T) []T {
	var all []T
	for _, x := range list {
		all = append(all, *x)
	}
	return all
}

// Figure adds a figure and returns it, for series to be added to it.
func (r *Run) Figure(f plot.Figure) *plot.Figure {
	r.found.figures = append(r.found.figures, &f)
	return &f
}

// Draw is Figure by the figure's parts, in the order in which they are read:
//
//	f := run.Draw("a", "Error of the mean", "Average of ten runs.", lossAxis, errorAxis)
//	f.Series = append(f.Series, line)
func (r *Run) Draw(name, title, caption string, x, y plot.Axis, series ...plot.Series) *plot.Figure {
	return r.Figure(plot.Figure{Name: name, Title: title, Caption: caption, X: x, Y: y, Series: series})
}

// Figures adds figures.
func (r *Run) Figures(all ...plot.Figure) {
	for _, f := range all {
		r.Figure(f)
	}
}

// Table adds a table and returns it, for rows to be added to it. The name is
// that within the experiment, "" for its only table.
func (r *Run) Table(name, title string, columns ...string) *Table {
	t := &Table{Name: name, Title: title, Columns: columns}
	r.found.tables = append(r.found.tables, t)
	return t
}

// Note adds paragraphs of plain text: how it was run, where it differs from the
// paper, what to make of it.
func (r *Run) Note(paragraphs ...string) { r.found.notes = append(r.found.notes, paragraphs...) }

// Outside tells that the run read what is not part of the project, so that
// nobody who has the project alone can repeat it.
func (r *Run) Outside(what string) { r.found.outside = append(r.found.outside, what) }

// Notef adds a paragraph.
func (r *Run) Notef(format string, args ...any) { r.Note(fmt.Sprintf(format, args...)) }

// Config says what was chosen, as names and values by turns:
//
//	run.Config("packets", packets, "losses", losses, "lda", config)
//
// Values are anything that encodes to JSON. Called again, it adds to what was
// said. A single value is all that was chosen.
func (r *Run) Config(namesAndValues ...any) {
	if len(namesAndValues) == 1 {
		r.found.config = namesAndValues[0]
		return
	}
	all, _ := r.found.config.(map[string]any)
	if all == nil {
		all = map[string]any{}
	}
	for i := 0; i < len(namesAndValues); i += 2 {
		all[namesAndValues[i].(string)] = namesAndValues[i+1]
	}
	r.found.config = all
}
