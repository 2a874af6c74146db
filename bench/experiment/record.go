package experiment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// A Record is a Result as it is kept on disk, with the inputs that led to it.
// It says nothing about when and where, so that the same seed gives the same
// bytes.
type Record struct {
	Name, Group, Title, Claim string

	Seed   uint64
	Quick  bool
	Config json.RawMessage `json:",omitempty"`

	Claims   []*Claim  `json:",omitempty"`
	Tables   []*Table  `json:",omitempty"`
	Notes    []string  `json:",omitempty"`
	Pictures []Picture `json:",omitempty"`
}

// Command returns the command that reproduces the record.
func (r *Record) Command() string {
	c := "go run ./bench -seed " + strconv.FormatUint(r.Seed, 10)
	if r.Quick {
		c += " -quick"
	}
	return c + " " + r.Name
}

// Save writes the result of an experiment into a directory: NAME.json, and its
// pictures.
func Save(dir string, e *Experiment, run *Run, result *Result) error {
	config, err := json.Marshal(result.Config)
	if err != nil {
		return fmt.Errorf("%s: Config: %w", e.Name, err)
	}
	r := Record{
		Name: e.Name, Group: e.Group, Title: e.Title, Claim: e.Claim,
		Seed: run.Seed, Quick: run.Quick, Config: config,
		Claims: result.Claims, Tables: result.Tables, Notes: result.Notes, Pictures: result.Pictures,
	}
	for _, p := range result.Pictures {
		if err := os.WriteFile(filepath.Join(dir, p.File), p.SVG, 0o644); err != nil {
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
