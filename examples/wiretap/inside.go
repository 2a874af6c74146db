package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/kernel"
	"github.com/hoplag/hoplag/lds"
)

// inside is a point in the kernel at each of the two places.
type inside struct {
	places [2]place
	points [2]*kernel.Point
	seed   uint64
	ask    tuples
	all    *lda.Accumulator    // of a second
	ever   *lda.Accumulator    // since the beginning
	flows  [2]*lds.Accumulator // likewise for flows, with -flow
	number uint64
	told   uint64 // the number at the row before
	sum    seen   // since the beginning
	now    seen   // since the row before
}

// settling is for how many cuts packets that were on their way when the points
// began may seem extra: twice as many as package lda waits for them.
const settling = 16

// flowCells distinguishes flows: those in question are large, so each has many
// cells, and a loss spoils one of them.
var flowCells = lds.Config{
	Rows: 4, Columns: 16384, Spread: 64, Rates: [lds.MaxRows]float64{1, 1, 1. / 8, 1. / 64}, SumBits: 64, DigestBits: 24,
}

// watchKernel measures with points in the kernel.
func watchKernel(ctx context.Context, o *options, out *output) (err error) {
	m := &inside{places: [2]place{o.from, o.to}, ask: o.ask}
	defer m.close()
	if err := m.open(cmp.Or(o.key, rand.Text())); err != nil {
		return err
	}
	ctx, stop := o.begin(ctx)
	defer stop()
	tick := time.NewTicker(o.cut)
	defer tick.Stop()
	second := time.Now()
	var end time.Time // set once only packets on their way are still to come
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			ctx, end = context.WithoutCancel(ctx), time.Now().Add(2*settle)
		}
		problem := m.compare()
		if problem != nil && !errors.Is(problem, kernel.ErrOffload) && !errors.Is(problem, kernel.ErrStep) {
			return problem
		}
		if time.Since(second) < time.Second && problem == nil {
			continue
		}
		if err := out.row(m.row(second, problem)); err != nil {
			return err
		}
		if second = time.Now(); !end.IsZero() && second.After(end) {
			return out.end(m.total())
		}
	}
}

// open loads the points and attaches them, the second one first, so that
// nothing looks lost that was not.
func (m *inside) open(key string) error {
	c := kernel.DefaultConfig
	c.Clock = kernel.Boot // one clock for both
	c.LDA = cells
	c.Seed = uint64(hashing.Digest(0, []byte(key)))
	m.seed = c.Seed
	if len(m.ask) > 0 {
		c.LDS = flowCells
	}
	for _, i := range []int{1, 0} {
		point, err := kernel.New(c)
		if err != nil {
			return explain(err)
		}
		m.points[i] = point
		p, hook := m.places[i], kernel.Ingress
		if p.out {
			hook = kernel.Egress
		}
		if err := in(p.namespace, func() error { return point.Attach(p.device, hook) }); err != nil {
			return fmt.Errorf("%v: %w", p, explain(err))
		}
	}
	c = m.points[0].Config()
	return m.begin(c.LDA, c.LDS)
}

// begin makes room for what the points count. Packets are on their way already.
func (m *inside) begin(all lda.Config, flows lds.Config) error {
	for _, a := range []**lda.Accumulator{&m.all, &m.ever} {
		var err error
		if *a, err = lda.NewAccumulator(all); err != nil {
			return err
		}
		(*a).Gap()
	}
	for i := range m.flows {
		if len(m.ask) == 0 {
			break
		}
		var err error
		if m.flows[i], err = lds.NewAccumulator(flows); err != nil {
			return err
		}
		m.flows[i].Gap()
	}
	return nil
}

func (m *inside) close() {
	for _, p := range m.points {
		if p != nil {
			p.Close()
		}
	}
}

// compare ends an interval at both points, and adds it to the others. They end
// as nearly together as possible; packets on their way do not count as lost.
func (m *inside) compare() error {
	var of [2]*kernel.Interval
	var errs [2]error
	var both sync.WaitGroup
	for i, p := range m.points {
		both.Go(func() { of[i], errs[i] = p.Rotate() })
	}
	both.Wait()
	for i, p := range m.points {
		if of[i] != nil {
			defer p.Release(of[i])
		}
	}
	problem := errors.Join(errs[:]...)
	for _, interval := range of {
		if interval == nil {
			return problem
		}
		c := interval.Counters
		m.now.PassedOver += c.NotIP + c.Truncated + c.Malformed + c.Deep
		m.now.Bundles += c.Bundles
	}
	if err := m.add(of[0], of[1]); err != nil {
		return err
	}
	return problem
}

// add adds what both points saw of an interval.
func (m *inside) add(from, to *kernel.Interval) error {
	m.number++
	for _, a := range []*lda.Accumulator{m.all, m.ever} {
		if err := a.Add(m.number, from.Aggregator, to.Aggregator); err != nil {
			return err
		}
	}
	for _, a := range m.flows {
		if a == nil {
			break
		}
		if err := a.Add(m.number, from.Sketch, to.Sketch); err != nil {
			return err
		}
	}
	return nil
}

// row returns what the points learned since the row before.
func (m *inside) row(at time.Time, problem error) *row {
	d, err := m.all.Estimate()
	m.now.Sent, m.now.Received = d.Sent, d.Received
	r := &row{Time: at, seen: m.now, Lost: d.Lost, Extra: d.Extra}
	if r.Begins = m.told < settling; r.Begins {
		r.Lost, r.Extra = 0, 0
	}
	m.told = m.number
	m.sum.Sent += d.Sent
	m.sum.Received += d.Received
	m.sum.PassedOver += m.now.PassedOver
	m.sum.Bundles += m.now.Bundles
	m.now = seen{}
	if err == nil {
		i := d.MeanInterval(0.95)
		r.Mean, r.Low, r.High, r.StdDev = known(d.Mean), known(i.Low), known(i.High), known(d.StdDev)
		for _, p := range []float64{0.5, 0.99} {
			if q, err := m.all.Distribution().Quantile(p, 0.95); err == nil {
				r.quantile(p, q.Delay)
			}
		}
	} else if d.Sent+d.Received > 0 {
		problem = errors.Join(problem, err)
	}
	m.all.Reset()
	r.Flows, r.UnknownFlows = m.answers(m.flows[0], deviation(d, err))
	if m.flows[0] != nil {
		m.flows[0].Reset()
	}
	r.problem(problem)
	return r
}

// answers returns the delays of the flows in question, and how many of them are
// unknown. What losses leave of a flow is of calmer times, in which delays are
// shorter. The deviation of all packets says how far that may move a mean.
func (m *inside) answers(a *lds.Accumulator, deviation float64) (rows []flowRow, unknown int) {
	for _, t := range m.ask {
		f, err := a.Estimate(t.Flow(m.seed))
		if err != nil {
			unknown++
			continue
		}
		i, apart := f.MeanInterval(0.95), f.LeftOut(deviation)
		rows = append(rows, flowRow{
			Flow: name(&t), Mean: f.Mean, Low: known(i.Low - apart), High: known(i.High + apart), Share: f.Share,
			Sent: f.Sent, Lost: f.Lost, Overdue: f.Overdue,
		})
	}
	return rows, unknown
}

// deviation is that of all packets, if it is known.
func deviation(d lda.Result, err error) float64 {
	if err != nil {
		return math.Inf(1)
	}
	return d.StdDev
}

func (m *inside) total() *total {
	t := &total{seen: m.sum, Missing: int64(m.sum.Sent) - int64(m.sum.Received)}
	d, err := m.ever.Estimate()
	if err == nil {
		i := d.MeanInterval(0.95)
		t.Mean, t.Low, t.High = known(d.Mean), known(i.Low), known(i.High)
	}
	t.Flows, _ = m.answers(m.flows[1], deviation(d, err))
	return t
}

// explain adds to an error what the program needs.
func explain(err error) error {
	switch {
	case errors.Is(err, kernel.ErrPrivilege):
		return fmt.Errorf("%w; run it as root", err)
	case errors.Is(err, kernel.ErrUnsupported):
		return fmt.Errorf("%w; it needs Linux", err)
	}
	return err
}

// tuples are the flows that -flow names.
type tuples []hashing.Tuple

func (t *tuples) String() string {
	var names []string
	for i := range *t {
		names = append(names, name(&(*t)[i]))
	}
	return strings.Join(names, ", ")
}

// Set parses what name formats.
func (t *tuples) Set(s string) error {
	want := errors.New("want a protocol, a source and a destination, as in \"udp 10.0.0.1:80 10.0.0.2:1234\"")
	fields := strings.Fields(s)
	if len(fields) != 3 {
		return want
	}
	protocol, ok := protocols[fields[0]]
	if !ok {
		n, err := strconv.ParseUint(fields[0], 10, 8)
		if err != nil {
			return want
		}
		protocol = uint8(n)
	}
	var ends [2]netip.AddrPort
	for i := range ends {
		var err error
		if ends[i], err = netip.ParseAddrPort(fields[1+i]); err != nil {
			return want
		}
	}
	*t = append(*t, hashing.MakeTuple(protocol, ends[0], ends[1]))
	return nil
}
