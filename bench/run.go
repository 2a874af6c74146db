package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/hoplag/hoplag/bench/experiment"
)

// runAll runs experiments, some side by side, and saves each as it ends. One
// that fails does not stop the others. Their results depend neither on the
// order nor on how many run at once.
func runAll(ctx context.Context, chosen []experiment.Experiment, set settings, stderr io.Writer) error {
	// Run the longest first, so that no long one is left alone at the end.
	slices.SortStableFunc(chosen, func(a, b experiment.Experiment) int {
		return -compareSeconds(&a, &b, set.quick)
	})
	show := newProgress(chosen, set, stderr)
	defer show.close()

	failures := make([]error, len(chosen))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(set.jobs, len(chosen)) {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for i := range next {
				show.begin(i)
				failures[i] = runOne(ctx, &chosen[i], set, func(done float64) { show.update(i, done) })
				show.end(i, failures[i])
			}
		}()
	}
	for i := range chosen {
		next <- i
	}
	close(next)
	workers.Wait()
	return errors.Join(failures...)
}

func runOne(ctx context.Context, e *experiment.Experiment, set settings, report func(float64)) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: not run: %w", e.Name, err)
	}
	run := &experiment.Run{Seed: set.seed, Quick: set.quick, Report: report}
	result, err := e.Execute(ctx, run)
	if err != nil {
		return fmt.Errorf("%s: %w", e.Name, err)
	}
	return experiment.Save(set.out, e, run, &result)
}

func compareSeconds(a, b *experiment.Experiment, quick bool) int {
	switch x, y := a.Seconds(quick), b.Seconds(quick); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}
