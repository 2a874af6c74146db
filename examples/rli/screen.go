package main

import (
	"fmt"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/programs"
)

// A second holds what is known about one second. Times are in nanoseconds.
type second struct {
	Second     int
	Packets    uint64   // that arrived
	Missing    uint64   // of these, according to references
	Dropped    uint64   // of these, exactly
	References uint64   // that arrived
	Busy       *float64 // the share of packets that were estimated within busy periods
	All        row
	Flows      []row  // the slowest first
	Refused    int    // flows without an answer
	Refusal    string // why there is none of all packets
}

// A row holds what is known about a flow.
type row struct {
	Flow           string
	Packets        uint64
	Mean           float64
	Low            *float64 // of the mean, with -confidence; null: unknown
	High           *float64 // likewise
	Exact          float64
	Deviation      float64
	ExactDeviation float64

	whole bool // it has every packet of the flow
}

// A summary sums up the run.
type summary struct {
	Seconds     int
	Means       uint64   // of a flow in a second, if no packet of the flow went unseen
	MedianError *float64 // of these, relative; null: there are none
	Intervals   uint64   // of these, if known
	MeansHeld   *float64 // the fraction of the intervals that contain the exact mean
}

// A screen shows seconds.
type screen struct {
	programs.Rows
	options
	total  summary
	held   uint64
	errors []float64
}

// show prints a second and adds it to the summary.
func (s *screen) show(r *second) {
	for _, f := range r.Flows {
		if !f.whole {
			continue
		}
		s.total.Means++
		s.errors = append(s.errors, estimate.RelativeError(f.Mean, f.Exact))
		if f.Low != nil && f.High != nil {
			s.total.Intervals++
			if *f.Low <= f.Exact && f.Exact <= *f.High {
				s.held++
			}
		}
	}
	s.total.Seconds++
	flows := len(r.Flows)
	if s.top > 0 {
		r.Flows = r.Flows[:min(s.top, flows)]
	}
	if s.JSON {
		s.Object(r)
		return
	}
	s.Printf("second %d: %d packets of %d flows, %d missing (exactly %d); %d references; %s within busy periods\n",
		r.Second, r.Packets, flows, r.Missing, r.Dropped, r.References, percent(r.Busy))
	if r.Refusal != "" {
		s.Printf("no mean of all packets: %s\n\n", r.Refusal)
	}
	if flows == 0 {
		return
	}
	s.Printf("%-42s %8s %11s %23v %% %11s %9s %11s %11s\n", "", "packets", "mean", s.confidence, "exactly", "off", "deviation", "exactly")
	for _, f := range append([]row{r.All}, r.Flows...) {
		interval := "not known"
		if f.Low != nil && f.High != nil {
			interval = programs.Between(estimate.Interval{Low: *f.Low, High: *f.High})
		}
		s.Printf("%-42s %8d %11s %25s %11s %9s %11s %11s\n", f.Flow, f.Packets, hoplag.Format(f.Mean), interval,
			hoplag.Format(f.Exact), programs.Off(f.Mean, f.Exact), hoplag.Format(f.Deviation), hoplag.Format(f.ExactDeviation))
	}
	if r.Refused > 0 {
		s.Printf("%d flows without an answer: references do not tell their delays, or there was no room\n", r.Refused)
	}
	s.Printf("\n")
}

// end prints the summary.
func (s *screen) end() {
	t := &s.total
	if t.Seconds == 0 {
		return
	}
	t.MeansHeld = programs.Finite(float64(s.held) / float64(t.Intervals))
	if off, err := estimate.NewEmpirical(s.errors).Quantile(0.5); err == nil {
		t.MedianError = &off
	}
	if s.JSON {
		s.Object(t)
		return
	}
	if t.Means > 0 {
		s.Printf("%d means of a flow in a second: half are within %s of the exact one. Of %d intervals at %v %%, %s hold the exact mean.\n",
			t.Means, percent(t.MedianError), t.Intervals, s.confidence, percent(t.MeansHeld))
	}
}

// percent formats a fraction that may be unknown.
func percent(x *float64) string {
	if x == nil {
		return "none"
	}
	return fmt.Sprintf("%.3g %%", 100**x)
}
