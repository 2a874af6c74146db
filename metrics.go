package hoplag

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Metrics keeps totals and the latest report of each pair of points, and shows
// them to Prometheus. The zero value is ready to use, by any number of goroutines.
//
//	var metrics hoplag.Metrics
//	http.Handle("/metrics", &metrics)
//	for r := range b.Follow(ctx, ask) {
//		metrics.Add(r)
//	}
type Metrics struct {
	mu    sync.Mutex
	pairs map[[2]string]*totals // by the names of the points
}

// totals belongs to one pair of points.
type totals struct {
	latest          Report
	reports, failed uint64
	came            time.Time // when the latest was added
	paths           [2]pathTotals
}

type pathTotals struct {
	sent, received, lost, extra uint64  // as in reports: sent = received - extra + lost
	delay, measured             float64 // seconds, and the packets that they are of
	atMost                      [len(Bounds)]float64
}

// Add adds a report.
func (m *Metrics) Add(r Report) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := [2]string{r.From, r.To}
	if m.pairs == nil {
		m.pairs = map[[2]string]*totals{}
	}
	if m.pairs[key] == nil {
		m.pairs[key] = new(totals)
	}
	t := m.pairs[key]
	t.latest, t.came = r, time.Now()
	if t.reports++; r.Err != nil {
		t.failed++
	}
	for i, d := range [2]Traffic{r.Forth, r.Back} {
		p := &t.paths[i]
		p.sent += d.Sent
		p.received += d.Received
		p.lost += d.Lost
		p.extra += d.Extra
		if d.Err == nil && len(d.AtMost) == len(Bounds) {
			p.measured += float64(d.Received)
			p.delay += d.Mean * float64(d.Received) / 1e9
			for j := range Bounds {
				p.atMost[j] += d.AtMost[j]
			}
		}
	}
}

// ServeHTTP writes the metrics, named hoplag_…, in the text format that Prometheus reads. Delays appear as a
// histogram of all that were measured, hoplag_delay_seconds, which can be added up over points, and as
// quantiles of the latest interval. What is not known has no line.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	m.mu.Lock()
	p, byName := page{}, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }
	for _, key := range slices.SortedFunc(maps.Keys(m.pairs), byName) {
		m.pairs[key].write(p)
	}
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	for _, name := range slices.Sorted(maps.Keys(p)) {
		w.Write(p[name])
	}
}

// A page is the lines of metrics by name.
type page map[string][]byte

// add adds a value. Name is that of the metric and may have a suffix after a space.
func (p page) add(kind, name, help, labels string, value float64) {
	name, suffix, _ := strings.Cut(name, " ")
	if p[name] == nil {
		p[name] = fmt.Appendf(nil, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	p[name] = fmt.Appendf(p[name], "%s%s{%s} %v\n", name, suffix, labels, value)
}

func (p page) counter(name, help, labels string, value float64) {
	p.add("counter", "hoplag_"+name+"_total", help, labels, value)
}

func (p page) gauge(name, help, labels string, known bool, value float64) {
	if known && !math.IsNaN(value) {
		p.add("gauge", "hoplag_"+name, help, labels, value)
	}
}

func (t *totals) write(p page) {
	labels := fmt.Sprintf(`from=%s,to=%s`, label(t.latest.From), label(t.latest.To))
	t.paths[forth].write(p, &t.latest.Forth, labels+`,direction="forth"`)
	t.paths[back].write(p, &t.latest.Back, labels+`,direction="back"`)
	p.counter("reports", "Intervals that were reported.", labels, float64(t.reports))
	p.counter("reports_failed", "Intervals in which the first point could not be compared.", labels, float64(t.failed))
	p.gauge("report_age_seconds", "How long ago the latest report came: older figures are not of now.", labels, true,
		time.Since(t.came).Seconds())
	i, c, known := &t.latest.RoundTrip, &t.latest.Clock, t.latest.Clock.Likely.Confidence > 0
	p.gauge("round_trip_seconds", "Mean delay there plus mean delay back, whatever the clocks say.", labels,
		i.Confidence > 0, (i.Low+i.High)/2e9)
	p.gauge("clock_known", "1 if delays are corrected by the clocks' difference, or the clocks are said to agree.", labels, true,
		map[bool]float64{true: 1}[t.latest.ClockErr == nil])
	p.gauge("clock_offset_seconds", "By how much the first point's clock is ahead of the second's.", labels, known, c.Offset/1e9)
	p.gauge("clock_offset_low_seconds", "Lower end of the offset's interval.", labels, known, c.Likely.Low/1e9)
	p.gauge("clock_offset_high_seconds", "Upper end of the offset's interval.", labels, known, c.Likely.High/1e9)
	p.gauge("clock_drift_ratio", "By how much faster the first point's clock runs.", labels, known, c.Drift)
}

func (t *pathTotals) write(p page, d *Traffic, labels string) {
	p.counter("packets_sent", "Packets sent of which it is known that they arrived, or did not.", labels, float64(t.sent))
	p.counter("packets_received", "Packets that passed the point that comes second.", labels, float64(t.received))
	p.counter("packets_lost", "Packets that were given up: sent - received + extra.", labels, float64(t.lost))
	p.counter("packets_extra", "Packets that were received and not sent (duplicates), or lost before.", labels, float64(t.extra))
	p.gauge("packets_outstanding", "Packets on their way, or lost, at the end of the latest interval.", labels, true, float64(d.Outstanding))
	histogram := func(suffix, more string, value float64) {
		p.add("histogram", "hoplag_delay_seconds "+suffix, "One-way delay of all packets that were measured; counts are estimates.",
			labels+more, value)
	}
	if t.measured > 0 {
		for j, bound := range Bounds {
			histogram("_bucket", fmt.Sprintf(`,le="%v"`, bound/1e9), t.atMost[j])
		}
		histogram("_bucket", `,le="+Inf"`, t.measured)
		histogram("_sum", "", t.delay)
		histogram("_count", "", t.measured)
	}
	for _, q := range d.Quantiles {
		p.gauge("delay_quantile_seconds", "Quantiles of the one-way delay of the latest interval; 1 is the greatest seen of a packet.",
			labels+fmt.Sprintf(`,quantile="%v"`, q.P), true, q.Delay/1e9)
	}
	known, i := d.Err == nil, d.MeanInterval95
	p.gauge("delay_mean_seconds", "Mean one-way delay of the latest interval.", labels, known && i.Bounded(), d.Mean/1e9)
	p.gauge("delay_mean_low_seconds", "Lower end of the mean's 95 % interval.", labels, known, i.Low/1e9)
	p.gauge("delay_mean_high_seconds", "Upper end of the mean's 95 % interval.", labels, known, i.High/1e9)
	p.gauge("delay_deviation_seconds", "Standard deviation of the one-way delay of the latest interval.", labels, known, d.StdDev/1e9)
	for _, f := range d.Flows[:min(len(d.Flows), 10)] {
		p.gauge("flow_delay_mean_seconds", "Mean one-way delay of the slowest flows of the latest interval, ten at most.",
			labels+fmt.Sprintf(`,flow="%016x"`, uint64(f.Flow)), true, f.Mean/1e9)
	}
}

// label quotes a label's value as the exposition format requires.
func label(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(s, "�")) + `"`
}
