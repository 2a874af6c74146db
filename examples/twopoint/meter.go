package main

import (
	"fmt"
	"math"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/queue/trace"
)

// A meter measures one stream, with aggregators and exactly.
type meter struct {
	seed       uint64 // of the packets' digests
	length     int64  // of an interval in ns, 0 for one that never ends
	first      int64  // time of the first packet, and of the last
	last       int64
	packets    [2]int64
	passedOver int64                        // frames without whole IP headers
	cut        int64                        // packets of which a capture does not hold enough
	flying     map[hashing.Packet][]passage // of the ingress and not the egress yet, identical ones in order
	matched    int64
	intervals  []interval
	receiving  int             // index of the receiver's interval
	down       *lda.Aggregator // of the receiver's interval
	namer      *namer
	came       []bool // by number of a packet
}

// A passage is one packet's passage of the ingress.
type passage struct {
	time     int64
	interval int
	number   int64 // of the packet, from 1
}

// An interval is one measurement interval, from the sender's side.
type interval struct {
	start  int64
	up     *lda.Aggregator // until the receiver has ended the interval
	result lda.Result
	err    error

	// The exact answer for the packets sent in it. clear leaves out packets after an identical one that was not
	// seen to leave: which of the two a later sighting belongs to is then a guess, which spoils the deviation.
	sent          int64
	delays, clear estimate.Moments
	crossed       bool // packets sent in it arrived after the receiver's had ended, or those of another within it
}

// cells are those of the aggregators: the second bank samples one packet in eight,
// and a digest shows where packets arrived that had not gone in.
var cells = lda.Config{Banks: [4]lda.Bank{{Rows: 512}, {Rows: 512, Shift: 3}}, SumBits: 40, DigestBits: 16}

func newMeter(seed uint64, length time.Duration) (*meter, error) {
	down, err := lda.New(cells)
	if err != nil {
		return nil, err
	}
	n, err := newNamer()
	return &meter{seed: seed, length: int64(length), flying: map[hashing.Packet][]passage{}, down: down, namer: n}, err
}

// update records a packet. Times do not descend.
func (m *meter) update(side trace.Side, t int64, p hashing.Packet) error {
	if m.packets[0]+m.packets[1] == 0 {
		m.first = t
	}
	m.last = t
	m.packets[side]++
	m.namer.pass(side, p, t, m.packets[side])
	if side == trace.Ingress {
		current, err := m.sending(t)
		if err != nil {
			return err
		}
		current.up.Update(p, t)
		current.sent++
		m.flying[p] = append(m.flying[p], passage{t, len(m.intervals) - 1, m.packets[side]})
		m.came = append(m.came, false)
		return nil
	}
	if all := m.flying[p]; len(all) > 0 {
		if m.flying[p] = all[1:]; len(all) == 1 {
			delete(m.flying, p)
		}
		m.matched++
		m.came[all[0].number-1] = true
		i := &m.intervals[all[0].interval]
		if i.delays.Add(float64(t - all[0].time)); len(all) == 1 {
			i.clear.Add(float64(t - all[0].time))
		}
		for m.receiving < all[0].interval { // the marker would have arrived by now
			m.endInterval()
		}
		if m.receiving != all[0].interval {
			i.crossed, m.intervals[m.receiving].crossed = true, true
		}
	}
	m.down.Update(p, t)
	return nil
}

// sending returns the sender's interval at time t, a new one if the last has ended.
func (m *meter) sending(t int64) (*interval, error) {
	n := len(m.intervals)
	if n > 0 && (m.length == 0 || t-m.intervals[n-1].start < m.length) {
		return &m.intervals[n-1], nil
	}
	start := m.first
	if m.length > 0 {
		start += (t - m.first) / m.length * m.length
	}
	up, err := lda.New(cells)
	m.intervals = append(m.intervals, interval{start: start, up: up})
	return &m.intervals[n], err
}

// endInterval ends the receiver's interval.
func (m *meter) endInterval() {
	i := &m.intervals[m.receiving]
	i.result, i.err = lda.Estimate(i.up, m.down)
	i.up = nil
	m.down.Reset()
	m.receiving++
}

// report ends the remaining intervals and compares the estimates with the
// truth, or returns what is wrong with the captures.
func (m *meter) report() (*report, error) {
	for m.receiving < len(m.intervals) {
		m.endInterval()
	}
	in, out := m.packets[trace.Ingress], m.packets[trace.Egress]
	switch {
	case in == 0 || out == 0:
		return nil, fmt.Errorf("-before has %s IP packets, and -after %s", thousands(in), thousands(out))
	case m.last-m.first < 0: // wrapped
		return nil, fmt.Errorf("the times in the captures are more than 292 years apart")
	case m.matched < out/2:
		return nil, fmt.Errorf("only %s of %s packets of -after are in -before, of %s: the captures are of different traffic or swapped, "+
			"or -before began later, or the clock of -after is behind, or packets change on the way; %s are %s",
			thousands(m.matched), thousands(out), thousands(in), thousands(m.cut), cutShort)
	}
	r := &report{
		Config: cells, Seconds: float64(m.last-m.first) / 1e9, Interval: time.Duration(m.length),
		PassedOver: m.passedOver, Unmatched: out - m.matched, Cut: m.cut,
	}
	m.namer.finish()
	r.Named = m.namer.named
	for _, one := range r.Named {
		if m.came[one.Number-1] && !one.Repeated {
			r.NamedWrongly++
		}
	}
	for i := range m.intervals {
		r.Intervals = append(r.Intervals, m.intervals[i].row(m))
	}
	return r, nil
}

// row compares the interval's estimates with the truth.
func (i *interval) row(m *meter) row {
	r, delays := &i.result, &i.delays
	w := row{
		Start:    float64(i.start-m.first) / 1e9,
		Sent:     figure{float64(r.Sent), float64(i.sent)},
		Received: figure{float64(r.Received), float64(delays.N())},
		Lost:     figure{float64(r.Lost), float64(i.sent - int64(delays.N()))},
		Extra:    r.Extra, Crossed: i.crossed,
	}
	switch {
	case delays.N() == 0:
		w.Problem = "none of the packets came out"
	case i.err != nil:
		w.Problem = "no usable cell: more loss than the sampling is made for"
	default:
		w.EffectiveSample, w.Mean = r.N, &figure{r.Mean, delays.Mean()}
		if in := r.MeanInterval(0.95); in.Bounded() {
			w.MeanInterval95 = &in
		}
		if i.clear.N() > 0 && r.DeviationInterval(0.95).Bounded() { // otherwise one of the two does not know it
			w.StdDev = &figure{r.StdDev, math.Sqrt(i.clear.PopulationVariance())}
		}
	}
	return w
}
