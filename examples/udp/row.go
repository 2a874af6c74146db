package main

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
)

// exact is what LDA is there to do without: it remembers every datagram until
// it is seen again. Source and sink both use it.
type exact struct {
	mu        sync.Mutex
	flying    map[uint64]passage // by sequence number
	intervals []truth
}

type passage struct {
	interval int
	time     int64
}

// truth is of the datagrams sent in one interval.
type truth struct {
	sent   uint64
	delays estimate.Moments // of those that arrived
}

func newExact(intervals int) *exact {
	return &exact{flying: map[uint64]passage{}, intervals: make([]truth, intervals)}
}

func (e *exact) sent(interval int, number uint64, t int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.flying[number] = passage{interval, t}
	e.intervals[interval].sent++
}

func (e *exact) arrived(number uint64, t int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p, ok := e.flying[number]; ok {
		delete(e.flying, number)
		e.intervals[p.interval].delays.Add(float64(t - p.time))
	}
}

// row is one interval, LDA's answer beside the exact one.
type row struct {
	Interval int         `json:"interval"`
	Exact    answer      `json:"exact"`
	LDA      *answer     `json:"lda"`        // nil if there is a problem
	Range    *[2]float64 `json:"mean_98_ns"` // nil if unknown, with the deviation, for want of cells
	Sample   uint64      `json:"effective_sample"`
	Cells    int         `json:"cells"`
	Usable   int         `json:"usable_cells"`
	Shifts   []int       `json:"sampling_shifts"` // of each bank
	Problem  string      `json:"problem,omitempty"`
}

type answer struct {
	Sent     uint64  `json:"sent"`
	Received uint64  `json:"received"`
	Lost     uint64  `json:"lost"`
	Mean     float64 `json:"mean_ns"`
	StdDev   float64 `json:"stddev_ns"`
}

var errSilence = errors.New("neither marker came")

// row puts a report on an interval beside the truth, which is complete:
// nothing of an interval comes after its End, but what the system reorders.
func (e *exact) row(interval int, r *lda.Report) row {
	e.mu.Lock()
	defer e.mu.Unlock()
	is := &e.intervals[interval]
	w := row{Interval: interval, Exact: answer{
		is.sent, is.delays.N(), is.sent - is.delays.N(), is.delays.Mean(), math.Sqrt(is.delays.PopulationVariance()),
	}}
	for _, bank := range r.Config.Banks {
		if bank.Rows > 0 {
			w.Shifts = append(w.Shifts, int(bank.Shift))
		}
	}
	if r.Err != nil {
		w.Problem = r.Err.Error()
		return w
	}
	w.LDA = &answer{r.Result.Sent, r.Result.Received, r.Result.Lost, r.Result.Mean, r.Result.StdDev}
	w.Sample, w.Cells, w.Usable = r.Result.N, r.Result.Cells, r.Result.Usable
	if w.Usable > 1 {
		in := r.Result.MeanInterval(0.98)
		w.Range = &[2]float64{in.Low, in.High}
	}
	return w
}

const heading = `LDA's answer, and the exact one in brackets; delays in ms

 #     sent  received   lost           mean             98 % interval   deviation        usable cells  sampling, 1 in 2^
`

// String is the row below the heading.
func (w *row) String() string {
	bracket := func(format string, x any) string { return fmt.Sprintf("("+format+")", x) }
	lost, mean := bracket("%d", w.Exact.Lost), bracket("%.3f", w.Exact.Mean/1e6)
	if w.LDA == nil {
		return fmt.Sprintf("%2d %8s %9s       %-8s       %-8s unusable: %s", w.Interval,
			bracket("%d", w.Exact.Sent), bracket("%d", w.Exact.Received), lost, mean, w.Problem)
	}
	in, deviation := "unknown", "-"
	if w.Range != nil {
		in = fmt.Sprintf("%.3f to %.3f", w.Range[0]/1e6, w.Range[1]/1e6)
		deviation = fmt.Sprintf("%.3f", w.LDA.StdDev/1e6)
	}
	return fmt.Sprintf("%2d %8d %9d %5d %-8s %6.3f %-8s %16s %6s %-8s %6d of %3d  %v",
		w.Interval, w.LDA.Sent, w.LDA.Received, w.LDA.Lost, lost, w.LDA.Mean/1e6, mean, in,
		deviation, bracket("%.3f", w.Exact.StdDev/1e6), w.Usable, w.Cells, w.Shifts)
}
