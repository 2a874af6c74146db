package hoplag

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/flows"
	"github.com/hoplag/hoplag/lda/lost"
)

// Why a report, or one direction of it, has no mean, besides [estimate.ErrNoSamples] and, if the clocks differ by more
// than the delays, [estimate.ErrClocks].
var (
	// ErrIdle means that no packet passed in the interval.
	ErrIdle = errors.New("no packets")
	// ErrSilent means that nothing arrived from the other point for a whole interval.
	ErrSilent = errors.New("the other point is silent")
	// ErrStep means that a clock was set in the interval.
	ErrStep = errors.New("a clock was set")
	// ErrUnlike means that the points see different packets, or that one of them sees packets more often.
	ErrUnlike = errors.New("the points do not see the same packets")
)

// A Report says what happened to packets between two points in an interval.
type Report struct {
	Number   int64         // of its last interval, in units of Config.Report since 1970; it rises unless a clock is set back
	Start    time.Time     // by the clock of the point that reports
	Length   time.Duration // Config.Report, or more if it holds what came late, or less where a point began anew
	From, To string        // Config.Name of the first point, as far as it is known, and of the second

	Forth Traffic // of packets that passed the first point and then the second
	Back  Traffic // of those that passed the second and then the first, as Back.Passed said, in the first one's cuts that match

	// Clock says how far the first point's clock is ahead of the second's in the middle of the report, and delays are corrected by it:
	// packets were measured both ways, or the second point follows the first, and their exchanges bound the offset. Its Likely allows for
	// Config.Asymmetry. It is zero with Config.ClocksAgree, and if it is not known. Then ClockErr says why not, and roughly how far apart
	// the clocks are if that is far, as judged from the time that the transport between the points takes.
	Clock    clock.Reading
	ClockErr error `json:",omitempty"`

	// RoundTrip holds the mean delay there plus the mean delay back in 95 of 100 reports, whatever the clocks
	// say. It is zero if that is not known.
	RoundTrip estimate.Interval

	// Begins says that a point began anew at Start or up to ten cuts before, because it was started, its clock was set, a record of it is
	// missing, or it was unreachable for longer than its Config.History; or that packets still arrived that were on their way then. These
	// are in Received, but not in the mean, whose intervals allow for them if they were no slower and no more than those since. Otherwise
	// there is no mean, until it is certain that packets join on the way. Extra is 0, as it is unknown, and Lost may be unknown.
	Begins bool

	// Err says why the interval could not be compared, or not completely: [ErrSilent], [ErrStep], or why the first point cannot be reached.
	// The rest of the report covers what could be compared; what arrives late counts in a later report, whose Start and Length say so.
	Err error `json:",omitempty"`
}

const forth, back = 0, 1 // the two directions, as indices

// Traffic is what is known of the packets of one direction in a report: how long they took, in nanoseconds, and how
// many were lost, which is what an operator looks at, and the rest.
type Traffic struct {
	// Err is nil if there is a mean. Otherwise it is [ErrIdle] or another error of this package, wraps
	// [estimate.ErrNoSamples] or [estimate.ErrClocks], or says what is wrong.
	Err error `json:",omitempty"`

	// Mean is that of the packets received, corrected by Report.Clock. Duplicates are left out; packets that an
	// earlier report counted as lost are in it, with all their time. If Report.ClockErr is set, the mean is off
	// by the clocks' difference, and its interval has no upper end.
	Mean float64

	// MeanInterval95 holds the mean in at least 95 of 100 reports. It allows for what counters left out, packets on
	// their way at the ends and, where the paths differ by at most Config.Asymmetry, the clocks. In the first 45
	// cuts, when it is unknown how long packets take, losses leave the upper end far above.
	MeanInterval95 estimate.Interval

	// A report covers the packets whose fate became known in its interval. Received arrived, and Lost were given up. Sent = Received - Extra
	// + Lost, and Lost is never more than Sent, unless Err is [ErrUnlike]: then Sent and Received are what
	// passed the points, and no more is known.
	Sent, Received, Lost uint64

	// StdDev is the standard deviation of the delays, and DeviationInterval95 holds it as MeanInterval95 does the mean. Those
	// of heavy tails are outside more often ([estimate.Cells.EffectiveDegrees]), and include the drift of two clocks.
	StdDev              float64
	DeviationInterval95 estimate.Interval

	// Certain holds the mean whatever the asymmetry, in 999 of 1,000 reports.
	Certain estimate.Interval

	// Extra are those of Received that were not sent: duplicates, and packets that an earlier report counted as sent and
	// lost. Outstanding packets passed the first point, and are not yet received or lost; a later report has them.
	Extra, Outstanding uint64

	// LossUnknown says that Lost is 0 only because packets on their way when it Begins may hide losses.
	LossUnknown bool `json:",omitempty"`

	// Missing lists lost messages by name and time, at most 4,096, if the report is of Follow; the last may count as Lost
	// only in the next report. Their sender remembers those of four reports, up to 2^18. One name in a million is false. The
	// ID is the number that the message was reported by, or its Packet if it was not by a number; Sent is by the sender's
	// clock, since 1970. A message that takes half as long again as any recent one counts as lost, and is Extra if it still
	// arrives. So a report with losses waits until that is certain, for up to three times its length.
	Missing []lost.Name `json:",omitempty"`

	// Quantiles are p50, p90, p99 and p99.9, if known, and last, with P = 1, the greatest delay seen of a single
	// packet, whose interval has no upper end: others may have taken longer.
	Quantiles []lda.Quantile

	// AtMost is roughly how many of the packets received took no longer than 10, 25 and 50 µs, 100, 250 and 500 µs,
	// 1, 2.5 and 5 ms, and so on up to 10 s, if that is known.
	AtMost []float64 `json:",omitempty"`

	// Flows holds the delays of the flows that passed the second point, slowest first, if Config.Flows is set.
	// UnknownFlows counts those whose mean is not known to within itself, and is at least roughly as many as had no room in a cut.
	Flows        []flows.Delay `json:",omitempty"`
	UnknownFlows int           `json:",omitempty"`
}

// bounds are those of Traffic.AtMost, in nanoseconds.
var bounds = [...]float64{
	10e3, 25e3, 50e3, 100e3, 250e3, 500e3, 1e6, 2.5e6, 5e6, 10e6, 25e6, 50e6, 100e6, 250e6, 500e6, 1e9, 2.5e9, 5e9, 10e9,
}

// String formats the report in one line:
//
//	a → b  5.021 ms (5.018 ms to 5.024 ms), p99 9.714 ms, sent 1000, lost 10 (1.00 %)
//
// The mean is followed by the interval that holds it in 95 of 100 reports. Where the loss is unknown
// ([Traffic.LossUnknown]), it says "received 990, loss not known yet".
func (r Report) String() string {
	var b strings.Builder
	again := r.Forth.Err != nil && errors.Is(r.Err, r.Forth.Err)
	if again { // it says more
		r.Forth.Err = r.Err
	}
	fmt.Fprintf(&b, "%s → %s  %s", name(r.From), name(r.To), r.Forth)
	if r.Back.measured() && !errors.Is(r.Back.Err, ErrIdle) && (!again || r.Back.Sent+r.Back.Received > 0) {
		fmt.Fprintf(&b, "; back %s", r.Back)
	}
	if i := r.RoundTrip; i.Confidence > 0 {
		fmt.Fprintf(&b, "; round trip %s (%s to %s)", Format((i.Low+i.High)/2), Format(i.Low), Format(i.High))
	}
	if c := r.Clock; r.ClockErr != nil {
		fmt.Fprintf(&b, "; clocks: not known: %v", r.ClockErr)
	} else if c.Likely.Confidence > 0 {
		fmt.Fprintf(&b, "; clocks: offset %s ± %s, drift %.3g ppm", Format(c.Offset), Format((c.Likely.High-c.Likely.Low)/2), 1e6*c.Drift)
	}
	if r.Err != nil && !again {
		fmt.Fprintf(&b, "; %v", r.Err)
	}
	return b.String()
}

// name returns a name as a line can have it.
func name(s string) string {
	if q := strconv.Quote(s); len(q) > len(s)+2 {
		return q
	}
	return cmp.Or(s, "?")
}

// measured reports whether anything is known: zero Traffic is none.
func (d *Traffic) measured() bool { return d.Err != nil || d.Sent+d.Received > 0 }

// String formats the delay, the mean with its 95 % interval, and the loss in one line.
func (d Traffic) String() string {
	var b strings.Builder
	switch i := d.MeanInterval95; {
	case !d.measured():
		return "not measured"
	case d.Err != nil:
		b.WriteString(d.Err.Error())
	case math.IsInf(i.High, 1):
		fmt.Fprintf(&b, "at least %s", Format(i.Low))
	default:
		fmt.Fprintf(&b, "%s (%s to %s)", Format(d.Mean), Format(i.Low), Format(i.High))
	}
	for _, q := range d.Quantiles {
		if q.P == 0.99 && d.Err == nil {
			fmt.Fprintf(&b, ", p99 %s", Format(q.Delay))
		}
	}
	if d.LossUnknown && d.Received > 0 {
		fmt.Fprintf(&b, ", received %d, loss not known yet", d.Received)
	} else if errors.Is(d.Err, ErrUnlike) { // nobody knows which were lost
		fmt.Fprintf(&b, ", sent %d, received %d", d.Sent, d.Received)
	} else if d.Sent+d.Received > 0 {
		fmt.Fprintf(&b, ", sent %d, lost %d (%.2f %%)", d.Sent, d.Lost, 100*float64(d.Lost)/float64(max(d.Sent, 1)))
	}
	if d.Extra > 0 {
		fmt.Fprintf(&b, ", extra %d", d.Extra)
	}
	return b.String()
}

// Format formats nanoseconds with four digits and a unit, as in "39.14 ms".
func Format(ns float64) string {
	if math.IsInf(ns, 0) {
		return map[bool]string{true: "∞", false: "-∞"}[ns > 0]
	}
	unit, decimals := 0, 3
	for ; math.Abs(ns) >= 999.95 && unit < 3; unit++ { // what would round to 1,000 is 1 of the next
		ns /= 1000
	}
	for a := math.Abs(ns); a >= 9.9995 && decimals > 0; a /= 10 {
		decimals--
	}
	return strconv.FormatFloat(ns, 'f', decimals, 64) + [...]string{" ns", " µs", " ms", " s"}[unit]
}

// MarshalJSON encodes the whole report. Durations and delays are in nanoseconds, and errors are text, which they
// are not where Traffic is encoded by itself.
func (r Report) MarshalJSON() ([]byte, error) {
	type plain Report
	for _, err := range r.errors() {
		if *err != nil {
			*err = told((*err).Error())
		}
	}
	return json.Marshal(plain(r))
}

// UnmarshalJSON decodes what MarshalJSON encoded. Errors keep their text, and [errors.Is] recognizes those that it names.
func (r *Report) UnmarshalJSON(data []byte) error {
	type plain Report
	var decoded Report
	var texts [4]told
	for i, err := range decoded.errors() {
		*err = &texts[i]
	}
	err := json.Unmarshal(data, (*plain)(&decoded))
	for i, err := range decoded.errors() {
		if *err = texts[i]; texts[i] == "" {
			*err = nil
		}
	}
	if err == nil {
		*r = decoded
	}
	return err
}

// errors returns where a report has errors.
func (r *Report) errors() [4]*error { return [4]*error{&r.Err, &r.Forth.Err, &r.Back.Err, &r.ClockErr} }

// told is the text of an error.
type told string

// Error returns the text.
func (t told) Error() string { return string(t) }

// Is reports whether the text names an error.
func (t told) Is(target error) bool { return strings.Contains(string(t), target.Error()) }

// Metrics keeps totals and the latest report of each pair of points, and shows them to Prometheus. The zero value is
// ready to use, by any number of goroutines. Names tell pairs apart: hoplag_reports_failed_total rises if two have the same.
//
//	var metrics hoplag.Metrics
//	http.Handle("/metrics", &metrics)
//	for r := range b.Follow(ctx, ask) {
//		metrics.Add(r)
//	}
type Metrics struct {
	mu    sync.Mutex
	pairs map[string]*totals // by their labels
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
	atMost                      [len(bounds)]float64
}

// Add adds a report.
func (m *Metrics) Add(r Report) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pairs == nil {
		m.pairs = map[string]*totals{}
	}
	labels := fmt.Sprintf(`from=%s,to=%s`, label(r.From), label(r.To))
	t := cmp.Or(m.pairs[labels], new(totals))
	m.pairs[labels] = t
	gap := r.Start.Sub(t.latest.Start.Add(t.latest.Length)) // what comes late after an error may be of its time
	if t.reports++; r.Err != nil || t.reports > 1 && (gap > 0 || gap < 0 && t.latest.Err == nil) {
		t.failed++
	}
	t.latest, t.came = r, time.Now()
	for i, d := range [2]Traffic{r.Forth, r.Back} {
		p := &t.paths[i]
		p.sent += d.Sent
		p.received += d.Received
		p.lost += d.Lost
		p.extra += d.Extra
		if d.Err == nil && len(d.AtMost) == len(bounds) {
			p.measured += float64(d.Received)
			p.delay += d.Mean * float64(d.Received) / 1e9
			for j := range bounds {
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
	p := page{}
	for _, labels := range slices.Sorted(maps.Keys(m.pairs)) {
		m.pairs[labels].write(p, labels)
	}
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	for _, name := range slices.Sorted(maps.Keys(p)) {
		w.Write(p[name])
	}
}

// A page is the lines of metrics by name.
type page map[string][]byte

// add adds a value. Name is that of the metric without hoplag_, and may have a suffix after a space.
func (p page) add(kind, name, help, labels string, value float64) {
	name, suffix, _ := strings.Cut("hoplag_"+name, " ")
	if p[name] == nil {
		p[name] = fmt.Appendf(nil, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	p[name] = fmt.Appendf(p[name], "%s%s{%s} %v\n", name, suffix, labels, value)
}

func (p page) counter(name, help, labels string, value float64) {
	p.add("counter", name+"_total", help, labels, value)
}

func (p page) gauge(name, help, labels string, known bool, value float64) {
	if known && !math.IsNaN(value) {
		p.add("gauge", name, help, labels, value)
	}
}

func (t *totals) write(p page, labels string) {
	t.paths[forth].write(p, &t.latest.Forth, labels+`,direction="forth"`)
	t.paths[back].write(p, &t.latest.Back, labels+`,direction="back"`)
	p.counter("reports", "Intervals that were reported.", labels, float64(t.reports))
	p.counter("reports_failed", "Reports without the first point, after a gap, or of two pairs of one name.", labels, float64(t.failed))
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
		p.add("histogram", "delay_seconds "+suffix, "One-way delay of all packets that were measured; counts are estimates.",
			labels+more, value)
	}
	if t.measured > 0 {
		for j, bound := range bounds {
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
			labels+fmt.Sprintf(`,flow="%016x"`, uint64(f.Flow)), f.MeanInterval95.Bounded(), f.Mean/1e9)
	}
}

// label quotes a label's value as the exposition format requires.
func label(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(s, "�")) + `"`
}
