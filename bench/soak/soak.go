// Package soak runs what keeps state for months, points that follow each other
// and stores of epochs, under hostile load for a given time, and reports what it
// tried. It fails on a panic, on an answer that is not a number, and on memory
// that grows.
//
// It feeds them copies, replays and impossible times, damages the files of
// stores, lets strangers talk to points, and restarts them.
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

// A machine does a round of hostile work and tells how many inputs it tried,
// and how many of them were refused.
type machine struct {
	name  string
	round func(random *rand.Rand, n *tally) error
	close func() error // or nil

	did tally
}

// A tally counts what a machine did.
type tally struct{ rounds, tried, refused int }

// count counts an input, and whether it was refused.
func (n *tally) count(refused error) {
	n.tried++
	if refused != nil {
		n.refused++
	}
}

// makers make the machines.
var makers = []struct {
	name string
	make func() (machine, error)
}{{"colate store", newStores}, {"front door", newPoints}}

// allowance is how much the live heap may grow, in bytes, between the first
// tenth of a run and its end.
const allowance = 8 << 20

// Run runs for the duration, or until the context ends, and prints a line for
// each machine. It calls progress with what has been done, twenty times or
// every ten seconds.
func Run(ctx context.Context, duration time.Duration, seed uint64, stdout io.Writer, progress func(string)) (err error) {
	var machines []*machine
	defer func() {
		for _, m := range machines {
			if m.close != nil {
				err = errors.Join(err, m.close())
			}
		}
	}()
	for _, maker := range makers {
		m, err := maker.make()
		if err != nil {
			return fmt.Errorf("soak: %s: %w", maker.name, err)
		}
		m.name = maker.name
		machines = append(machines, &m)
	}
	random := rand.New(rand.NewPCG(seed, 0x736f616b))
	begun, shown := time.Now(), time.Now()
	interval := min(max(duration/20, time.Second), 10*time.Second)
	var early, late uint64
	for round := 1; ctx.Err() == nil && time.Since(begun) < duration; round++ {
		for _, m := range machines {
			if err := m.run(random); err != nil {
				return fmt.Errorf("soak: %s, round %d of seed %d: %w", m.name, round, seed, err)
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
		progress(fmt.Sprintf("soak %v of %v, %d rounds, %d MiB", time.Since(begun).Round(time.Second), duration, round, late>>20))
		if late > early+allowance {
			return fmt.Errorf("soak: the heap has grown from %d to %d bytes", early, late)
		}
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "machine\trounds\ttried\trefused\t")
	for _, m := range machines {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t\n", m.name, m.did.rounds, m.did.tried, m.did.refused)
	}
	w.Flush()
	_, err = fmt.Fprintf(stdout, "%v, live heap %.1f MiB at first and %.1f at the end\n",
		time.Since(begun).Round(time.Second), float64(early)/(1<<20), float64(live())/(1<<20))
	return err
}

// run does a round, and turns a panic into an error.
func (m *machine) run(random *rand.Rand) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	m.did.rounds++
	return m.round(random, &m.did)
}

// live returns how many bytes of the heap are in use.
func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
