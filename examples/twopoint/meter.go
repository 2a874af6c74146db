package main

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/queue/trace"
)

// matchSeed makes the digests of the exact answer independent of those of the
// synopses.
const matchSeed = 0x9e3779b97f4a7c15

// meter measures one stream, with aggregators and exactly.
type meter struct {
	config    lda.Config
	seed      uint64
	length    int64 // of an interval in ns, 0 for one that never ends
	ipOnly    bool  // skip everything else
	first     int64 // time of the first packet
	last      int64
	packets   [2]int64
	cut       [2]int64 // packets of which the capture does not hold enough
	skipped   int64    // frames without IP or cut off within it, if ipOnly
	foreign   int64    // frames without IP that only the egress saw
	matcher   *matcher
	intervals []interval
	receiving int         // index of the receiver's interval
	down      *synopsis   // of the receiver's interval
	spare     []*synopsis // for reuse
	namer     *namer
	came      []bool // by number of a packet
}

// synopsis belongs to one point and one interval. Beside the measured
// aggregator it keeps one with sums of 64 bits, which shows whether the narrow
// ones have overflowed.
type synopsis struct{ measured, wide *lda.Aggregator }

func newSynopsis(c lda.Config) (*synopsis, error) {
	measured, err := lda.New(c)
	if err != nil {
		return nil, err
	}
	c.SumBits = 64
	wide, err := lda.New(c)
	return &synopsis{measured, wide}, err
}

func (s *synopsis) update(p hashing.Packet, t int64) {
	s.measured.Update(p, t)
	s.wide.Update(p, t)
}

func (s *synopsis) reset() {
	s.measured.Reset()
	s.wide.Reset()
}

// interval is one measurement interval, from the sender's side.
type interval struct {
	start      int64
	exact      exact
	up         *synopsis // until the receiver has ended the interval
	result     lda.Result
	err        error
	overflowed bool
	late       bool // ended although its packets may still have been on their way
}

// maxPending is how many intervals the receiver may be behind the sender. Each
// takes the memory of two synopses until it has ended.
const maxPending = 512

func newMeter(c lda.Config, seed uint64, length time.Duration) (*meter, error) {
	down, err := newSynopsis(c)
	if err != nil {
		return nil, err
	}
	n, err := newNamer()
	if err != nil {
		return nil, err
	}
	return &meter{config: c, seed: seed, length: int64(length), matcher: &matcher{strays: map[hashing.Packet]int{}}, down: down, namer: n}, nil
}

// knows reports whether the packet is on its way.
func (m *meter) knows(p *packet) bool { return m.matcher.flying.knows(p.digest(matchSeed)) }

// update records a packet. Times do not descend.
func (m *meter) update(point trace.Point, t int64, p *packet) {
	if p.cut {
		m.cut[point]++
	}
	if m.ipOnly && !p.isIP() {
		m.skipped++
		return
	}
	if m.packets[0]+m.packets[1] == 0 {
		m.first = t
	}
	m.last = t
	m.packets[point]++
	digest, identity := p.digest(m.seed), p.digest(matchSeed)
	if point == trace.Ingress {
		current := m.sending(t)
		current.up.update(digest, t)
		current.exact.sent++
		m.matcher.in(identity, passage{t, len(m.intervals) - 1, m.packets[point]})
		m.came = append(m.came, false)
		m.namer.pass(point, digest, t, m.packets[point])
		return
	}
	at, ok, unique := m.matcher.out(identity)
	if !ok && p.noIP {
		// Spanning tree, LLDP, ARP: what stands between the points sends this
		// itself, so it does not count as passing through.
		m.foreign++
		return
	}
	m.namer.pass(point, digest, t, 0)
	if ok {
		m.came[at.number-1] = true
		m.intervals[at.interval].exact.add(t-at.time, unique)
		if at.interval < m.receiving && m.intervals[at.interval].late && m.receiving < len(m.intervals) {
			m.intervals[m.receiving].late = true // it has the packet in its place
		}
		for m.receiving < at.interval { // the marker would have come by now
			m.endInterval()
		}
	}
	m.down.update(digest, t)
}

// sending returns the sender's interval at time t, a new one if the last has
// ended.
func (m *meter) sending(t int64) *interval {
	n := len(m.intervals)
	if n == 0 || m.length > 0 && t-m.intervals[n-1].start >= m.length {
		start := m.first
		if m.length > 0 {
			start += (t - m.first) / m.length * m.length
		}
		if n-m.receiving >= maxPending {
			m.intervals[m.receiving].late = true
			m.endInterval()
		}
		m.intervals = append(m.intervals, interval{start: start, up: m.synopsis()})
	}
	return &m.intervals[len(m.intervals)-1]
}

func (m *meter) synopsis() *synopsis {
	if n := len(m.spare); n > 0 {
		s := m.spare[n-1]
		m.spare = m.spare[:n-1]
		s.reset()
		return s
	}
	s, err := newSynopsis(m.config)
	if err != nil {
		panic(err) // newMeter has checked the Config
	}
	return s
}

// endInterval ends the receiver's interval.
func (m *meter) endInterval() {
	i := &m.intervals[m.receiving]
	i.result, i.err = lda.Estimate(i.up.measured, m.down.measured)
	wide, _ := lda.Estimate(i.up.wide, m.down.wide)
	i.overflowed = wide.Delay != i.result.Delay
	m.spare = append(m.spare, i.up)
	i.up = nil
	m.down.reset()
	m.receiving++
}

// report ends the remaining intervals and compares the estimates with the
// truth, or returns what is wrong with the captures.
func (m *meter) report() (*report, error) {
	for m.receiving < len(m.intervals) {
		m.endInterval()
	}
	if err := m.diagnose(); err != nil {
		return nil, err
	}
	r := &report{
		Config:         newSettings(m.config),
		Seconds:        float64(m.last-m.first) / 1e9,
		PassedOver:     m.skipped + m.foreign,
		Early:          m.matcher.early,
		Unmatched:      m.packets[trace.Egress] - m.foreign - m.matcher.matched,
		Cut:            m.cut[trace.Ingress] + m.cut[trace.Egress],
		SynopsisBytes:  m.config.MemorySize(),
		WireBytes:      m.config.EncodedSize(),
		IntervalLength: m.length,
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

// diagnose returns what is wrong with a pair of captures whose packets do not
// match.
func (m *meter) diagnose() error {
	in, out := m.packets[trace.Ingress], m.packets[trace.Egress]
	matched, early := m.matcher.matched, m.matcher.early
	switch {
	case in == 0:
		return errors.New("none of the frames of -before carries IP")
	case out == 0:
		return errors.New("none of the frames of -after carries IP")
	case m.last-m.first < 0: // wrapped
		return errors.New("the times in the captures are more than 292 years apart")
	case early > matched:
		return fmt.Errorf("%s of %s packets are in -after before they are in -before: swap the two captures, "+
			"or correct the clock of -after, which is behind, or take one direction only, if they have both",
			thousands(early), thousands(out))
	case matched == 0:
		return fmt.Errorf("captures of different traffic: none of %s packets of -after is among the %s of -before (address translation "+
			"or a tunnel between the points changes packets, too)%s", thousands(out), thousands(in), m.cutting())
	case matched < (out-m.foreign)/2:
		return fmt.Errorf("only %s of %s packets of -after are in -before: the captures are of different traffic, "+
			"or -before began later%s", thousands(matched), thousands(out), m.cutting())
	}
	return nil
}

// cutting describes packets that cannot be recognised because of the snap
// length.
func (m *meter) cutting() string {
	if m.cut == [2]int64{} {
		return ""
	}
	return fmt.Sprintf("; or their snap lengths: %s of -before and %s of -after are %s", thousands(m.cut[trace.Ingress]),
		thousands(m.cut[trace.Egress]), cutShort)
}

// row compares the interval's estimates with the truth.
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
	switch {
	case i.late:
		w.Problem = fmt.Sprintf("packets were under way for %d intervals: give a longer -interval", maxPending)
		return w
	case delays.N() == 0:
		w.Problem = "none of the packets came out"
		return w
	case errors.Is(i.err, estimate.ErrNoSamples):
		w.Problem = "no usable cell: more loss than the sampling is made for; raise -shift or -rows"
		return w
	case i.overflowed:
		w.Problem = fmt.Sprintf("a cell's delays add up to more than %d bits hold: bring the clocks together, or give a shorter -interval",
			m.config.SumBits)
	}
	w.EffectiveSample = i.result.N
	w.Ambiguous = delays.N() - i.exact.clear.N()
	w.Mean = &figure{Estimate: i.result.Mean, Exact: delays.Mean()}
	if i.exact.clear.N() > 0 && i.result.Usable > 1 { // otherwise one of the two does not know it
		w.StdDev = &figure{Estimate: i.result.StdDev, Exact: math.Sqrt(i.exact.clear.PopulationVariance())}
	}
	return w
}
