package experiment

import (
	"fmt"

	"github.com/hoplag/hoplag/bench/plot"
)

// findings is what a run has found so far, in the order of reporting.
type findings struct {
	claims  []*Claim
	figures []*Figure
	tables  []*Table
	notes   []string
	config  any
	outside []string
}

func (f *findings) result() Result {
	var figures []plot.Figure
	for _, x := range f.figures {
		x.Figure.Series = values(x.Series)
		figures = append(figures, x.Figure)
	}
	return Result{Claims: values(f.claims), Figures: figures, Tables: values(f.tables), Notes: f.notes, Config: f.config,
		Outside: f.outside}
}

func values[T any](list []*T) []T {
	var all []T
	for _, x := range list {
		all = append(all, *x)
	}
	return all
}

// A Figure is a figure in progress.
type Figure struct {
	plot.Figure
	Series []*plot.Series
}

// Add adds series.
func (f *Figure) Add(series ...plot.Series) {
	for _, s := range series {
		f.Line(s)
	}
}

// Line adds a series and returns it, to add points to it.
func (f *Figure) Line(s plot.Series) *plot.Series {
	f.Series = append(f.Series, &s)
	return &s
}

// Draw adds a figure and returns it, to add series to it:
//
//	f := run.Draw("a", "Error of the mean", "Average of ten runs.", lossAxis, errorAxis)
//	line := f.Line(plot.Series{Name: "LDA"})
//	line.Add(0.1, 0.3)
func (r *Run) Draw(name, title, caption string, x, y plot.Axis, series ...plot.Series) *Figure {
	figure := &Figure{Figure: plot.Figure{Name: name, Title: title, Caption: caption, X: x, Y: y}}
	figure.Add(series...)
	r.found.figures = append(r.found.figures, figure)
	return figure
}

// Figures adds finished figures.
func (r *Run) Figures(all ...plot.Figure) {
	for _, f := range all {
		r.Draw(f.Name, f.Title, f.Caption, f.X, f.Y, f.Series...)
	}
}

// Table adds a table and returns it, to add rows to it. The name is unique
// within the experiment; "" is for its only table.
func (r *Run) Table(name, title string, columns ...string) *Table {
	t := &Table{Name: name, Title: title, Columns: columns}
	r.found.tables = append(r.found.tables, t)
	return t
}

// Note adds paragraphs of plain text: how it was run, where it differs from
// the paper, what it means.
func (r *Run) Note(paragraphs ...string) { r.found.notes = append(r.found.notes, paragraphs...) }

// Outside records that the run read something that is not part of the project,
// so that nobody who has only the project can repeat it.
func (r *Run) Outside(what string) { r.found.outside = append(r.found.outside, what) }

// Notef adds a formatted paragraph.
func (r *Run) Notef(format string, args ...any) { r.Note(fmt.Sprintf(format, args...)) }

// Config records what was chosen, as alternating names and values:
//
//	run.Config("packets", packets, "losses", losses, "lda", config)
//
// Values are anything that encodes to JSON. Another call adds to them. A
// single value stands for all choices.
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
