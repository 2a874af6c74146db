// Package report writes one page that a person can read from top to bottom:
// what each paper claims, what was measured, the picture, and the verdict in a
// word. The page is one file: it includes pictures and styles, loads nothing,
// and follows the reader's choice of a light or dark page.
package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hoplag/hoplag/bench/experiment"
)

//go:embed report.html.tmpl
var source string

var page = template.Must(template.New("report").Funcs(template.FuncMap{
	"sign":  func(v experiment.Verdict) string { return signs[v] },
	"class": func(v experiment.Verdict) string { return strings.ReplaceAll(string(v), " ", "-") },
	"kinds": func() []experiment.Verdict { return verdicts },
	"ours":  func(group string) bool { return strings.HasPrefix(group, "Ours") },
	"bound": func(s string) string { return strings.ReplaceAll(s, " %", "\u00a0%") }, // no line between a number and its %
}).Parse(source))

var verdicts = []experiment.Verdict{experiment.Win, experiment.AsGood, experiment.Nearly, experiment.Loss, experiment.DoesNotHold}

var signs = map[experiment.Verdict]string{
	experiment.Win: "▲", experiment.AsGood: "●", experiment.Nearly: "◐", experiment.Loss: "▼", experiment.DoesNotHold: "✕",
}

// A section is one experiment on the page.
type section struct {
	experiment.Record
	Measured bool
	Pictures []picture
	Settings string // the Config, indented
	Counts   map[experiment.Verdict]int
}

type picture struct {
	experiment.Drawn
	SVG template.HTML
}

// A group holds the experiments under one heading.
type group struct {
	Name     string
	Sections []section
}

// A headline sums up an experiment: one claim, and a picture.
type headline struct {
	experiment.Claim
	Name, Title string
	Goal        bool // whether it is judged by what we set out to reach
	Picture     template.HTML
}

// maxHeadlines is the number of headlines that fit on the first screen.
const maxHeadlines = 12

// A summary is the first screen: what everything adds up to.
type summary struct {
	Headlines []headline
	Counts    map[experiment.Verdict]int
	Measured  int
	Groups    []group
}

// summarise finds the headlines: for each experiment its first, with its first
// picture.
func summarise(groups []group) summary {
	sum := summary{Counts: map[experiment.Verdict]int{}, Groups: groups}
	for _, g := range groups {
		for i := range g.Sections {
			s := &g.Sections[i]
			if s.Measured {
				sum.Measured++
			}
			for v, n := range s.Counts {
				sum.Counts[v] += n
			}
			first := slices.IndexFunc(s.Claims, func(c experiment.Claim) bool { return c.Headline })
			if first < 0 || len(sum.Headlines) == maxHeadlines {
				continue
			}
			h := headline{Claim: s.Claims[first], Name: s.Name, Title: s.Title, Goal: strings.HasPrefix(g.Name, "Ours")}
			if len(s.Pictures) > 0 {
				h.Picture = again(&s.Pictures[0])
			}
			sum.Headlines = append(sum.Headlines, h)
		}
	}
	return sum
}

// again returns a picture for a second place on the page, with its own ids.
func again(p *picture) template.HTML {
	stem := strings.TrimSuffix(p.File, ".svg") + "-"
	return template.HTML(strings.ReplaceAll(string(p.SVG), stem, "first-"+stem))
}

// Write writes the page for the results in a directory. Experiments without a
// result have a place on it that says so.
func Write(file, dir string, all []experiment.Experiment) error {
	var groups []group
	for i := range all {
		s, err := load(dir, &all[i])
		if err != nil {
			return err
		}
		if n := len(groups); n == 0 || groups[n-1].Name != all[i].Group {
			groups = append(groups, group{Name: all[i].Group})
		}
		last := &groups[len(groups)-1]
		last.Sections = append(last.Sections, s)
	}
	var out bytes.Buffer
	if err := page.Execute(&out, summarise(groups)); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

// load makes an experiment's section from its record, if there is one.
func load(dir string, e *experiment.Experiment) (section, error) {
	s := section{Counts: map[experiment.Verdict]int{}}
	s.Name, s.Group, s.Title, s.Claim = e.Name, e.Group, e.Title, e.Claim
	r, err := experiment.Load(dir, e.Name)
	if experiment.Missing(err) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.Record, s.Measured = *r, true
	for _, c := range r.Claims {
		s.Counts[c.Verdict]++
	}
	for _, f := range r.Figures {
		svg, err := os.ReadFile(filepath.Join(dir, filepath.Base(f.File)))
		if err != nil {
			return s, fmt.Errorf("%s: %w", r.Name, err)
		}
		// Drawn by us a moment ago, or by an earlier run.
		s.Pictures = append(s.Pictures, picture{Drawn: f, SVG: template.HTML(svg)})
	}
	var settings bytes.Buffer
	if len(r.Config) > 0 {
		if err := json.Indent(&settings, r.Config, "", "  "); err != nil {
			return s, fmt.Errorf("%s: %w", r.Name, err)
		}
	}
	s.Settings = settings.String()
	return s, nil
}
