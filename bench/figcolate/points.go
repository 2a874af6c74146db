package figcolate

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
)

// Counters of the experiments: bits of one, of which count packets where any do,
// and the paper's number to a flow.
const (
	counterBits  = 60
	countBits    = 16
	stampBits    = 40
	countersEach = 20
	megabyte     = 1 << 23 // bits
)

// sums is a recorder of plain sums of time stamps, as the paper has it.
func sums(counters int, seed uint64) colate.Config {
	return colate.Config{Identity: seed, Counters: counters, PerFlow: countersEach, Bits: counterBits, TimeBits: stampBits, Vectors: 1}
}

// counted is one of as many bits, some of which count packets.
func counted(counters int, seed uint64) colate.Config {
	c := sums(counters, seed)
	c.TimeBits, c.CountBits = 0, countBits
	return c
}

// countersIn is how many counters some memory has, in a full run.
func countersIn(run *experiment.Run, megabytes float64) int {
	return scaled(run, megabytes*megabyte/counterBits)
}

// scaled is a number of counters in this run.
func scaled(run *experiment.Run, counters float64) int {
	if run.Quick {
		counters *= float64(quickPackets) / fullPackets
	}
	return max(int(counters), 2*countersEach)
}

// points are the epochs of the two ends, and what a query needs.
type points struct {
	up, down         *colate.Epoch
	sender, receiver *colate.Subvector
}

var errEpochs = errors.New("the traffic did not fit one epoch")

// newRecorders are those of two ends.
func newRecorders(c colate.Config) (up, down *colate.Recorder, err error) {
	if up, err = colate.New(c); err == nil {
		down, err = colate.New(c)
	}
	return up, down, err
}

// read makes the recorders' current epochs ready to be asked.
func read(up, down *colate.Recorder) (*points, error) {
	if up.Pending() || down.Pending() {
		return nil, errEpochs
	}
	p := &points{up: up.Current(), down: down.Current()}
	var err error
	if p.sender, err = colate.NewSubvector(up.Config()); err == nil {
		p.receiver, err = colate.NewSubvector(down.Config())
	}
	return p, err
}

// record lets two recorders of a Config see all packets.
func (t *traffic) record(c colate.Config) (*points, error) {
	up, down, err := newRecorders(c)
	if err != nil {
		return nil, err
	}
	for i := range t.packets {
		p := &t.packets[i]
		key := t.flows[p.flow].key
		up.Update(key, p.id, p.in)
		down.Update(key, p.id, p.out)
	}
	return read(up, down)
}

// gather reads a flow's counters at both ends.
func (p *points) gather(f *flow) error {
	p.sender.Reset(f.key)
	p.receiver.Reset(f.key)
	return errors.Join(p.sender.Add(p.up), p.receiver.Add(p.down))
}

// theorem2 is the paper's answer, NaN if there is none.
func (p *points) theorem2(f *flow) (float64, error) {
	if err := p.gather(f); err != nil {
		return 0, err
	}
	return orNone(colate.Theorem2(p.sender, p.receiver, uint64(f.packets)))
}

// estimate is ours; no samples is a result without N.
func (p *points) estimate(f *flow) (colate.Result, error) {
	if err := p.gather(f); err != nil {
		return colate.Result{}, err
	}
	r, err := colate.Estimate(p.sender, p.receiver, uint64(f.packets))
	if errors.Is(err, estimate.ErrNoSamples) {
		err = nil
		r.Mean = math.NaN()
	}
	return r, err
}

// orNone makes no samples an answer that is not a number.
func orNone(x float64, err error) (float64, error) {
	if errors.Is(err, estimate.ErrNoSamples) {
		return math.NaN(), nil
	}
	return x, err
}

// joint decodes all flows.
func (p *points) joint(ctx context.Context, t *traffic) (joint.Result, error) {
	records := make([]joint.FlowRecord, len(t.flows))
	for i := range t.flows {
		records[i] = joint.FlowRecord{Flow: t.flows[i].key, Packets: float64(t.flows[i].packets)}
	}
	return colate.Joint(ctx, []*colate.Epoch{p.up}, []*colate.Epoch{p.down}, records, joint.Options{})
}

// Errors of one method, by flow.
type errorsOf struct {
	name  string
	paper bool
	flows []*flow
	off   []float64 // relative; infinite where there was no answer
}

func (e *errorsOf) add(f *flow, got float64) { e.addTo(f, got, f.mean()) }

// addTo is add for another truth than the mean.
func (e *errorsOf) addTo(f *flow, got, truth float64) {
	e.flows = append(e.flows, f)
	e.off = append(e.off, estimate.RelativeError(got, truth))
}

// of are the errors for one class of flows.
func (e *errorsOf) of(c class) []float64 {
	var x []float64
	for i, f := range e.flows {
		if c.has(f) {
			x = append(x, e.off[i])
		}
	}
	return x
}

func (e *errorsOf) median(c class) float64 { return quantile(e.of(c), 0.5) }

// answered is the median of the errors of a class where there was an answer, and
// to how many flows there was.
func (e *errorsOf) answered(c class) (median float64, flows int) {
	var x []float64
	for _, off := range e.of(c) {
		if !math.IsInf(off, 1) {
			x = append(x, off)
		}
	}
	return quantile(x, 0.5), len(x)
}

// within is the part of a class whose error is at most limit.
func (e *errorsOf) within(c class, limit float64) float64 {
	x := e.of(c)
	n := 0
	for _, off := range x {
		if off <= limit {
			n++
		}
	}
	return float64(n) / float64(len(x))
}

// cdf is the distribution of a class's errors, in per cent.
func (e *errorsOf) cdf(c class, name string) plot.Series {
	x := e.of(c)
	for i := range x {
		x[i] = 100 * min(x[i], 1e6)
	}
	s := plot.CDF(name, x, 0)
	s.Paper = e.paper
	return s
}

// byBin are the medians over bins, in per cent.
func (e *errorsOf) byBin(name string) plot.Series {
	s := plot.Series{Name: name, Paper: e.paper}
	for i, b := range bins {
		if x := e.of(b); len(x) > 0 {
			s.Add(float64(i), 100*quantile(x, 0.5))
		}
	}
	return s
}

// quantile sorts the samples. It is NaN if there are none.
func quantile(samples []float64, p float64) float64 {
	q, err := estimate.NewEmpirical(samples).Quantile(p)
	if err != nil {
		return math.NaN()
	}
	return q
}

func binAxis() plot.Axis {
	a := plot.Axis{Label: "packets of the flow"}
	for _, b := range bins {
		a.Categories = append(a.Categories, b.name)
	}
	return a
}

func errorAxis(least, most float64) plot.Axis {
	return plot.Axis{Label: "relative error (%)", Scale: plot.Log, Min: least, Max: most}
}

var shareAxis = plot.Axis{Label: "share of flows", Min: 0, Max: 1}

// bitsPerPacket is what an epoch takes in a store.
func bitsPerPacket(counters, bits, packets int) float64 {
	return float64(counters) * float64(bits) / float64(packets)
}

// setting says how a recorder was made, for a record's Config.
func setting(run *experiment.Run, more map[string]any) map[string]any {
	more["packets"] = run.Pick(quickPackets, fullPackets)
	more["counters"] = fmt.Sprintf("%d of %d bits to a flow; time stamps of %d bits in ns, or sums that wrap beside counts of %d bits", countersEach, counterBits, stampBits, countBits)
	return more
}
