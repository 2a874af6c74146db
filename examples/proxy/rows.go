package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"sync"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/programs"
)

// rows prints a row for each report.
type rows struct {
	programs.Rows
	stderr io.Writer
	exact  *exact
	drops  func() map[string]uint64
	before uint64 // drops up to the latest row
	failed error  // the first error, once it was told
}

// recover goes on after an error: a full disk must not stop what is forwarded.
func (o *rows) recover() {
	if o.Err != nil && o.failed == nil {
		o.failed = o.Err
		fmt.Fprintf(o.stderr, "rows cannot be printed, forwarding goes on: %v\n", o.Err)
	}
	o.Err = nil
}

// object prints a report as JSON, with how many datagrams this process dropped
// meanwhile, and in the demo with the truth, forth and back.
func (o *rows) object(r hoplag.Report, dropped uint64, beside []truth) {
	report, err := json.Marshal(r)
	exact, other := json.Marshal(beside)
	if o.Err = errors.Join(o.Err, err, other); o.Err == nil {
		o.Printf("%s,\"Dropped\":%d,\"Exact\":%s}\n", report[:len(report)-1], dropped, exact)
	}
}

func (o *rows) add(r hoplag.Report) {
	dropped := -o.before
	for _, n := range o.drops() {
		dropped += n
	}
	o.before += dropped
	beside := o.exact.take(r.Start.Unix())
	if o.JSON {
		o.object(r, dropped, beside)
		return
	}
	exactly := ""
	if o.exact != nil {
		exactly = fmt.Sprintf("   %12s %9s %10s", "exact mean", "error", "packets")
	}
	o.Heading(
		"%-8s  %-5s %12s %22s %12s %8s %8s %8s%s   clocks",
		"time", "", "mean", "95 % of means", "p99", "packets", "lost", "own drop", exactly)
	at, here, note := r.Start.Format(time.TimeOnly), fmt.Sprint(dropped), r.Clock.String()
	if r.Err != nil {
		note = r.Err.Error()
	}
	for way, d := range []*hoplag.Delay{&r.Forth, &r.Back} {
		mean, within, p99 := programs.Columns(d)
		o.Printf("%-8s  %-5s %12s %22s %12s %8d %8d %8s", at, []string{"forth", "back"}[way], mean, within, p99, d.Received, d.Lost, here)
		if o.exact != nil {
			t, off := beside[way], ""
			if d.Err == nil {
				off = programs.Off(d.Mean, t.Mean)
			}
			o.Printf("   %12s %9s %10d", hoplag.Format(t.Mean), off, t.Received)
		}
		o.Printf("   %s\n", note)
		at, here, note = "", "", ""
	}
}

// exact remembers every packet of the demo, by all its bytes, from one half to
// the other, which a point never does. A nil exact does nothing.
type exact struct {
	mu      sync.Mutex
	seed    maphash.Seed
	under   [2]programs.Matcher[uint64, time.Time]
	seconds [2]map[int64]*estimate.Moments // what was received, by second
}

func newExact() *exact {
	return &exact{seed: maphash.MakeSeed(), seconds: [2]map[int64]*estimate.Moments{{}, {}}}
}

// passed records that a packet left one half, or arrived at the other.
func (e *exact) passed(way int, leaves bool, at time.Time, packet []byte) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	id := maphash.Bytes(e.seed, packet)
	if leaves {
		e.under[way].First(id, at)
	} else if sent, ok, _ := e.under[way].Second(id); ok {
		second := e.seconds[way][at.Unix()]
		if second == nil {
			second = new(estimate.Moments)
			e.seconds[way][at.Unix()] = second
		}
		second.Add(float64(at.Sub(sent)))
	}
}

// A truth is what was received in a second. Delays are in nanoseconds.
type truth struct {
	Mean, StdDev float64
	Received     uint64
}

// take returns what was received in a second, forth and back, and forgets it,
// and what is lost.
func (e *exact) take(second int64) (all []truth) {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for way := range e.seconds {
		var t truth
		if m := e.seconds[way][second]; m != nil {
			t = truth{m.Mean(), m.StdDev(), uint64(m.N())}
		}
		all = append(all, t)
		delete(e.seconds[way], second)
		e.under[way].Forget(func(sent time.Time) bool { return time.Since(sent) > 30*time.Second })
	}
	return all
}
