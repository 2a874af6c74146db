package main

import (
	"time"

	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/kernel"
)

// A meter is a point at each end, and their results over many comparisons.
type meter struct {
	up, down  *kernel.Point
	total     *lda.Accumulator
	interval  uint64
	passed    uint64
	sent, got uint64 // since the beginning
	lost      int64
}

func newMeter(c *cable, xdp bool) (m *meter, err error) {
	config := kernel.DefaultConfig
	config.Seed = uint64(time.Now().UnixNano()) // both points are here: nobody else needs to know it
	config.Clock = kernel.Boot                  // one clock for both
	m = new(meter)
	defer func() {
		if err != nil {
			m.close()
			err = explain(err)
		}
	}()
	if m.up, err = kernel.New(config); err != nil {
		return m, err
	}
	if m.down, err = kernel.New(config); err != nil {
		return m, err
	}
	if m.total, err = lda.NewAccumulator(m.up.Config().LDA); err != nil {
		return m, err
	}
	hook := kernel.Ingress
	if xdp {
		hook = kernel.XDP
	}
	// Attach the receiving end first, so that nothing looks lost that was not.
	if err = in(c.receiver, func() error { return m.down.Attach(device, hook) }); err != nil {
		return m, err
	}
	return m, in(c.sender, func() error { return m.up.Attach(device, kernel.Egress) })
}

func (m *meter) close() {
	for _, p := range []*kernel.Point{m.up, m.down} {
		if p != nil {
			p.Close()
		}
	}
}

// compare ends an interval at both points, and adds it to the others. They
// need not end together: packets on their way do not count as lost.
func (m *meter) compare() error {
	up, err := m.up.Rotate()
	if err != nil {
		return err
	}
	down, err := m.down.Rotate()
	if err != nil {
		return err
	}
	m.passed += up.Counters.NotIP + down.Counters.NotIP
	m.interval++
	if err := m.total.Add(m.interval, up.Aggregator, down.Aggregator); err != nil {
		return err
	}
	if err := m.up.Release(up); err != nil {
		return err
	}
	return m.down.Release(down)
}

// row returns what the points learned since the row before. In the last row,
// what is still outstanding is lost.
func (m *meter) row(second int, last bool) *row {
	result, err := m.total.Estimate()
	m.total.Reset()
	m.sent += result.Sent
	m.got += result.Received
	m.lost += int64(result.Lost)
	lost := m.lost // as far as known
	if last {
		lost = int64(m.sent) - int64(m.got)
	}
	r := &row{Second: second, Sent: result.Sent, Lost: lost, Sample: result.N, Passed: m.passed}
	if err != nil {
		r.Error = err.Error()
		return r
	}
	interval := result.MeanInterval(0.98)
	r.MeanMicros, r.LowMicros, r.HighMicros = known(result.Mean/1e3), known(interval.Low/1e3), known(interval.High/1e3)
	return r
}
