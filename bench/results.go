package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hoplag/hoplag/bench/experiment"
)

// writeReport writes a page of everything that runs in a directory found, with
// pictures, tables and notes.
func writeReport(all []experiment.Experiment, dir string) (file string, err error) {
	records, _, err := load(all, dir)
	page := "# What the papers claim and what was measured\n"
	for i, r := range records {
		page += section(r, i == 0 || records[i-1].Group != r.Group) + details(r)
	}
	file = filepath.Join(dir, "report.md")
	return file, errors.Join(err, os.WriteFile(file, []byte(page), 0o644))
}

// load returns the records of a directory, and the experiments that have none.
func load(all []experiment.Experiment, dir string) (records []*experiment.Record, left []string, err error) {
	for i := range all {
		r, wrong := experiment.Load(dir, all[i].Name)
		switch {
		case experiment.Missing(wrong):
			left = append(left, all[i].Name)
		case wrong != nil:
			err = errors.Join(err, wrong)
		default:
			records = append(records, r)
		}
	}
	return records, left, err
}

// writeResults writes a page of what full runs in a directory claim, in sentences:
// what was asked, what the paper has, and what came out here. It refuses quick runs.
func writeResults(all []experiment.Experiment, file, dir string) error {
	page, err := resultsPage(all, dir)
	if err != nil {
		return fmt.Errorf("%s is unchanged: %w", file, err)
	}
	return os.WriteFile(file, []byte(page), 0o644)
}

func resultsPage(all []experiment.Experiment, dir string) (string, error) {
	records, left, err := load(all, dir)
	if err != nil {
		return "", err
	}
	body, group := "", ""
	var ran []string
	for _, r := range records {
		switch {
		case len(r.Claims) == 0:
			left = append(left, r.Name)
			continue
		case r.Quick:
			return "", fmt.Errorf("%s in %s is a quick run: run it without -quick", r.Name, dir)
		case r.Seed != records[0].Seed:
			return "", fmt.Errorf("%s in %s has seed %d, and %s has %d", r.Name, dir, r.Seed, records[0].Name, records[0].Seed)
		}
		ran = append(ran, r.Name)
		body += section(r, r.Group != group)
		group = r.Group
	}
	if len(ran) == 0 {
		return "", errors.New("no result in " + dir + ": go run ./bench -all")
	}
	return opened(ran, left, records[0].Seed) + body, nil
}

// opened returns the beginning of the page: how to read it, and what was not
// run.
func opened(ran, left []string, seed uint64) string {
	var out strings.Builder
	fmt.Fprintf(&out, `# Results

What the four papers claim, and what came out here. This page is the output of
`+"`go run ./bench -results bench/RESULTS.md`"+` for the results of these runs, all at
full size and with seed %d. The same seed gives the same figures on any machine:

    go run ./bench -seed %d`, seed, seed)
	wrap(&out, ran)
	if len(left) > 0 {
		fmt.Fprintf(&out, "This page leaves out\n\n    go run ./bench -seed %d", seed)
		wrap(&out, left)
		fmt.Fprint(&out, "because they take longer.\n")
	}
	fmt.Fprint(&out, `
In each list the first figure is the paper's or, if the text says so, that of the
paper's estimator in the same run. "To beat" is what we set out to reach, or another
method on the same input. "Better" and "worse" compare the second figure with the first.
"Nearly" means that it misses by so little that chance explains it, or nobody minds.
"Does not hold" means that we did as the paper does and its claim did not come out, be it
that ours is worse or better.
`)
	return out.String()
}

// wrap writes names as a command that continues over several lines.
func wrap(out *strings.Builder, names []string) {
	const width = 78
	column := width
	for _, name := range names {
		if column+len(name) > width-2 {
			out.WriteString(" \\\n       ")
			column = 8
		}
		out.WriteString(" " + name)
		column += 1 + len(name)
	}
	out.WriteString("\n\n")
}

// words are the verdicts at the end of a sentence.
var words = map[experiment.Verdict]string{
	experiment.Win: "Better.", experiment.AsGood: "It holds.", experiment.Nearly: "Nearly.",
	experiment.Loss: "**Worse.**", experiment.DoesNotHold: "**Does not hold.**",
}

// section returns one experiment: its question, and a line for each claim.
func section(r *experiment.Record, begins bool) string {
	var out strings.Builder
	if begins {
		fmt.Fprintf(&out, "\n## %s\n", r.Group)
	}
	fmt.Fprintf(&out, "\n### %s\n\n*What was asked.* %s\n\n", r.Title, r.Claim)
	for _, c := range r.Claims {
		first, bar := "Paper", c.Paper
		if aim, ours := strings.CutPrefix(bar, "ours: "); ours || strings.HasPrefix(r.Name, "ours-") {
			first, bar = "To beat", aim
		}
		line := fmt.Sprintf("- %s. %s: %s; here: %s. %s", capital(c.What), first, bar, c.Ours, words[c.Verdict])
		fmt.Fprintln(&out, strings.TrimRight(line, " "))
	}
	fmt.Fprintf(&out, "\n<sub>`%s`</sub>\n", r.Command())
	return out.String()
}

// details returns an experiment's pictures, tables and notes.
func details(r *experiment.Record) string {
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
