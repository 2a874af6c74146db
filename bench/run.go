package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
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
			fmt.Fprintf(t, "%s%s\n", map[bool]string{true: "\n"}[group != ""], e.Group)
			group = e.Group
		}
		total += e.Seconds(quick)
		fmt.Fprintf(t, "  %s\t%v\t%s\n", e.Name, about(e.Seconds(quick)), e.Title)
	}
	fmt.Fprintf(t, "\nTimes are rough, for one core; %v in all.\n", about(total))
	fmt.Fprintln(t, "Run some by name, or all with -all; -quick for small runs; -h for the rest.")
	return t.Flush()
}

// about rounds a rough time.
func about(seconds float64) time.Duration { return time.Duration(max(1, seconds)) * time.Second }

// choose returns the experiments that the command line names, each once, in
// the order of the list.
func choose(all []experiment.Experiment, set settings) (chosen []experiment.Experiment, err error) {
	if set.all {
		return all, nil
	}
	wanted := map[string]bool{}
	for _, name := range set.names {
		found, wrong := matching(all, name)
		err = errors.Join(err, wrong)
		for _, e := range found {
			wanted[e] = true
		}
	}
	for _, e := range all {
		if wanted[e.Name] {
			chosen = append(chosen, e)
		}
	}
	return chosen, err
}

// matching returns the names of the experiments that one argument means: the
// one with that name; or those that a pattern matches; or those whose name
// begins that way.
func matching(all []experiment.Experiment, name string) ([]string, error) {
	var matched, begun []string
	for _, e := range all {
		ok, err := path.Match(name, e.Name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%q: %w", name, err)
		case e.Name == name:
			return []string{name}, nil
		case ok:
			matched = append(matched, e.Name)
		case strings.HasPrefix(e.Name, name):
			begun = append(begun, e.Name)
		}
	}
	if found := append(matched, begun...); len(found) > 0 {
		return found, nil
	}
	return nil, fmt.Errorf("no experiment %q (without arguments the command lists them)", name)
}

// runAll runs experiments, some side by side, saves each as it ends, and says
// so on stderr. One that fails does not stop the others. Their results depend
// neither on the order nor on how many run at once.
func runAll(ctx context.Context, chosen []experiment.Experiment, set settings, stderr io.Writer) error {
	// Run the longest first, so that no long one is left alone at the end.
	chosen = slices.SortedStableFunc(slices.Values(chosen), func(a, b experiment.Experiment) int {
		return cmp.Compare(b.Seconds(set.quick), a.Seconds(set.quick))
	})
	var mu sync.Mutex // of what follows
	var failures []error
	ended := 0
	end := func(e *experiment.Experiment, took time.Duration, err error) {
		mu.Lock()
		defer mu.Unlock()
		outcome := "done"
		if err != nil {
			outcome = "FAILED"
			failures = append(failures, err)
		}
		ended++
		fmt.Fprintf(stderr, "%s %s, %.1f s (%d of %d)\n", e.Name, outcome, took.Seconds(), ended, len(chosen))
	}
	next := make(chan *experiment.Experiment)
	var workers sync.WaitGroup
	for range min(set.jobs, len(chosen)) {
		workers.Go(func() {
			for e := range next {
				begun := time.Now()
				err := runOne(ctx, e, set)
				end(e, time.Since(begun), err)
			}
		})
	}
	for i := range chosen {
		next <- &chosen[i]
	}
	close(next)
	workers.Wait()
	return errors.Join(failures...)
}

func runOne(ctx context.Context, e *experiment.Experiment, set settings) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: not run: %w", e.Name, err)
	}
	run := &experiment.Run{Seed: set.seed, Quick: set.quick}
	result, err := e.Execute(ctx, run)
	if err != nil {
		return fmt.Errorf("%s: %w", e.Name, err)
	}
	return experiment.Save(set.out, e, run, &result)
}
