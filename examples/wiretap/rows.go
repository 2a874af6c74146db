//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/internal/programs"
)

// seen is what was counted at both places.
type seen struct {
	Sent, Received uint64
	Dropped        [2]uint64 // by the program's own rings, for lack of room, at each place
	PassedOver     uint64    // frames without IP, or to other addresses
	Bundles        uint64    // of segments, not counted
}

// plus adds what was counted n times.
func (s seen) plus(o seen, n int) seen {
	k := uint64(n)
	return seen{
		s.Sent + k*o.Sent, s.Received + k*o.Received, [2]uint64{s.Dropped[0] + k*o.Dropped[0], s.Dropped[1] + k*o.Dropped[1]},
		s.PassedOver + k*o.PassedOver, s.Bundles + k*o.Bundles,
	}
}

// A row is one second.
type row struct {
	Report hoplag.Report
	Names  []string `json:",omitempty"` // of the flows in the report, the slowest
	seen
	Error string `json:",omitempty"`
}

// mostFlows is the largest number of flows in a row.
const mostFlows = 10

// problem puts errors on one line, with what the counters say about the row.
func (r *row) problem(errs ...error) {
	if err := r.Report.Forth.Err; !errors.Is(err, hoplag.ErrIdle) && !errors.Is(r.Report.Err, err) {
		errs = append(errs, err)
	}
	var all []string
	if err := errors.Join(errs...); err != nil {
		all = append(all, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if n := r.Dropped[0] + r.Dropped[1]; n > 0 {
		all = append(all, fmt.Sprintf("own rings had no room for %d packets (larger -buffer)", n))
	}
	if r.Bundles > 0 {
		all = append(all, fmt.Sprintf("%d bundles of segments not counted (ethtool -K … gro off gso off tso off)", r.Bundles))
	}
	r.Error = strings.Join(all, "; ")
}

// A total is what passed from first to last. Missing is how many packets passed the first place and
// not the second, including those that the rings dropped, and those that were on their way at the
// end. It is exact if nothing was on its way then and at the beginning, and every drop is counted.
type total struct {
	seen
	Missing int64
}

// An output prints rows and shows them on the page.
type output struct {
	programs.Rows
	stderr io.Writer
	view   *programs.View // or nil

	mu      sync.Mutex
	dropped [2]uint64 // in all
	own     [2]uint64 // drops that no row has subtracted yet
}

// say prints a message that is not a row.
func (o *output) say(format string, args ...any) {
	fmt.Fprintf(o.stderr, "wiretap: "+format+"\n", args...)
}

// drops returns the own drops so far, by place.
func (o *output) drops() map[string]uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return map[string]uint64{"from": o.dropped[0], "to": o.dropped[1]}
}

// settle subtracts our own drops from what seems lost or extra: packets that the second place had no
// room for seem lost, and those that the first had none for, extra, perhaps only a second later.
func (o *output) settle(r *row) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, seems := range []*uint64{&r.Report.Forth.Extra, &r.Report.Forth.Lost} {
		o.dropped[i] += r.Dropped[i]
		o.own[i] += r.Dropped[i]
		own := min(o.own[i], *seems)
		if own > 0 && i == 1 {
			r.Report.Forth.Missing = nil // nobody knows which of them the network lost
		}
		*seems -= own
		o.own[i] -= own
		if r.Dropped[i] == 0 {
			o.own[i] = 0 // both places dropped the same packets
		}
	}
}

// row prints a row.
func (o *output) row(r *row) error {
	o.settle(r)
	if o.view != nil {
		o.view.Add(r.Report, r.Names...)
	}
	if o.JSON {
		o.Object(r)
		return o.Err
	}
	d, note := &r.Report.Forth, r.Error
	if note == "" && len(r.Names) > 0 {
		note = "slowest " + r.Names[0] + ", " + hoplag.Format(d.Flows[0].Mean)
	}
	o.Printf("%s  %v, dropped here %d  %s\n%s",
		r.Report.Start.Format(time.TimeOnly), d, r.Dropped[0]+r.Dropped[1], note, programs.Lost(&r.Report))
	return o.Err
}

// end prints the total.
func (o *output) end(t *total) error {
	if o.JSON {
		o.Object(map[string]*total{"Total": t})
		return o.Err
	}
	o.Printf("in all: sent %d, received %d, missing %d, dropped by the rings %d and %d\n",
		t.Sent, t.Received, t.Missing, t.Dropped[0], t.Dropped[1])
	return o.Err
}
