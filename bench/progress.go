package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/hoplag/hoplag/bench/experiment"
)

// progress shows on standard error how far the experiments are. On a terminal
// it rewrites one line (what runs, how many are done, how fast, how long
// still); elsewhere it prints a line as each ends.
type progress struct {
	w        io.Writer
	terminal bool
	started  time.Time

	mu       sync.Mutex
	chosen   []experiment.Experiment
	quick    bool
	done     []float64 // of each, 0 to 1
	begun    []time.Time
	finished int
	drawn    time.Time
}

func newProgress(chosen []experiment.Experiment, set settings, w io.Writer) *progress {
	p := &progress{
		w: w, started: time.Now(), chosen: chosen, quick: set.quick,
		done: make([]float64, len(chosen)), begun: make([]time.Time, len(chosen)),
	}
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

func (p *progress) begin(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun[i] = time.Now()
	p.draw(true)
}

func (p *progress) update(i int, done float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[i] = min(max(done, p.done[i]), 1)
	p.draw(false)
}

func (p *progress) end(i int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[i] = 1
	p.finished++
	outcome := "done"
	if err != nil {
		outcome = "FAILED"
	}
	p.erase()
	fmt.Fprintf(p.w, "%s %s, %.1f s (%d of %d; %s)\n", p.chosen[i].Name, outcome,
		time.Since(p.begun[i]).Seconds(), p.finished, len(p.chosen), p.left())
	p.begun[i] = time.Time{}
	p.draw(true)
}

func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
}

func (p *progress) erase() {
	if p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// draw rewrites the line, at most ten times a second unless must is set.
func (p *progress) draw(must bool) {
	now := time.Now()
	if !p.terminal || p.finished == len(p.chosen) || !must && now.Sub(p.drawn) < 100*time.Millisecond {
		return
	}
	p.drawn = now
	var running []string
	for i, at := range p.begun {
		if !at.IsZero() {
			running = append(running, fmt.Sprintf("%s %.0f%%", p.chosen[i].Name, 100*p.done[i]))
		}
	}
	p.erase()
	fmt.Fprintf(p.w, "%s | %d of %d done | %s", strings.Join(running, "  "), p.finished, len(p.chosen), p.left())
}

// left returns the rate, in seconds of estimated time done per second of real
// time, and the resulting time left.
func (p *progress) left() string {
	var finished, rest float64
	for i := range p.chosen {
		seconds := p.chosen[i].Seconds(p.quick)
		finished += p.done[i] * seconds
		rest += (1 - p.done[i]) * seconds
	}
	rate := finished / time.Since(p.started).Seconds()
	if finished == 0 {
		return about(rest) + " of work left"
	}
	return fmt.Sprintf("rate %.1f, %s left", rate, (time.Duration(rest / rate * 1e9)).Round(time.Second))
}
