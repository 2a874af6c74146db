package hoplag

import (
	"cmp"
	"encoding/json"
	"expvar"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Metrics keeps totals and the latest report of each pair of points,
// separately for each of their classes, for monitoring: as a page for
// Prometheus ([Metrics.ServeHTTP]) and as an [expvar.Var]. The zero value is
// ready to use.
//
//	var metrics hoplag.Metrics
//	http.Handle("/metrics", &metrics)
//	for r := range b.Follow(ctx, url) {
//		metrics.Add(r)
//	}
type Metrics struct {
	mu    sync.Mutex
	pairs map[[3]string]*totals // by the names of the points, and the class
}

var _ expvar.Var = (*Metrics)(nil)

// totals belongs to one pair of points and one class.
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
	key := [3]string{r.From, r.To, r.Class}
	t := m.pairs[key]
	if t == nil {
		if m.pairs == nil {
			m.pairs = map[[3]string]*totals{}
		}
		t = new(totals)
		m.pairs[key] = t
	}
	t.latest = r
	t.reports++
	if r.Err != nil {
		t.failed++
	}
	t.came = time.Now()
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

// String returns the latest reports as a JSON array, ordered by the names of
// the points and by class.
func (m *Metrics) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	reports := []Report{}
	for _, t := range m.sorted() {
		reports = append(reports, t.latest)
	}
	data, err := json.Marshal(reports)
	if err != nil {
		return fmt.Sprintf("%q", err)
	}
	return string(data)
}

// sorted returns the pairs by name.
func (m *Metrics) sorted() []*totals {
	return slices.SortedFunc(maps.Values(m.pairs), func(a, b *totals) int {
		x, y := &a.latest, &b.latest
		return cmp.Or(strings.Compare(x.From, y.From), strings.Compare(x.To, y.To), strings.Compare(x.Class, y.Class))
	})
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
			if t.latest.Class != "" {
				labels += ",class=" + label(t.latest.Class)
			}
			f.write(&b, t, labels)
		}
	}
	m.mu.Unlock()
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// A family is the metrics with one name.
type family struct {
	name, kind, help string
	write            func(b *strings.Builder, t *totals, labels string)
}

var families = []family{
	perPath("hoplag_packets_sent_total", "counter", "Packets sent of which it is known that they arrived, or did not.",
		func(_ *Delay, p *pathTotals) (float64, bool) { return float64(p.sent), true }),
	perPath("hoplag_packets_received_total", "counter", "Packets that passed the point that comes second.",
		func(_ *Delay, p *pathTotals) (float64, bool) { return float64(p.received), true }),
	perPath("hoplag_packets_lost_total", "counter", "Packets that were lost, less those that came after all.",
		func(_ *Delay, p *pathTotals) (float64, bool) { return float64(p.lost), true }),
	perPath("hoplag_packets_extra_total", "counter", "Packets that were received and never sent, or taken for lost before.",
		func(_ *Delay, p *pathTotals) (float64, bool) { return float64(p.extra), true }),
	perPath("hoplag_packets_outstanding", "gauge", "Packets on their way, or lost, at the end of the latest interval.",
		func(d *Delay, _ *pathTotals) (float64, bool) { return float64(d.Outstanding), true }),
	{"hoplag_delay_seconds", "histogram", "One-way delay of all packets that were measured; counts are estimates.", writeHistogram},
	{"hoplag_delay_quantile_seconds", "gauge", "Quantiles of the one-way delay of the latest interval.", writeQuantiles},
	perPath("hoplag_delay_greatest_seconds", "gauge", "Greatest delay seen of a single packet in the latest interval.",
		func(d *Delay, _ *pathTotals) (float64, bool) { return d.Greatest / 1e9, d.Err == nil && d.Greatest > 0 }),
	perPath("hoplag_delay_mean_seconds", "gauge", "Mean one-way delay of the latest interval.",
		func(d *Delay, _ *pathTotals) (float64, bool) {
			return d.Mean / 1e9, d.Err == nil && d.MeanInterval95.Bounded()
		}),
	perPath("hoplag_delay_mean_low_seconds", "gauge", "Lower end of the mean's 95 % interval.",
		func(d *Delay, _ *pathTotals) (float64, bool) { return d.MeanInterval95.Low / 1e9, d.Err == nil }),
	perPath("hoplag_delay_mean_high_seconds", "gauge", "Upper end of the mean's 95 % interval.",
		func(d *Delay, _ *pathTotals) (float64, bool) { return d.MeanInterval95.High / 1e9, d.Err == nil }),
	perPath("hoplag_delay_deviation_seconds", "gauge", "Standard deviation of the one-way delay of the latest interval.",
		func(d *Delay, _ *pathTotals) (float64, bool) { return d.StdDev / 1e9, d.Err == nil }),
	{"hoplag_flow_delay_mean_seconds", "gauge", "Mean one-way delay of the slowest flows of the latest interval, ten at most.", writeFlows},
	perPair("hoplag_round_trip_seconds", "gauge", "Mean delay there plus mean delay back, whatever the clocks say.",
		func(t *totals) (float64, bool) { return t.latest.RoundTrip.Mean / 1e9, t.latest.RoundTrip.Known }),
	perPair("hoplag_reports_total", "counter", "Intervals that were reported.",
		func(t *totals) (float64, bool) { return float64(t.reports), true }),
	perPair("hoplag_reports_failed_total", "counter", "Intervals in which the first point could not be compared.",
		func(t *totals) (float64, bool) { return float64(t.failed), true }),
	perPair("hoplag_report_age_seconds", "gauge", "How long ago the latest report came: older figures are not of now.",
		func(t *totals) (float64, bool) { return time.Since(t.came).Seconds(), true }),
	perPair("hoplag_clock_known", "gauge", "1 if delays are corrected by the clocks' difference, or the clocks are said to agree.",
		func(t *totals) (float64, bool) {
			return map[bool]float64{true: 1}[t.latest.Clock.Known || t.latest.Clock.Agree], true
		}),
	perPair("hoplag_clock_offset_seconds", "gauge", "By how much the first point's clock is ahead of the second's.",
		func(t *totals) (float64, bool) { return t.latest.Clock.Offset / 1e9, t.latest.Clock.Known }),
	perPair("hoplag_clock_offset_low_seconds", "gauge", "Lower end of the offset's interval.",
		func(t *totals) (float64, bool) { return t.latest.Clock.Likely.Low / 1e9, t.latest.Clock.Known }),
	perPair("hoplag_clock_offset_high_seconds", "gauge", "Upper end of the offset's interval.",
		func(t *totals) (float64, bool) { return t.latest.Clock.Likely.High / 1e9, t.latest.Clock.Known }),
	perPair("hoplag_clock_drift_ratio", "gauge", "By how much faster the first point's clock runs.",
		func(t *totals) (float64, bool) { return t.latest.Clock.Drift, t.latest.Clock.Known }),
}

// perPair returns a family with one value for each pair, if it is known.
func perPair(name, kind, help string, value func(t *totals) (float64, bool)) family {
	return family{name, kind, help, func(b *strings.Builder, t *totals, labels string) {
		if v, ok := value(t); ok {
			fmt.Fprintf(b, "%s{%s} %s\n", name, labels, number(v))
		}
	}}
}

// perPath returns a family with one value for each direction.
func perPath(name, kind, help string, value func(d *Delay, p *pathTotals) (float64, bool)) family {
	return family{name, kind, help, func(b *strings.Builder, t *totals, labels string) {
		for i, d := range [2]*Delay{&t.latest.Forth, &t.latest.Back} {
			if v, ok := value(d, &t.paths[i]); ok {
				fmt.Fprintf(b, "%s{%s,direction=%q} %s\n", name, labels, directions[i], number(v))
			}
		}
	}}
}

var directions = [2]string{"forth", "back"}

func writeHistogram(b *strings.Builder, t *totals, labels string) {
	const name = "hoplag_delay_seconds"
	for i := range t.paths {
		labels, p := fmt.Sprintf("%s,direction=%q", labels, directions[i]), &t.paths[i]
		for j, bound := range Bounds {
			fmt.Fprintf(b, "%s_bucket{%s,le=\"%s\"} %s\n", name, labels, number(bound/1e9), number(p.atMost[j]))
		}
		fmt.Fprintf(b, "%[1]s_bucket{%[2]s,le=\"+Inf\"} %[3]s\n%[1]s_sum{%[2]s} %[4]s\n%[1]s_count{%[2]s} %[3]s\n",
			name, labels, number(p.measured), number(p.delay))
	}
}

func writeQuantiles(b *strings.Builder, t *totals, labels string) {
	for i, d := range [2]*Delay{&t.latest.Forth, &t.latest.Back} {
		for _, q := range d.Quantiles {
			const line = "hoplag_delay_quantile_seconds{%s,direction=%q,quantile=\"%s\"} %s\n"
			fmt.Fprintf(b, line, labels, directions[i], number(q.P), number(q.Delay/1e9))
		}
	}
}

func writeFlows(b *strings.Builder, t *totals, labels string) {
	const most = 10
	for i, d := range [2]*Delay{&t.latest.Forth, &t.latest.Back} {
		for _, f := range d.Flows[:min(len(d.Flows), most)] {
			const line = "hoplag_flow_delay_mean_seconds{%s,direction=%q,flow=\"%016x\"} %s\n"
			fmt.Fprintf(b, line, labels, directions[i], uint64(f.Flow), number(f.Mean/1e9))
		}
	}
}

// label quotes a label's value as the exposition format requires.
func label(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(s, "�")) + `"`
}

// number formats a value: the format's infinities are +Inf and -Inf.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
