package figlds

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/flowsim"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lds"
)

// part is a quick run's part of the paper's scale, and of its columns.
const part = 0.1

// An interval is one interval's traffic, and its flows as package lds takes
// them.
type interval struct {
	*flowsim.Traffic
	keys    []hashing.Flow
	packets []float64
	seed    uint64 // for what else is random in this interval
}

// newInterval makes the given one of a run's intervals: the same for every
// experiment of one seed.
func newInterval(run *experiment.Run, number int) (*interval, error) {
	c := flowsim.Paper
	if run.Quick {
		c = c.Scaled(part)
	}
	c.Seed = run.SeedOf(fmt.Sprintf("traffic %d", number))
	t, err := flowsim.New(c)
	if err != nil {
		return nil, err
	}
	iv := &interval{Traffic: t, seed: run.SeedOf(fmt.Sprintf("interval %d", number))}
	for i := range t.Flows {
		iv.keys = append(iv.keys, t.Flows[i].Key)
		iv.packets = append(iv.packets, float64(t.Flows[i].Size))
	}
	return iv, nil
}

// shape is a sketch of so many columns at the paper's scale, and a row for each
// rate.
func shape(run *experiment.Run, columns, spread int, rates ...float64) lds.Config {
	c := lds.DefaultConfig
	c.Columns, c.Spread, c.Rows = columns, spread, len(rates)
	if spread > 1 {
		c.Tolerance = 0.1 // section 5.2
	}
	if run.Quick {
		c.Columns = int(part * float64(columns))
	}
	c.Rates = [lds.MaxRows]float64{}
	copy(c.Rates[:], rates)
	return c
}

// everything is a rate of 1 for each of so many rows.
func everything(rows int) []float64 { return slices.Repeat([]float64{1}, rows) }

// points are the sketches at the two ends.
type points struct{ up, down *lds.Sketch }

// observe lets all sketches see the interval's packets, of which the share lost
// does not arrive, each packet by itself. weight is of a flow by its number; nil
// for 1.
func (iv *interval) observe(lost float64, weight func(i int) uint32, configs ...lds.Config) ([]points, error) {
	sketches := make([]points, len(configs))
	for i, c := range configs {
		var err error
		if sketches[i].up, err = lds.New(c); err != nil {
			return nil, err
		}
		if sketches[i].down, err = lds.New(c); err != nil {
			return nil, err
		}
	}
	w := uint32(1)
	for i := range iv.Flows {
		f := &iv.Flows[i]
		if weight != nil {
			w = weight(i)
		}
		for p := range f.Packets() {
			arrives := !iv.loses(p, lost)
			for _, s := range sketches {
				s.up.UpdateWeighted(f.Key, p.ID, p.Sent, w, 0)
				if arrives {
					s.down.UpdateWeighted(f.Key, p.ID, p.Sent+p.Delay, w, 0)
				}
			}
		}
	}
	return sketches, nil
}

// loses reports whether a packet is among the share lost.
func (iv *interval) loses(p flowsim.Packet, share float64) bool {
	return hashing.Sampled(uint64(hashing.Word(iv.seed, uint64(p.ID))), hashing.Threshold(share)) == 1
}

// A class is flows by how many packets they have, both ends included.
type class struct {
	name  string
	least int
	most  int
}

const unlimited = 1<<31 - 1

// Classes of Figs. 9 and 11, and then those of Fig. 10.
const (
	all = iota
	fromHundred
	fromThousand
	firstBin
)

var classes = []class{
	{"all flows", 1, unlimited}, {"≥ 100 packets", 100, unlimited}, {"≥ 1,000 packets", 1000, unlimited},
	{"1", 1, 1}, {"2–9", 2, 9}, {"10–49", 10, 49}, {"50–99", 50, 99}, {"100–499", 100, 499}, {"500–999", 500, 999}, {"1,000–9,999", 1000, 9999}, {"≥ 10,000", 10000, unlimited},
}

var bins = classes[firstBin:]

// binAxis is for figures over bins.
func binAxis() plot.Axis {
	a := plot.Axis{Label: "packets of the flow"}
	for _, b := range bins {
		a.Categories = append(a.Categories, b.name)
	}
	return a
}

func (c class) has(f *flowsim.Flow) bool { return c.least <= f.Size && f.Size <= c.most }

// An answer is a method's mean delay for flow i of an interval; not ok if it
// has none.
type answer func(i int) (mean float64, ok bool)

// A method is a way to estimate, and the relative errors that it had.
type method struct {
	name    string
	missing int           // flows without an answer
	found   []classErrors // by class
}

// classErrors are a method's errors for one class of flows.
type classErrors struct {
	all           []float64 // of all intervals
	medians, high []float64 // median and 95th percentile, by interval
}

// add takes the errors of one interval; those of the flows that only accepts,
// nil for all.
func (m *method) add(iv *interval, a answer, only func(i int) bool) {
	m.addOf(iv, func(i int) (got, truth float64, ok bool) {
		got, ok = a(i)
		return got, iv.Flows[i].Mean, ok
	}, only)
}

// addOf is add for another quantity than the mean delay, with its truth.
func (m *method) addOf(iv *interval, of func(i int) (got, truth float64, ok bool), only func(i int) bool) {
	if m.found == nil {
		m.found = make([]classErrors, len(classes))
	}
	here := make([][]float64, len(classes))
	for i := range iv.Flows {
		if only != nil && !only(i) {
			continue
		}
		got, truth, ok := of(i)
		off := estimate.RelativeError(got, truth)
		if !ok {
			m.missing++
			off = 1
		}
		for c := range classes {
			if classes[c].has(&iv.Flows[i]) {
				here[c] = append(here[c], off)
			}
		}
	}
	for c := range classes {
		if len(here[c]) == 0 {
			continue
		}
		found := &m.found[c]
		found.all = append(found.all, here[c]...)
		found.medians = append(found.medians, quantile(here[c], 0.5))
		found.high = append(found.high, quantile(here[c], 0.95))
	}
}

// quantile sorts the samples. It is NaN if there are none, which tables show
// and figures leave out.
func quantile(samples []float64, p float64) float64 {
	q, err := estimate.NewEmpirical(samples).Quantile(p)
	if err != nil {
		return math.NaN()
	}
	return q
}

func (m *method) median(c int) float64 { return quantile(m.found[c].all, 0.5) }
func (m *method) high(c int) float64   { return quantile(m.found[c].all, 0.95) }

// cell is a table's cell: median and 95th percentile.
func (m *method) cell(c int) string {
	return experiment.Percent(m.median(c)) + " / " + experiment.Percent(m.high(c))
}

// cdf is the distribution of the errors of one class of flows, in per cent.
func (m *method) cdf(c int) plot.Series {
	percent := make([]float64, len(m.found[c].all))
	for i, x := range m.found[c].all {
		percent[i] = 100 * x
	}
	return plot.CDF(m.name, percent, 0)
}

// byBin are a method's medians over the bins of sizes, in per cent, with the
// range of the intervals, or its 95th percentiles.
func (m *method) byBin(name string, high bool) plot.Series {
	s := plot.Series{Name: name}
	for b := range bins {
		found := &m.found[firstBin+b]
		y, each := m.median(firstBin+b), found.medians
		if high {
			y, each = m.high(firstBin+b), found.high
		}
		if len(each) > 0 {
			s.AddRange(float64(b), 100*y, 100*slices.Min(each), 100*slices.Max(each))
		}
	}
	return s
}

// errorAxis is for CDFs of errors: in per cent, from where they begin to
// matter.
func errorAxis(least float64) plot.Axis {
	return plot.Axis{Label: "relative error (%)", Scale: plot.Log, Min: least, Max: 1000}
}

var shareAxis = plot.Axis{Label: "share of flows", Min: 0, Max: 1}

// estimated answers as Estimate does, by whichever function.
func (iv *interval) estimated(s points, by func(up, down *lds.Sketch, f hashing.Flow) (lds.Result, error)) answer {
	return func(i int) (float64, bool) {
		r, err := by(s.up, s.down, iv.keys[i])
		return r.Mean, err == nil
	}
}

// decode is joint decoding, with packets of each flow or nil.
func (iv *interval) decode(ctx context.Context, s points, packets []float64) (*joint.Result, answer, error) {
	records := make([]joint.FlowRecord, len(iv.keys))
	for i, key := range iv.keys {
		records[i].Flow = key
		if packets != nil {
			records[i].Packets = packets[i]
		}
	}
	r, err := lds.Decode(ctx, s.up, s.down, records, joint.Options{})
	return &r, func(i int) (float64, bool) { return r.Mean[i], true }, err
}

// same answers with one mean for all flows.
func same(mean float64) answer {
	return func(int) (float64, bool) { return mean, true }
}

// kept judges a claim of ours that is true or not.
func kept(is bool) experiment.Verdict {
	if is {
		return experiment.Win
	}
	return experiment.Loss
}
