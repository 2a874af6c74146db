package main

import (
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hoplag/hoplag/bench/experiment"
)

// list prints the experiments by group.
func list(all []experiment.Experiment, quick bool, w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	group, total := "", 0.0
	for i := range all {
		e := &all[i]
		if e.Group != group {
			if group != "" {
				fmt.Fprintln(t)
			}
			group = e.Group
			fmt.Fprintln(t, group)
		}
		if !e.Possible() {
			fmt.Fprintf(t, "  %s\tnot yet measured\t%s\n", e.Name, e.Title)
			continue
		}
		total += e.Seconds(quick)
		fmt.Fprintf(t, "  %s\t%s\t%s\n", e.Name, about(e.Seconds(quick)), e.Title)
	}
	fmt.Fprintf(t, "\nTimes are rough, for one core; %s in all.\n", about(total))
	fmt.Fprintln(t, "Run some by name, or all with -all; -quick for small runs; -h for the rest.")
	return t.Flush()
}

// about formats a rough time.
func about(seconds float64) string {
	if seconds < 60 {
		return fmt.Sprintf("%.0f s", max(1, seconds))
	}
	return (time.Duration(seconds) * time.Second).Round(10 * time.Second).String()
}

// choose returns the experiments that the command line names, each once, in
// the order of the list.
func choose(all []experiment.Experiment, set settings) ([]experiment.Experiment, error) {
	wanted := make([]bool, len(all))
	var problems []error
	for _, name := range set.names {
		found, err := matching(all, name)
		if err != nil {
			problems = append(problems, err)
		}
		for _, i := range found {
			wanted[i] = true
		}
	}
	var chosen []experiment.Experiment
	for i, e := range all {
		if e.Possible() && (set.all || wanted[i]) {
			chosen = append(chosen, e)
		}
	}
	return chosen, errors.Join(problems...)
}

// matching returns the experiments that one name means: the one with that
// name; or those that a pattern matches; or those whose name begins that way;
// or, for the name of a figure such as lda-4a, the experiment that draws it.
func matching(all []experiment.Experiment, name string) ([]int, error) {
	var exact, matched, begun, drawn []int
	for i, e := range all {
		ok, err := path.Match(name, e.Name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%q: %w", name, err)
		case e.Name == name:
			exact = append(exact, i)
		case ok:
			matched = append(matched, i)
		case strings.HasPrefix(e.Name, name):
			begun = append(begun, i)
		case len(name) == len(e.Name)+1 && strings.HasPrefix(name, e.Name) && 'a' <= name[len(e.Name)] && name[len(e.Name)] <= 'z':
			drawn = append(drawn, i)
		}
	}
	for _, found := range [][]int{exact, matched, begun, drawn} {
		if len(found) == 0 {
			continue
		}
		runnable := slices.DeleteFunc(slices.Clone(found), func(i int) bool { return !all[i].Possible() })
		if len(runnable) == 0 {
			return nil, fmt.Errorf("%s: not yet measured: there is nothing to run", all[found[0]].Name)
		}
		return runnable, nil
	}
	return nil, fmt.Errorf("no experiment %q (without arguments the command lists them)", name)
}
