package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/hoplag/hoplag"
)

// seen is what was counted at both places.
type seen struct {
	Sent        uint64 `json:"sent"`
	Received    uint64 `json:"received"`
	DroppedFrom uint64 `json:"dropped_from"` // by the kernel, for lack of room in the rings
	DroppedTo   uint64 `json:"dropped_to"`
	PassedOver  uint64 `json:"passed_over"` // frames without IP, or to other addresses
	Bundles     uint64 `json:"bundles"`     // of segments, not counted
}

func (s seen) less(o seen) seen {
	return seen{
		s.Sent - o.Sent, s.Received - o.Received, s.DroppedFrom - o.DroppedFrom, s.DroppedTo - o.DroppedTo,
		s.PassedOver - o.PassedOver, s.Bundles - o.Bundles,
	}
}

// A row is one second. Delays are in nanoseconds, and absent if unknown.
type row struct {
	Time time.Time `json:"time"`
	seen
	Lost         uint64    `json:"lost"`
	Extra        uint64    `json:"extra"`
	Mean         *float64  `json:"mean,omitempty"`
	Low          *float64  `json:"low,omitempty"` // of the 95 % interval of the mean
	High         *float64  `json:"high,omitempty"`
	StdDev       *float64  `json:"deviation,omitempty"`
	P50          *float64  `json:"p50,omitempty"`
	P99          *float64  `json:"p99,omitempty"`
	Flows        []flowRow `json:"flows,omitempty"` // the slowest
	UnknownFlows int       `json:"unknown_flows,omitempty"`
	Begins       bool      `json:"begins,omitempty"` // a point began a moment ago, and lost and extra are not known
	Error        string    `json:"error,omitempty"`
}

// mostFlows is the largest number of flows in a row.
const mostFlows = 10

// A flowRow is a flow in a second.
type flowRow struct {
	Flow    string   `json:"flow"`
	Mean    float64  `json:"mean"`
	Low     *float64 `json:"low,omitempty"`
	High    *float64 `json:"high,omitempty"`
	Share   float64  `json:"share"`   // fraction of the packets behind the mean
	Sent    uint64   `json:"sent"`    // upper bound
	Lost    uint64   `json:"lost"`    // upper bound, including those on their way
	Overdue uint64   `json:"overdue"` // certainly lost of these: its own, or of flows that share its counters
}

// losses formats the range of packets that the flow's counters lost.
func (f *flowRow) losses() string {
	if f.Overdue == f.Lost {
		return fmt.Sprint(f.Lost)
	}
	return fmt.Sprintf("%d–%d", f.Overdue, f.Lost)
}

// A total is what passed from first to last. Missing is how many packets
// passed the first place and not the second, including those that the rings
// dropped. It is exact if nothing was on its way at the beginning, and every
// drop is counted.
type total struct {
	seen
	Missing int64     `json:"missing"`
	Exact   *truth    `json:"exact,omitempty"` // of the demo
	Mean    *float64  `json:"mean,omitempty"`
	Low     *float64  `json:"low,omitempty"` // of the 95 % interval of the mean
	High    *float64  `json:"high,omitempty"`
	Untold  uint64    `json:"untold,omitempty"` // packets received in seconds without a mean
	Flows   []flowRow `json:"flows,omitempty"`  // with -flow
}

// known returns a number for JSON, or null if it is not finite.
func known(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	return &v
}

func (r *row) quantile(p, delay float64) {
	switch p {
	case 0.5:
		r.P50 = known(delay)
	case 0.99:
		r.P99 = known(delay)
	}
}

// problem formats an error on one line, with what the counters say about the
// row.
func (r *row) problem(err error) {
	var all []string
	if err != nil {
		all = append(all, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if n := r.DroppedFrom + r.DroppedTo; n > 0 {
		const advice = "rings had no room for %d packets: lost and extra are off by as many (larger -buffer, more -rings)"
		all = append(all, fmt.Sprintf(advice, n))
	}
	if r.Bundles > 0 {
		all = append(all, fmt.Sprintf("%d bundles of segments not counted (ethtool -K … gro off gso off tso off)", r.Bundles))
	}
	r.Error = strings.Join(all, "; ")
}

// together combines all rows, weighed by packets. It combines their intervals,
// of 95 % each, as if they were all off in the same direction.
type together struct {
	mean, low, high float64
	packets         uint64
	unbounded       bool
	untold          uint64
}

func (a *together) add(r *row) {
	if r.Mean == nil {
		a.untold += r.Received
		return
	}
	n := float64(r.Received)
	a.packets += r.Received
	a.mean += n * *r.Mean
	if r.Low == nil || r.High == nil {
		a.unbounded = a.unbounded || r.Received > 0
		return
	}
	a.low += n * *r.Low
	a.high += n * *r.High
}

func (a *together) report(t *total) {
	t.Untold = a.untold
	if a.packets == 0 {
		return
	}
	n := float64(a.packets)
	t.Mean = known(a.mean / n)
	if !a.unbounded {
		t.Low, t.High = known(a.low/n), known(a.high/n)
	}
}

// An output prints rows: as JSON lines, as a view of a terminal, or as lines.
type output struct {
	w     io.Writer
	json  bool
	view  *view // for terminals
	count int
	all   together
	truth func() *truth // of the demo, or nil
}

func newOutput(w io.Writer, asJSON bool) *output {
	o := &output{w: w, json: asJSON}
	if f, ok := w.(*os.File); ok && !asJSON {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			o.view = new(view)
		}
	}
	return o
}

// The heading is repeated now and then.
const headingEvery = 30

func (o *output) row(r *row) error {
	o.all.add(r)
	switch {
	case o.json:
		return json.NewEncoder(o.w).Encode(r)
	case o.view != nil:
		_, err := io.WriteString(o.w, o.view.draw(r))
		return err
	}
	if o.count%headingEvery == 0 {
		if _, err := fmt.Fprintf(o.w, "%-8s %10s %22s %10s %8s %8s %6s %8s  %s\n",
			"time", "mean", "95 % of means", "p99", "packets", "lost", "extra", "dropped", "slowest flow"); err != nil {
			return err
		}
	}
	o.count++
	note := r.Error
	if note == "" && len(r.Flows) > 0 {
		note = format(&r.Flows[0].Mean) + " " + r.Flows[0].Flow
	}
	_, err := fmt.Fprintf(o.w, "%-8s %10s %22s %10s %8d %8d %6d %8d  %s\n", r.Time.Format("15:04:05"),
		format(r.Mean), between(r.Low, r.High), format(r.P99), r.Received, r.Lost, r.Extra, r.DroppedFrom+r.DroppedTo, note)
	return err
}

// end prints the total.
func (o *output) end(t *total) error {
	if t.Mean == nil {
		o.all.report(t)
	}
	if o.truth != nil {
		t.Exact = o.truth()
	}
	if o.json {
		return json.NewEncoder(o.w).Encode(map[string]*total{"total": t})
	}
	_, err := fmt.Fprintf(o.w, "in all: sent %d, received %d, missing %d, dropped by the rings %d and %d, mean %s (%s)\n",
		t.Sent, t.Received, t.Missing, t.DroppedFrom, t.DroppedTo, format(t.Mean), between(t.Low, t.High))
	if t.Exact != nil && err == nil {
		_, err = fmt.Fprintf(o.w, "exact:  sent %d, received %d, missing %d, mean %s\n",
			t.Exact.Sent, t.Exact.Received, t.Exact.Sent-t.Exact.Received, format(t.Exact.Mean))
	}
	return err
}

// between formats an interval that may be unknown.
func between(low, high *float64) string {
	if low == nil && high == nil {
		return ""
	}
	return format(low) + " – " + format(high)
}

// format formats a delay that may be unknown.
func format(ns *float64) string {
	if ns == nil {
		return "–"
	}
	return hoplag.Format(*ns)
}
