// Package soak runs the machines of the library that go on for months under
// hostile load for a given time, and reports what it tried. It fails on a
// panic, on an answer that is not a number, and on memory that grows.
//
// It feeds sessions and receivers with damaged records, copies, replays and
// impossible times. It damages the files of stores, lets strangers talk to
// points and restarts them, and lies to stations and clocks.
package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"text/tabwriter"
	"time"
)

// A machine does a round of hostile work and returns how many inputs it tried,
// and how many of them were refused.
type machine struct {
	name  string
	round func(random *rand.Rand) (tried, refused int, err error)
	close func() error // or nil
}

// tally counts what a machine did.
type tally struct{ rounds, tried, refused int }

// allowance is how much the live heap may grow, in bytes, between the first
// tenth of a run and its end.
const allowance = 8 << 20

// Run runs for the duration, or until the context ends, and prints a line for
// each machine. It calls progress with what has been done, twenty times or
// every ten seconds.
func Run(ctx context.Context, duration time.Duration, seed uint64, stdout io.Writer, progress func(string)) (err error) {
	machines, err := all()
	if err != nil {
		return err
	}
	defer func() {
		for _, m := range machines {
			if m.close != nil {
				err = errors.Join(err, m.close())
			}
		}
	}()
	tallies := make([]tally, len(machines))
	random := rand.New(rand.NewPCG(seed, 0x736f616b))
	begun, shown := time.Now(), time.Now()
	interval := min(max(duration/20, time.Second), 10*time.Second)
	var early, late uint64
	for round := 0; ctx.Err() == nil && time.Since(begun) < duration; round++ {
		for i := range machines {
			if err := tallies[i].run(&machines[i], random); err != nil {
				return fmt.Errorf("soak: %s, round %d of seed %d: %w", machines[i].name, round+1, seed, err)
			}
		}
		if time.Since(shown) < interval {
			continue
		}
		shown = time.Now()
		late = live()
		if early == 0 || time.Since(begun) < duration/10 {
			early = max(early, late)
		}
		progress(fmt.Sprintf("soak %v of %v, %d rounds, %d MiB", time.Since(begun).Round(time.Second), duration, round+1, late>>20))
		if late > early+allowance {
			return fmt.Errorf("soak: the heap has grown from %d to %d bytes", early, late)
		}
	}
	return report(stdout, machines, tallies, time.Since(begun), early, live())
}

// run does a round, and turns a panic into an error.
func (t *tally) run(m *machine, random *rand.Rand) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	tried, refused, err := m.round(random)
	t.rounds++
	t.tried += tried
	t.refused += refused
	return err
}

// live returns how many bytes of the heap are in use.
func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func report(stdout io.Writer, machines []machine, tallies []tally, took time.Duration, early, late uint64) error {
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "machine\trounds\ttried\trefused\t")
	for i, t := range tallies {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t\n", machines[i].name, t.rounds, t.tried, t.refused)
	}
	err := w.Flush()
	_, last := fmt.Fprintf(stdout, "%v, live heap %.1f MiB at first and %.1f at the end\n",
		took.Round(time.Second), float64(early)/(1<<20), float64(late)/(1<<20))
	return errors.Join(err, last)
}
