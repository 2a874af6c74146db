// Package soak runs two points of the front door that follow each other under
// hostile load for a given time, and reports what it tried. It fails on a
// panic, on an answer that is not a number, and on memory that grows.
//
// Messages are lost, repeated or of impossible times, strangers send damaged
// requests, and one of the points is restarted again and again.
package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"time"
)

// allowance is how much the live heap may grow, in bytes, between the first
// tenth of a run and its end.
const allowance = 8 << 20

// Run runs for the duration, or until the context ends, and prints what it
// tried. It calls progress with what has been done, twenty times or every ten
// seconds.
func Run(ctx context.Context, duration time.Duration, seed uint64, stdout io.Writer, progress func(string)) (err error) {
	p, err := newPoints()
	if err != nil {
		return fmt.Errorf("soak: %w", err)
	}
	defer p.close()
	random := rand.New(rand.NewPCG(seed, 0x736f616b))
	begun, shown := time.Now(), time.Now()
	interval := min(max(duration/20, time.Second), 10*time.Second)
	var early, late uint64
	for ctx.Err() == nil && time.Since(begun) < duration {
		if err := guarded(func() error { return p.round(random) }); err != nil {
			return fmt.Errorf("soak: round %d of seed %d: %w", p.rounds, seed, err)
		}
		if time.Since(shown) < interval {
			continue
		}
		shown = time.Now()
		late = live()
		if early == 0 || time.Since(begun) < duration/10 {
			early = max(early, late)
		}
		progress(fmt.Sprintf("soak %v of %v, %d rounds, %d MiB", time.Since(begun).Round(time.Second), duration, p.rounds, late>>20))
		if late > early+allowance {
			return fmt.Errorf("soak: the heap has grown from %d to %d bytes", early, late)
		}
	}
	_, err = fmt.Fprintf(stdout, "%v: %d messages, %d damaged requests of which %d were refused, %d restarts, %d reports; "+
		"live heap %.1f MiB at first and %.1f at the end\n", time.Since(begun).Round(time.Second), p.messages, p.requests, p.refused,
		p.restarts, p.reports, float64(early)/(1<<20), float64(live())/(1<<20))
	return err
}

// guarded turns a panic into an error.
func guarded(round func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.Join(err, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	return round()
}

// live returns how many bytes of the heap are in use.
func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
