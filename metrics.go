package hoplag

import (
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Metrics keeps totals and the latest report of each pair of points, and shows
// them to Prometheus. The zero value is ready to use, by any number of goroutines.
//
//	var metrics hoplag.Metrics
//	http.Handle("/metrics", &metrics)
//	for r := range b.Follow(ctx, url) {
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
	sent, received, extra uint64
	lost, known           int64   // what is known, and the most of it that ever was: counters never fall
	delay, measured       float64 // seconds, and the packets that they are of
	atMost                [len(Bounds)]float64
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
	for i, d := range [2]Delay{r.Forth, r.Back} {
		p := &t.paths[i]
		p.sent += d.Sent
		p.received += d.Received
		p.extra += d.Extra
		p.known += int64(d.Lost) - int64(d.Extra)
		p.lost = max(p.lost, p.known)
		if d.Err == nil && len(d.AtMost) == len(Bounds) {
			p.measured += float64(d.Received)
			p.delay += d.Mean * float64(d.Received) / 1e9
			for j := range Bounds {
				p.atMost[j] += d.AtMost[j]
			}
		}
	}
}

// sorted returns the pairs by name.
func (m *Metrics) sorted() (all []*totals) {
	keys := slices.SortedFunc(maps.Keys(m.pairs), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	for _, key := range keys {
		all = append(all, m.pairs[key])
	}
	return all
}

// ServeHTTP writes the metrics in the text format that Prometheus reads.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	m.WriteTo(w)
}

// WriteTo writes the metrics in the text format that Prometheus reads. Delays are
// a histogram of all that were measured, which can be added up over points, and
// quantiles of the latest interval. What is not known has no line.
func (m *Metrics) WriteTo(w io.Writer) (int64, error) {
	m.mu.Lock()
	var b strings.Builder
	pairs := m.sorted()
	for _, f := range families {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, f.kind)
		for _, t := range pairs {
			labels := fmt.Sprintf(`from=%s,to=%s`, label(t.latest.From), label(t.latest.To))
			line := func(suffix, labels string, value float64) {
				if !math.IsNaN(value) {
					fmt.Fprintf(&b, "%s%s{%s} %s\n", f.name, suffix, labels, number(value))
				}
			}
			if f.pair != nil {
				line("", labels, f.pair(t))
				continue
			}
			for i, d := range [2]*Delay{&t.latest.Forth, &t.latest.Back} {
				way := func(suffix, more string, value float64) {
					line(suffix, fmt.Sprintf("%s,direction=%q%s", labels, [2]string{"forth", "back"}[i], more), value)
				}
				if f.lines != nil {
					f.lines(d, &t.paths[i], way)
				} else {
					way("", "", f.path(d, &t.paths[i]))
				}
			}
		}
	}
	m.mu.Unlock()
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// A family is the metrics with one name: with a value of each pair, or of each
// direction, NaN where it is not known, or with lines that it writes itself.
type family struct {
	name, kind, help string
	pair             func(t *totals) float64
	path             func(d *Delay, p *pathTotals) float64
	lines            func(d *Delay, p *pathTotals, line func(suffix, more string, value float64))
}

var families = []family{
	{name: "hoplag_packets_sent_total", kind: "counter", help: "Packets sent of which it is known that they arrived, or did not.",
		path: func(_ *Delay, p *pathTotals) float64 { return float64(p.sent) }},
	{name: "hoplag_packets_received_total", kind: "counter", help: "Packets that passed the point that comes second.",
		path: func(_ *Delay, p *pathTotals) float64 { return float64(p.received) }},
	{name: "hoplag_packets_lost_total", kind: "counter", help: "Packets that were lost, less those that came after all.",
		path: func(_ *Delay, p *pathTotals) float64 { return float64(p.lost) }},
	{name: "hoplag_packets_extra_total", kind: "counter", help: "Packets that were received and never sent, or taken for lost before.",
		path: func(_ *Delay, p *pathTotals) float64 { return float64(p.extra) }},
	{name: "hoplag_packets_outstanding", kind: "gauge", help: "Packets on their way, or lost, at the end of the latest interval.",
		path: func(d *Delay, _ *pathTotals) float64 { return float64(d.Outstanding) }},
	{name: "hoplag_delay_seconds", kind: "histogram", help: "One-way delay of all packets that were measured; counts are estimates.",
		lines: writeHistogram},
	{name: "hoplag_delay_quantile_seconds", kind: "gauge", help: "Quantiles of the one-way delay of the latest interval.",
		lines: writeQuantiles},
	{name: "hoplag_delay_greatest_seconds", kind: "gauge", help: "Greatest delay seen of a single packet in the latest interval.",
		path: func(d *Delay, _ *pathTotals) float64 { return when(d.Err == nil && d.Greatest > 0, d.Greatest) }},
	{name: "hoplag_delay_mean_seconds", kind: "gauge", help: "Mean one-way delay of the latest interval.",
		path: func(d *Delay, _ *pathTotals) float64 { return when(d.Err == nil && d.MeanInterval95.Bounded(), d.Mean) }},
	{name: "hoplag_delay_mean_low_seconds", kind: "gauge", help: "Lower end of the mean's 95 % interval.",
		path: func(d *Delay, _ *pathTotals) float64 { return when(d.Err == nil, d.MeanInterval95.Low) }},
	{name: "hoplag_delay_mean_high_seconds", kind: "gauge", help: "Upper end of the mean's 95 % interval.",
		path: func(d *Delay, _ *pathTotals) float64 { return when(d.Err == nil, d.MeanInterval95.High) }},
	{name: "hoplag_delay_deviation_seconds", kind: "gauge", help: "Standard deviation of the one-way delay of the latest interval.",
		path: func(d *Delay, _ *pathTotals) float64 { return when(d.Err == nil, d.StdDev) }},
	{name: "hoplag_flow_delay_mean_seconds", kind: "gauge",
		help: "Mean one-way delay of the slowest flows of the latest interval, ten at most.", lines: writeFlows},
	{name: "hoplag_round_trip_seconds", kind: "gauge", help: "Mean delay there plus mean delay back, whatever the clocks say.",
		pair: func(t *totals) float64 { return when(t.latest.RoundTrip.Known, t.latest.RoundTrip.Mean) }},
	{name: "hoplag_reports_total", kind: "counter", help: "Intervals that were reported.",
		pair: func(t *totals) float64 { return float64(t.reports) }},
	{name: "hoplag_reports_failed_total", kind: "counter", help: "Intervals in which the first point could not be compared.",
		pair: func(t *totals) float64 { return float64(t.failed) }},
	{name: "hoplag_report_age_seconds", kind: "gauge", help: "How long ago the latest report came: older figures are not of now.",
		pair: func(t *totals) float64 { return time.Since(t.came).Seconds() }},
	{name: "hoplag_clock_known", kind: "gauge", help: "1 if delays are corrected by the clocks' difference, or the clocks are said to agree.",
		pair: func(t *totals) float64 {
			return map[bool]float64{true: 1}[t.latest.Clock.Known || t.latest.Clock.Agree]
		}},
	{name: "hoplag_clock_offset_seconds", kind: "gauge", help: "By how much the first point's clock is ahead of the second's.",
		pair: func(t *totals) float64 { return when(t.latest.Clock.Known, t.latest.Clock.Offset) }},
	{name: "hoplag_clock_offset_low_seconds", kind: "gauge", help: "Lower end of the offset's interval.",
		pair: func(t *totals) float64 { return when(t.latest.Clock.Known, t.latest.Clock.Likely.Low) }},
	{name: "hoplag_clock_offset_high_seconds", kind: "gauge", help: "Upper end of the offset's interval.",
		pair: func(t *totals) float64 { return when(t.latest.Clock.Known, t.latest.Clock.Likely.High) }},
	{name: "hoplag_clock_drift_ratio", kind: "gauge", help: "By how much faster the first point's clock runs.",
		pair: func(t *totals) float64 { return when(t.latest.Clock.Known, 1e9*t.latest.Clock.Drift) }},
}

// when returns nanoseconds as seconds if they are known, or NaN.
func when(known bool, ns float64) float64 {
	if !known {
		return math.NaN()
	}
	return ns / 1e9
}

func writeHistogram(_ *Delay, p *pathTotals, line func(suffix, more string, value float64)) {
	for j, bound := range Bounds {
		line("_bucket", fmt.Sprintf(`,le="%s"`, number(bound/1e9)), p.atMost[j])
	}
	line("_bucket", `,le="+Inf"`, p.measured)
	line("_sum", "", p.delay)
	line("_count", "", p.measured)
}

func writeQuantiles(d *Delay, _ *pathTotals, line func(suffix, more string, value float64)) {
	for _, q := range d.Quantiles {
		line("", fmt.Sprintf(`,quantile="%s"`, number(q.P)), q.Delay/1e9)
	}
}

func writeFlows(d *Delay, _ *pathTotals, line func(suffix, more string, value float64)) {
	for _, f := range d.Flows[:min(len(d.Flows), 10)] {
		line("", fmt.Sprintf(`,flow="%016x"`, uint64(f.Flow)), f.Mean/1e9)
	}
}

// label quotes a label's value as the exposition format requires.
func label(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(s, "�")) + `"`
}

// number formats a value: the format's infinities are +Inf and -Inf.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
