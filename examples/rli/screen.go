package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/estimate"
)

// A second holds what is known about one second. Times are in nanoseconds.
type second struct {
	Second     int     `json:"second"`
	Elapsed    float64 `json:"elapsed"`    // 10^9 unless the second was interrupted
	Packets    uint64  `json:"packets"`    // that arrived
	Missing    uint64  `json:"missing"`    // of these, according to references
	Dropped    uint64  `json:"dropped"`    // of these, exactly
	Offered    float64 `json:"offered"`    // by packets, as a fraction of the link's rate
	References uint64  `json:"references"` // sent
	Taken      float64 `json:"taken"`      // by references, as a fraction of the link's rate
	Method     string  `json:"method"`     // with which packets were estimated last
	All        row     `json:"all"`
	Flows      []row   `json:"flows"`   // the slowest first
	Refused    int     `json:"refused"` // flows without an answer
}

// A row holds what is known about a flow.
type row struct {
	Flow           string   `json:"flow"`
	Packets        uint64   `json:"packets"`
	Mean           float64  `json:"mean"`
	Low            *float64 `json:"low"`  // of the mean, with 95 % confidence; null: unknown
	High           *float64 `json:"high"` // likewise
	Exact          float64  `json:"exact_mean"`
	Deviation      float64  `json:"deviation"`
	ExactDeviation float64  `json:"exact_deviation"`

	whole                     bool // it has every packet of the flow
	holdsMean, holdsDeviation bool // the intervals contain the exact values
}

// known returns a number for JSON, or null if it is not finite.
func known(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

// A summary sums up the run.
type summary struct {
	Seconds         int      `json:"seconds"`
	Means           uint64   `json:"means"`            // of a flow in a second, if no packet of the flow went unseen
	MedianError     *float64 `json:"median_error"`     // of these, relative; null: there are none
	Intervals       uint64   `json:"intervals"`        // of these, if known
	MeansHeld       *float64 `json:"means_held"`       // the fraction of the intervals that contain the exact mean
	DeviationsHeld  *float64 `json:"deviations_held"`  // likewise for deviations
	ReferencesSent  uint64   `json:"references"`       // in all
	ReferencesRate  *float64 `json:"references_rate"`  // per packet
	ReferencesTaken *float64 `json:"references_taken"` // as a fraction of the link's rate
}

// A screen shows seconds and keeps the first error.
type screen struct {
	options
	w      io.Writer
	clears bool
	err    error

	total                      summary
	packets, means, deviations uint64
	taken, elapsed             float64
	errors                     []float64
}

func (s *screen) print(format string, args ...any) {
	if s.err == nil {
		_, s.err = fmt.Fprintf(s.w, format, args...)
	}
}

func (s *screen) encode(v any) {
	if s.err == nil {
		s.err = json.NewEncoder(s.w).Encode(v)
	}
}

// show prints a second and adds it to the summary.
func (s *screen) show(r *second) {
	for i := range r.Flows {
		f := &r.Flows[i]
		if !f.whole {
			continue
		}
		s.total.Means++
		s.errors = append(s.errors, estimate.RelativeError(f.Mean, f.Exact))
		if f.Low != nil && f.High != nil {
			s.total.Intervals++
			s.means += one(f.holdsMean)
			s.deviations += one(f.holdsDeviation)
		}
	}
	s.total.Seconds++
	s.packets += r.Packets
	s.total.ReferencesSent += r.References
	s.taken += r.Taken * r.Elapsed
	s.elapsed += r.Elapsed
	flows := len(r.Flows)
	if s.top > 0 {
		r.Flows = r.Flows[:min(s.top, flows)]
	}
	if s.json {
		s.encode(r)
		return
	}
	if s.clears {
		s.print("\x1b[H\x1b[J")
	}
	part := ""
	if r.Elapsed < 1e9 {
		part = ", interrupted after " + hoplag.Format(r.Elapsed)
	}
	s.print("second %d%s: %d packets of %d flows, %s of %g Mbit/s, %d missing (exactly %d); %d references, %s of the link; %s\n",
		r.Second, part, r.Packets, flows, percent(r.Offered), s.rate, r.Missing, r.Dropped, r.References, percent(r.Taken), r.Method)
	if r.Packets == 0 {
		return
	}
	s.print("%-42s %8s %11s %25s %11s %9s %11s %11s\n", "", "packets", "mean", "95 %", "exactly", "off", "deviation", "exactly")
	s.row(&r.All)
	for i := range r.Flows {
		s.row(&r.Flows[i])
	}
	if r.Refused > 0 {
		s.print("%d flows without an answer: references do not tell their delays, or there was no room\n", r.Refused)
	}
	s.print("\n")
}

func (s *screen) row(f *row) {
	interval := "not known"
	if f.Low != nil && f.High != nil {
		interval = hoplag.Format(*f.Low) + " – " + hoplag.Format(*f.High)
	}
	s.print("%-42s %8d %11s %25s %11s %9s %11s %11s\n", f.Flow, f.Packets, hoplag.Format(f.Mean), interval,
		hoplag.Format(f.Exact), fmt.Sprintf("%+.2f %%", 100*(f.Mean/f.Exact-1)), hoplag.Format(f.Deviation), hoplag.Format(f.ExactDeviation))
}

// end prints the summary.
func (s *screen) end() {
	t := &s.total
	if t.Seconds == 0 {
		return
	}
	share := func(n, of uint64) *float64 { return known(float64(n) / float64(of)) }
	t.MeansHeld, t.DeviationsHeld = share(s.means, t.Intervals), share(s.deviations, t.Intervals)
	t.ReferencesRate, t.ReferencesTaken = share(t.ReferencesSent, s.packets), known(s.taken/s.elapsed)
	if off, err := estimate.NewEmpirical(s.errors).Quantile(0.5); err == nil {
		t.MedianError = &off
	}
	if s.json {
		s.encode(t)
		return
	}
	if t.Means > 0 {
		s.print("%d means of a flow in a second: half are within %s of the exact one. Of %d intervals at 95 %%, %s hold the exact mean,\n"+
			"and %s the exact deviation. ", t.Means, percent(*t.MedianError), t.Intervals, share100(t.MeansHeld), share100(t.DeviationsHeld))
	}
	s.print("References: %s of the packets, %s of the link.\n", share100(t.ReferencesRate), share100(t.ReferencesTaken))
}

// share100 formats a fraction that may be unknown.
func share100(x *float64) string {
	if x == nil {
		return "none"
	}
	return percent(*x)
}

func one(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

// percent formats a fraction.
func percent(x float64) string { return fmt.Sprintf("%.3g %%", 100*x) }
