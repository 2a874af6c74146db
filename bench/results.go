package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/hoplag/hoplag/bench/experiment"
)

// writeResults writes a page of everything that full runs in a directory
// found, in sentences: what was asked, what the paper has, and what came out
// here. It refuses quick runs, and runs that read something the project does
// not ship: everything on the page can be repeated from a clone.
func writeResults(all []experiment.Experiment, file, dir string) error {
	page, err := resultsPage(all, dir)
	if err != nil {
		return fmt.Errorf("%s is unchanged: %w", file, err)
	}
	return os.WriteFile(file, []byte(page), 0o644)
}

func resultsPage(all []experiment.Experiment, dir string) (string, error) {
	var body strings.Builder
	var ran, left []*experiment.Experiment
	var seed uint64
	group := ""
	for i := range all {
		e := &all[i]
		r, err := experiment.Load(dir, e.Name)
		switch {
		case experiment.Missing(err), err == nil && len(r.Claims) == 0:
			left = append(left, e)
			continue
		case err != nil:
			return "", err
		case r.Quick:
			return "", fmt.Errorf("%s in %s is a quick run: run it without -quick", e.Name, dir)
		case len(r.Outside) > 0:
			return "", fmt.Errorf("%s in %s read %s, which is not part of the project: run it from a clone", e.Name, dir, r.Outside[0])
		case len(ran) > 0 && r.Seed != seed:
			return "", fmt.Errorf("%s in %s has seed %d, and %s has %d", e.Name, dir, r.Seed, ran[0].Name, seed)
		}
		seed = r.Seed
		ran = append(ran, e)
		if e.Group != group {
			group = e.Group
			fmt.Fprintf(&body, "\n## %s\n", group)
		}
		section(&body, r)
	}
	if len(ran) == 0 {
		return "", errors.New("no result in " + dir + ": go run ./bench -all")
	}
	return opened(ran, left, seed) + body.String(), nil
}

// opened returns the beginning of the page: how to read it, and what was not
// run.
func opened(ran, left []*experiment.Experiment, seed uint64) string {
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
		fmt.Fprint(&out, "because they take longer, or need captures that are not part of the project.\n")
	}
	fmt.Fprint(&out, `
In each list the first figure is the paper's or, if the text says so, that of the
paper's estimator in the same run. In sections that begin with "Ours" it is what
we set out to reach, or the paper's method on the same input. "Better" and "worse"
compare the second figure with the first. "Nearly" means that it misses by so little
that chance explains it, or nobody minds. "Does not hold" means that we did as the
paper does and its claim did not come out.
`)
	return out.String()
}

// wrap writes names as a command that continues over several lines.
func wrap(out *strings.Builder, names []*experiment.Experiment) {
	const width = 78
	column := width
	for _, e := range names {
		if column+len(e.Name) > width-2 {
			out.WriteString(" \\\n       ")
			column = 8
		}
		out.WriteString(" " + e.Name)
		column += 1 + len(e.Name)
	}
	out.WriteString("\n\n")
}

// words are the verdicts at the end of a sentence.
var words = map[experiment.Verdict]string{
	experiment.Win: "Better.", experiment.AsGood: "It holds.", experiment.Nearly: "Nearly.",
	experiment.Loss: "**Worse.**", experiment.DoesNotHold: "**Does not hold.**",
}

// section writes one experiment: its question, and a line for each claim.
func section(out *strings.Builder, r *experiment.Record) {
	fmt.Fprintf(out, "\n### %s\n\n*What was asked.* %s\n\n", r.Title, r.Claim)
	for _, c := range r.Claims {
		first := "paper"
		if strings.HasPrefix(r.Group, "Ours") {
			first = "to beat"
		}
		fmt.Fprintf(out, "- %s. %s: %s; here: %s. %s\n", capital(c.What), capital(first), c.Paper, c.Ours, words[c.Verdict])
	}
	fmt.Fprintf(out, "\n<sub>`%s`</sub>\n", r.Command())
}

// capital capitalises the beginning of a sentence.
func capital(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
