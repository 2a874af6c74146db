package experiment

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/hoplag/hoplag/bench/plot"
)

// A Record is a Result as it is kept on disk, with the inputs that led to it.
// It says nothing about when and where, so that the same seed gives the same
// bytes.
type Record struct {
	Name, Group, Title, Claim string

	Seed   uint64
	Quick  bool
	Config json.RawMessage `json:",omitempty"`

	Claims  []*Claim `json:",omitempty"`
	Tables  []*Table `json:",omitempty"`
	Notes   []string `json:",omitempty"`
	Figures []Drawn  `json:",omitempty"`
}

// A Drawn figure is in its own file.
type Drawn struct {
	Name, Title, Caption string
	File                 string // SVG, beside the record
}

// Command returns the command that reproduces the record.
func (r *Record) Command() string {
	c := "go run ./bench -seed " + strconv.FormatUint(r.Seed, 10)
	if r.Quick {
		c += " -quick"
	}
	return c + " " + r.Name
}

// Save writes the result of an experiment into a directory: NAME.json,
// NAME.csv with every number plotted, and an SVG for each figure.
func Save(dir string, e *Experiment, run *Run, result *Result) error {
	config, err := json.Marshal(result.Config)
	if err != nil {
		return fmt.Errorf("%s: Config: %w", e.Name, err)
	}
	r := Record{
		Name: e.Name, Group: e.Group, Title: e.Title, Claim: e.Claim,
		Seed: run.Seed, Quick: run.Quick, Config: config,
		Claims: result.Claims, Tables: result.Tables, Notes: result.Notes,
	}
	for _, f := range result.Figures {
		name := joined(e.Name, f.Name)
		r.Figures = append(r.Figures, Drawn{Name: f.Name, Title: f.Title, Caption: f.Caption, File: name + ".svg"})
		if err := os.WriteFile(filepath.Join(dir, name+".svg"), plot.SVG(f, name), 0o644); err != nil {
			return err
		}
	}
	if len(result.Figures) > 0 {
		if err := os.WriteFile(filepath.Join(dir, e.Name+".csv"), r.csv(result.Figures), 0o644); err != nil {
			return err
		}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, e.Name+".json"), out.Bytes(), 0o644)
}

// Load reads the record of an experiment from a directory. If there is none,
// the error wraps [fs.ErrNotExist].
func Load(dir, name string) (*Record, error) {
	path := filepath.Join(dir, name+".json")
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(Record)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if r.Name != name {
		return nil, fmt.Errorf("%s: the record of %q, want %q", path, r.Name, name)
	}
	return r, nil
}

// Missing reports whether Load's error means that there is no record.
func Missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// csv returns every number plotted, one point a row, after comments that say
// where the numbers come from.
func (r *Record) csv(figures []*plot.Figure) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# %s\n# command %s\n# seed %d\n# config %s\n", r.Title, r.Command(), r.Seed, r.Config)
	w := csv.NewWriter(&out)
	w.Write([]string{"figure", "series", "x", "y", "low", "high"}) // a buffer takes everything
	for _, f := range figures {
		for _, s := range f.Series {
			for i := range s.Y {
				low, high := "", ""
				if s.Low != nil {
					low, high = exact(s.Low[i]), exact(s.High[i])
				}
				x, c := s.X[i], f.X.Categories
				at := exact(x)
				if x == float64(int(x)) && x >= 0 && int(x) < len(c) {
					at = c[int(x)]
				}
				w.Write([]string{joined(r.Name, f.Name), s.Name, at, exact(s.Y[i]), low, high})
			}
		}
	}
	w.Flush()
	return out.Bytes()
}

// exact formats a number so that it reads back the same.
func exact(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// joined returns the name of a figure of an experiment.
func joined(name, figure string) string {
	if figure == "" {
		return name
	}
	return name + "-" + figure
}
