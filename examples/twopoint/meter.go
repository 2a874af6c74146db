package main

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/queue/trace"
)

// matchSeed makes the digests of the exact answer independent of those of the
// synopses.
const matchSeed = 0x9e3779b97f4a7c15

// meter measures one stream, by aggregators and exactly.
type meter struct {
	config    lda.Config
	length    int64 // of an interval in ns, 0 for one that never ends
	first     int64 // time of the first packet
	last      int64
	packets   [2]int64
	foreign   int64 // frames without IP that the egress alone saw
	matcher   *matcher
	intervals []interval
	receiving int               // index of the receiver's interval
	down      *lda.Aggregator   // of the receiver's interval
	spare     []*lda.Aggregator // to be used again
}

// interval is one measurement interval, from the sender's side.
type interval struct {
	start  int64
	exact  exact
	up     *lda.Aggregator // until the receiver has ended the interval
	result lda.Result
	err    error
}

func newMeter(c lda.Config, length time.Duration) (*meter, error) {
	down, err := lda.New(c)
	if err != nil {
		return nil, err
	}
	return &meter{config: c, length: int64(length), matcher: newMatcher(), down: down}, nil
}

// update records a packet. Times do not descend by much.
func (m *meter) update(point trace.Point, t int64, p *packet) {
	if m.packets[0]+m.packets[1] == 0 {
		m.first = t
	}
	m.last = max(m.last, t)
	m.packets[point]++
	digest, identity := p.digest(m.config.Seed), p.digest(matchSeed)
	if point == trace.Ingress {
		current := m.sending(t)
		current.up.Update(digest, t)
		current.exact.sent++
		m.matcher.in(identity, passage{t, len(m.intervals) - 1})
		return
	}
	at, ok, unique := m.matcher.out(identity)
	if !ok && !p.isIP() {
		// Spanning tree, LLDP, ARP: what stands between the points says this
		// itself, and would not count it as passing through.
		m.foreign++
		return
	}
	if ok {
		m.intervals[at.interval].exact.add(t-at.time, unique)
		for m.receiving < at.interval { // the marker would have come by now
			m.endInterval()
		}
	}
	m.down.Update(digest, t)
}

// sending returns the sender's interval at time t, a new one if the last has
// ended.
func (m *meter) sending(t int64) *interval {
	n := len(m.intervals)
	if n == 0 || m.length > 0 && t >= m.intervals[n-1].start+m.length {
		start := m.first
		if m.length > 0 {
			start += (t - m.first) / m.length * m.length
		}
		m.intervals = append(m.intervals, interval{start: start, up: m.aggregator()})
	}
	return &m.intervals[len(m.intervals)-1]
}

func (m *meter) aggregator() *lda.Aggregator {
	if n := len(m.spare); n > 0 {
		a := m.spare[n-1]
		m.spare = m.spare[:n-1]
		a.Reset()
		return a
	}
	a, err := lda.New(m.config)
	if err != nil {
		panic(err) // newMeter has checked the Config
	}
	return a
}

// endInterval ends the receiver's interval.
func (m *meter) endInterval() {
	i := &m.intervals[m.receiving]
	i.result, i.err = lda.Estimate(i.up, m.down)
	m.spare = append(m.spare, i.up)
	i.up = nil
	m.down.Reset()
	m.receiving++
}

// report ends what has not ended, and says how the estimates compare with the
// truth; or what is wrong with the captures.
func (m *meter) report() (*report, error) {
	for m.receiving < len(m.intervals) {
		m.endInterval()
	}
	if err := m.diagnose(); err != nil {
		return nil, err
	}
	r := &report{
		Config:         m.config,
		Seconds:        float64(m.last-m.first) / 1e9,
		Foreign:        m.foreign,
		Unmatched:      m.packets[trace.Egress] - m.foreign - m.matcher.matched,
		SynopsisBytes:  m.config.MemorySize(),
		WireBytes:      m.config.EncodedSize(),
		IntervalLength: m.length,
	}
	for i := range m.intervals {
		r.Intervals = append(r.Intervals, m.intervals[i].row(m))
	}
	return r, nil
}

// diagnose tells what is wrong with a pair of captures whose packets do not
// match.
func (m *meter) diagnose() error {
	in, out := m.packets[trace.Ingress], m.packets[trace.Egress]
	matched, early := m.matcher.matched, m.matcher.early
	switch {
	case early > matched:
		return fmt.Errorf("%s of %s packets are in -out before they are in -in: swap the two captures, or correct the clock of -out, which is behind", thousands(early), thousands(out))
	case matched == 0:
		return fmt.Errorf("captures of different traffic: none of %s packets of -out is among the %s of -in (address translation or a tunnel between the points changes packets, too)", thousands(out), thousands(in))
	case matched < out/2:
		return fmt.Errorf("only %s of %s packets of -out are in -in: the captures are of different traffic, or -in began later", thousands(matched), thousands(out))
	}
	return nil
}

// row puts the interval's estimates beside the truth.
func (i *interval) row(m *meter) row {
	delays := &i.exact.delays
	w := row{
		Start:    float64(i.start-m.first) / 1e9,
		Sent:     figure{Estimate: float64(i.result.Sent), Exact: float64(i.exact.sent)},
		Received: figure{Estimate: float64(i.result.Received), Exact: float64(delays.N())},
		Lost:     figure{Estimate: float64(i.result.Lost), Exact: float64(i.exact.sent - int64(delays.N()))},
		Extra:    i.result.Extra,
		Cells:    i.result.Cells,
		Usable:   i.result.Usable,
		Replaced: i.result.Replaced,
	}
	if errors.Is(i.err, estimate.ErrNoSamples) {
		w.Problem = "no usable cell: more loss than the sampling is made for; raise -shift or -rows"
		return w
	}
	w.EffectiveSample = i.result.N
	w.Ambiguous = delays.N() - i.exact.clear.N()
	if delays.N() > 0 {
		w.Mean = &figure{Estimate: i.result.Mean, Exact: delays.Mean()}
		w.StdDev = &figure{Estimate: i.result.StdDev, Exact: math.Sqrt(i.exact.clear.PopulationVariance())}
	}
	perCell := delays.Mean() * float64(delays.N()) / float64(m.config.Banks[0].Rows)
	if bits := m.config.SumBits; math.Abs(perCell) >= math.Ldexp(1, int(bits)-1) {
		w.Problem = fmt.Sprintf("a cell's delays add up to more than %d bits hold: bring the clocks together, or give a shorter -interval", bits)
	}
	return w
}
