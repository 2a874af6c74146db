package experiment

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
)

// A Run is what an experiment gets, and where it leaves what it finds.
type Run struct {
	Seed  uint64
	Quick bool // a smaller run, all experiments in 2 minutes together; it gives no verdicts

	found Result
}

// Rand returns a generator for one purpose of the run. It is the same for the
// same seed and purpose, and independent of those for other purposes.
func (r *Run) Rand(purpose string) *rand.Rand {
	return rand.New(rand.NewPCG(r.Seed, r.SeedOf(purpose)))
}

// SeedOf returns a seed for one purpose of the run, for users of a seed instead of a generator.
func (r *Run) SeedOf(purpose string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s", r.Seed, purpose)
	return rand.NewPCG(r.Seed, h.Sum64()).Uint64()
}

// Pick returns the size for the kind of run.
func (r *Run) Pick(quick, full int) int { return Choose(r, quick, full) }

// Choose is Pick for other values than sizes.
func Choose[T any](r *Run, quick, full T) T {
	if r.Quick {
		return quick
	}
	return full
}

// An ended run panics with the error that ended it.
type ended struct{ err error }

// Check ends the run with the error, if there is one. Call it on the goroutine
// that the experiment runs on: it panics, and Execute returns the error.
func Check(err error) {
	if err != nil {
		panic(ended{err})
	}
}

// Try returns the value, or ends the run with the error:
//
//	sketch := experiment.Try(lda.New(config))
func Try[T any](value T, err error) T {
	Check(err)
	return value
}

// Execute runs the experiment. A quick run has no verdicts: it is too small for them.
func (e *Experiment) Execute(run *Run) (result Result, err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case ended:
			result, err = Result{}, p.err
		default:
			panic(p)
		}
	}()
	run.found = Result{}
	e.Measure(run)
	if run.Quick {
		for _, c := range run.found.Claims {
			c.Verdict = ""
		}
	}
	return run.found, nil
}
