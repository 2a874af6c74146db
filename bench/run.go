package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hoplag/hoplag/bench/experiment"
)

// list prints the experiments by group.
func list(all []experiment.Experiment, quick bool, w io.Writer) error {
	group, total := "", 0.0
	for _, e := range all {
		if e.Group != group {
			group = e.Group
			fmt.Fprintf(w, "%s\n", group)
		}
		total += e.Seconds(quick)
		fmt.Fprintf(w, "  %-21s  %5v  %s\n", e.Name, about(e.Seconds(quick)), e.Title)
	}
	_, err := fmt.Fprintf(w, "Times are rough, for one core; %v in all.\n"+
		"Run some by name, or all with -all; -quick for small runs; -h for the rest.\n", about(total))
	return err
}

// about rounds a rough time.
func about(seconds float64) time.Duration { return time.Duration(max(1, seconds)) * time.Second }

// choose returns the experiments whose names the command line has, or a pattern for
// them, each once, in the order of the list.
func choose(all []experiment.Experiment, names []string) (chosen []experiment.Experiment, err error) {
	used := make([]bool, len(names))
	for _, e := range all {
		wanted := false
		for i, name := range names {
			ok, wrong := path.Match(name, e.Name)
			if wrong != nil {
				return nil, fmt.Errorf("%q: %w", name, wrong)
			}
			used[i], wanted = used[i] || ok, wanted || ok
		}
		if wanted {
			chosen = append(chosen, e)
		}
	}
	if i := slices.Index(used, false); i >= 0 {
		return nil, fmt.Errorf("no experiment %q (without arguments the command lists them)", names[i])
	}
	return chosen, nil
}

// runAll runs experiments, some side by side, saves each as it ends, and says so. One that fails does not stop
// the others. Their results depend neither on the order nor on how many run at once.
func runAll(chosen []experiment.Experiment, set settings, stderr io.Writer) error {
	// Run the longest first, so that no long one is left alone at the end.
	chosen = slices.SortedStableFunc(slices.Values(chosen), func(a, b experiment.Experiment) int {
		return cmp.Compare(b.Seconds(set.quick), a.Seconds(set.quick))
	})
	said := log.New(stderr, "", 0)
	failures := make([]error, len(chosen))
	running := make(chan bool, set.jobs)
	var all sync.WaitGroup
	for i := range chosen {
		running <- true
		all.Go(func() {
			e, run, begun := &chosen[i], &experiment.Run{Seed: set.seed, Quick: set.quick}, time.Now()
			result, err := e.Execute(run)
			if err == nil {
				err = experiment.Save(set.out, e, run, &result)
			}
			if err != nil {
				failures[i] = fmt.Errorf("%s: %w", e.Name, err)
				said.Print(e.Name, " FAILED")
			} else {
				said.Printf("%s, after %.1f s", filepath.Join(set.out, e.Name+".md"), time.Since(begun).Seconds())
			}
			<-running
		})
	}
	all.Wait()
	return errors.Join(failures...)
}
