package experiment

import "fmt"

// Picture adds a drawing.
func (r *Run) Picture(p Picture) { r.found.Pictures = append(r.found.Pictures, p) }

// Table adds a table and returns it, to add rows to it. The name is unique
// within the experiment; "" is for its only table.
func (r *Run) Table(name, title string, columns ...string) *Table {
	t := &Table{Name: name, Title: title, Columns: columns}
	r.found.Tables = append(r.found.Tables, t)
	return t
}

// Note adds paragraphs of plain text: how it was run, where it differs from
// the paper, what it means.
func (r *Run) Note(paragraphs ...string) { r.found.Notes = append(r.found.Notes, paragraphs...) }

// Notef adds a formatted paragraph.
func (r *Run) Notef(format string, args ...any) { r.Note(fmt.Sprintf(format, args...)) }

// Config records what was chosen, as alternating names and values:
//
//	run.Config("packets", packets, "losses", losses, "lda", config)
//
// Values are anything that encodes to JSON. Another call adds to them.
func (r *Run) Config(namesAndValues ...any) {
	all, _ := r.found.Config.(map[string]any)
	if all == nil {
		all = map[string]any{}
	}
	for i := 0; i < len(namesAndValues); i += 2 {
		all[namesAndValues[i].(string)] = namesAndValues[i+1]
	}
	r.found.Config = all
}
