package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hoplag/hoplag/bench/experiment"
)

const opening = `# Results

What the four papers claim first of all, and what came out here. Below each experiment is the command
that ran it, at full size; the same seed gives the same figures on any machine. This page is

    go run ./bench -all && go run ./bench -results bench/RESULTS.md

In each list the first figure is the paper's or, if the text says so, that of the
paper's estimator in the same run. "To beat" is our own aim, or another method on the
same input. A limit holds, or it is missed: "nearly" if chance explains by how much,
otherwise "worse". Between two methods, "better" and "worse" compare the figures as
they are printed. "Does not hold" means that we did what the paper describes and its
claim did not come out. "Differs: lower" means that the paper gives a figure for its own
method's error, and that this error came out smaller here: a difference, not a success.
`

// writeResults puts what the runs in a directory found into a page, in place of what the page has of the same
// experiments. It refuses quick runs.
func writeResults(all []experiment.Experiment, file, dir string) error {
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	had := sections(string(old))
	page, group := opening, ""
	for _, e := range all {
		text := had[e.Name]
		if found, err := os.ReadFile(filepath.Join(dir, e.Name+".md")); err == nil {
			text = sections(string(found))[e.Name]
			if strings.Contains(text, " -quick "+e.Name+"`") {
				return fmt.Errorf("%s is unchanged: %s in %s is a quick run: run it without -quick", file, e.Name, dir)
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if text == "" {
			continue
		}
		if e.Group != group {
			group = e.Group
			page += "\n## " + group + "\n"
		}
		page += "\n" + text
	}
	return os.WriteFile(file, []byte(page), 0o644)
}

// sections returns the sections of a page by the names of their experiments, with which their last lines end.
func sections(page string) map[string]string {
	const end = "`</sub>\n"
	all := map[string]string{}
	for part := range strings.SplitAfterSeq(page, end) {
		text := strings.TrimSuffix(part, end)
		if i := strings.Index(part, "### "); i >= 0 && text != part {
			all[text[strings.LastIndexByte(text, ' ')+1:]] = part[i:]
		}
	}
	return all
}
