package hoplag

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

// Why a report, or one direction of it, has no mean.
var (
	// ErrIdle says that no packet passed in the interval.
	ErrIdle = errors.New("no packets")
	// ErrSilent says that nothing came from the other point for a whole interval.
	ErrSilent = errors.New("the other point is silent")
	// ErrStep says that a clock was set in the interval.
	ErrStep = errors.New("a clock was set")
	// ErrClocks says that the clocks disagree, by more than the delays.
	ErrClocks = estimate.ErrClocks
	// ErrUnlike says that the points see different packets, or that one of them sees packets more often.
	ErrUnlike = errors.New("the points do not see the same packets")
)

// A Report says what happened to packets between two points in an interval.
type Report struct {
	Number   int64         // of its last interval, in units of Config.Report since 1970; it rises unless a clock is set back
	Start    time.Time     // by the clock of the point that reports
	Length   time.Duration // Config.Report, or more if it holds what came late, or less where a point began anew
	From, To string        // Config.Name of the first point, as far as it is known, and of the second

	Forth Delay // of packets that passed the first point and then the second
	Back  Delay // of those that passed the second and then the first, as Back.Passed said, in the first one's cuts that match
	Clock Clock // of the first point, as the second one's clock sees it

	// RoundTrip holds the mean delay there plus the mean delay back in 95 of 100 reports, whatever the clocks say. It is
	// zero if that is not known.
	RoundTrip estimate.Interval

	// Begins says that a point began anew at Start, or up to ten cuts before, or that packets still came that were on
	// their way then: it was started, its clock was set, a record of it is missing, or it was unreachable for longer than
	// its Config.History. Extra is unknown, and 0, and Lost may be unknown. Packets on their way when it began are in
	// Received, but not in the mean; its intervals hold them if they took no longer than packets do since, and where
	// they are seen to have been slower, or more, there is no mean.
	Begins bool

	// Err says why the interval could not be compared, or not completely: [ErrSilent], [ErrStep], or why the first
	// point cannot be reached. The rest of the report covers what could be compared; what comes late counts in a later
	// report, whose Start and Length say so.
	Err error `json:",omitempty"`
}

// A Delay is the one-way delay of the packets of one direction, in nanoseconds.
type Delay struct {
	// Delay has the mean and the deviation of the packets received, corrected for the clocks' difference if Clock.Known.
	// Duplicates are left out; packets that had counted as lost are in it with all their time. If the clocks are neither
	// known nor said to agree, the mean is off by their difference, and its interval has no upper end.
	estimate.Delay

	// A report is about the packets whose fate became known in its interval. Received arrived, and Lost were given up.
	// Extra is that part of Received that was not sent: duplicates, and packets that counted as sent and lost before.
	// So Sent = Received - Extra + Lost, and Lost is never more than Sent, unless Err is [ErrUnlike]:
	// then Sent and Received are what passed the points. Outstanding passed the first point and are neither yet; a
	// later report has them.
	Sent, Received, Lost, Extra, Outstanding uint64

	// LossUnknown says that Lost is 0 because the report Begins, and what was on its way then may hide losses.
	LossUnknown bool `json:",omitempty"`

	// Missing are messages that were lost, by name and time, as far as the point that sent them remembers
	// (Config.Remember), at most 4,096; the last may be Lost in the next report. One name in a million is false. A
	// message that takes half as long again as any lately counts as lost, and is Extra if it comes after all. Reports
	// that lose some wait for a session's first 45 cuts, and until anything comes again, three intervals at most.
	Missing []Missing `json:",omitempty"`

	// MeanInterval95 holds the mean in at least 95 of 100 reports, and DeviationInterval95 the deviation: with what
	// counters left out, packets on their way at the ends, and the clocks, as far as Config.Asymmetry is true. For the
	// first 45 cuts nobody knows how long the slowest take, and losses leave the upper end far above. Certain holds the
	// mean whatever the asymmetry, in 999 of 1,000 reports. Deviations of heavy-tailed delays are outside more often
	// (see [estimate.Cells.EffectiveDegrees]), and hold the drift of two clocks within a report.
	MeanInterval95, DeviationInterval95, Certain estimate.Interval

	Quantiles []lda.Quantile // p50, p90, p99 and p99.9, if known
	Greatest  float64        // delay seen of a single packet; others may have taken longer

	// AtMost is roughly how many of the packets received took no longer than each of [Bounds], if that is known.
	AtMost []float64 `json:",omitempty"`

	// Flows holds the delays of the flows that passed the second point, slowest first, if Config.Flows is set.
	// UnknownFlows is how many have a mean that is not known to within itself, or had no room at a point at times.
	Flows        []FlowDelay `json:",omitempty"`
	UnknownFlows int         `json:",omitempty"`

	// Err is nil if there is a mean. Otherwise it is [ErrIdle] or another error of
	// this package, wraps [estimate.ErrNoSamples], or says what is wrong.
	Err error `json:",omitempty"`
}

// Bounds are the upper ends of [Delay.AtMost], in nanoseconds.
var Bounds = [...]float64{
	10e3, 25e3, 50e3, 100e3, 250e3, 500e3, 1e6, 2.5e6, 5e6, 10e6, 25e6, 50e6, 100e6, 250e6, 500e6, 1e9, 2.5e9, 5e9, 10e9,
}

// A FlowDelay is the one-way delay of a flow.
type FlowDelay struct {
	Flow hashing.Flow `json:",string"` // as [Point.Flow] names it; text in JSON, whose numbers are shorter
	Mean float64      // of the packets that passed the second point in the report, in nanoseconds

	// MeanInterval95 contains that mean in 95 of 100 reports. It is exact if no packet of
	// the flow was lost, or on its way when the report began or ended. Packets whose time
	// is hidden by losses or by a session's beginning are taken to be like the others.
	MeanInterval95 estimate.Interval

	// Sent and Received passed the points in the report, and Lost is how many more
	// were sent: lost, or on their way when it ends and not when it began.
	Sent, Received, Lost uint64
}

// Loss returns the share of the packets that were lost.
func (d *Delay) Loss() float64 { return float64(d.Lost) / float64(max(d.Sent, 1)) }

// Quantile returns the quantile for a share, and whether it is known.
func (d *Delay) Quantile(share float64) (time.Duration, bool) {
	for _, q := range d.Quantiles {
		if q.P == share {
			return time.Duration(q.Delay), true
		}
	}
	return 0, false
}

// A Clock describes the difference between two points' clocks.
type Clock struct {
	// Known says that delays are corrected by Offset and Drift: packets were measured
	// both ways, or the second point follows the first, and their exchanges bound the
	// offset. Agree is Config.ClocksAgree. If neither is true, Why says why not, and roughly how far apart the clocks are
	// if that is much: as far as the time tells that the transport between the points takes.
	Known, Agree bool
	Why          string `json:",omitempty"`

	Offset    float64           // nanoseconds by which the first point's clock is ahead of the second's
	Drift     float64           // how much faster it runs: 3e-5 is 30 ppm
	Certain   estimate.Interval // interval of the offset, whatever the delays were
	Likely    estimate.Interval // interval of the offset if the least delays differ by no more than Config.Asymmetry
	RoundTrip float64           // nanoseconds: the shortest seen
}

// String formats the report in one line:
//
//	a → b  5.021 ms (5.018 ms to 5.024 ms), p99 9.714 ms, sent 1000, lost 10 (1.00 %)
//
// The mean is followed by the interval that holds it in 95 of 100 reports. Where the loss is unknown
// ([Delay.LossUnknown]), it says "received 990, loss not known yet".
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s → %s  %s", name(r.From), name(r.To), r.Forth)
	if r.Back.measured() && !errors.Is(r.Back.Err, ErrIdle) {
		fmt.Fprintf(&b, "; back %s", r.Back)
	}
	if i := r.RoundTrip; i.Confidence > 0 {
		fmt.Fprintf(&b, "; round trip %s (%s to %s)", Format((i.Low+i.High)/2), Format(i.Low), Format(i.High))
	}
	if !r.Clock.Agree {
		fmt.Fprintf(&b, "; clocks: %v", r.Clock)
	}
	if r.Err != nil {
		fmt.Fprintf(&b, "; %v", r.Err)
	}
	return b.String()
}

func name(s string) string { return cmp.Or(s, "?") }

// measured reports whether anything is known: a zero Delay is of nothing.
func (d *Delay) measured() bool { return d.Err != nil || d.Sent+d.Received > 0 }

// String formats the delay in one line, with the mean and its 95 % interval.
func (d Delay) String() string {
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
	if q, ok := d.Quantile(0.99); ok && d.Err == nil {
		fmt.Fprintf(&b, ", p99 %s", Format(float64(q)))
	}
	if d.LossUnknown && d.Received > 0 {
		fmt.Fprintf(&b, ", received %d, loss not known yet", d.Received)
	} else if d.Sent+d.Received > 0 {
		fmt.Fprintf(&b, ", sent %d, lost %d (%.2f %%)", d.Sent, d.Lost, 100*d.Loss())
	}
	if d.Extra > 0 {
		fmt.Fprintf(&b, ", extra %d", d.Extra)
	}
	return b.String()
}

// String says briefly what is known about the clock.
func (c Clock) String() string {
	switch {
	case c.Agree:
		return "said to agree"
	case c.Known:
		return fmt.Sprintf("offset %s ± %s, drift %.3g ppm", Format(c.Offset), Format((c.Likely.High-c.Likely.Low)/2), 1e6*c.Drift)
	}
	return strings.TrimSuffix("not known: "+c.Why, ": ")
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

// MarshalJSON encodes the whole report. Durations and delays are in nanoseconds, and errors are text.
func (r Report) MarshalJSON() ([]byte, error) {
	type plain Report
	r.Err = inText(r.Err)
	return json.Marshal(plain(r))
}

// UnmarshalJSON decodes what MarshalJSON encoded. Errors keep their text, and
// [errors.Is] recognizes those that it names.
func (r *Report) UnmarshalJSON(data []byte) error {
	type plain Report
	var text told
	p := plain{Err: &text}
	err := json.Unmarshal(data, &p)
	if p.Err = inText(text); err == nil {
		*r = Report(p)
	}
	return err
}

// MarshalJSON encodes the whole delay, with its error as text.
func (d Delay) MarshalJSON() ([]byte, error) {
	type plain Delay
	d.Err = inText(d.Err)
	return json.Marshal(plain(d))
}

// UnmarshalJSON decodes what MarshalJSON encoded.
func (d *Delay) UnmarshalJSON(data []byte) error {
	type plain Delay
	var text told
	p := plain{Err: &text}
	err := json.Unmarshal(data, &p)
	if p.Err = inText(text); err == nil {
		*d = Delay(p)
	}
	return err
}

// told is the text of an error.
type told string

// Error returns the text.
func (t told) Error() string { return string(t) }

// Is reports whether the text names an error.
func (t told) Is(target error) bool { return strings.Contains(string(t), target.Error()) }

// inText returns an error as text, and nil for none.
func inText(err error) error {
	if err == nil || err.Error() == "" {
		return nil
	}
	return told(err.Error())
}
