package hoplag

import (
	"errors"
	"math"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/lda"
)

// ErrIdle: no packet passed in the interval.
var ErrIdle = errors.New("no packets")

// A Report says how packets got on between two points in one interval.
// Intervals are reported in order and once each.
type Report struct {
	Number int64         // of the interval: Start in units of Length
	Start  time.Time     // by the clock of the point that reports
	Length time.Duration // Config.Report
	From   string        // Config.Name of the first point, as far as it is known
	To     string        // and of the second

	Forth Delay // of packets that passed the first point and then the second
	Back  Delay // of those that passed the second and then the first, as Back.Passed said
	Clock Clock // of the first point, as the second one's clock sees it

	// Begins tells that one of the points began anew in this interval: it was
	// started, its clock was stepped, or it was out of reach for longer than
	// its Config.History; or ten cuts before. What was on its way then is not
	// counted, and Lost and Extra are 0 because they are not known.
	Begins bool

	// Err tells that the interval could not be compared, or not wholly:
	// [ErrSilent], or why the first point cannot be reached. The rest is of
	// what could be compared; what comes late counts for a later interval.
	Err error
}

// A Delay is the one-way delay of the packets of one direction. Numbers are in
// nanoseconds; [Delay.MeanDuration] and the like have them as time.Duration.
type Delay struct {
	// Result has the mean and the deviation of the delays of the packets that
	// were received, and what passed: Sent and Received count what passed the
	// point that comes first, and the other one, in the interval; packets on
	// their way at its ends are in one of them only. Lost is how many were
	// found missing in the interval: when others had overtaken them for sure,
	// or eight cuts later. What is taken for lost and comes still is Extra,
	// as duplicates are.
	//
	// Where Clock.Known, the clocks' difference has been taken off.
	lda.Result

	// MeanInterval95 and DeviationInterval95 hold the mean and the deviation
	// in at least 95 of 100 reports. What the clocks add is not in them.
	// [Delay.MeanInterval] gives it for another confidence.
	MeanInterval95, DeviationInterval95 estimate.Interval

	// Edge is by how many nanoseconds the mean may be off because packets
	// that were received close to an end of the interval may count in the one
	// before or after. It is in the intervals.
	Edge float64

	// ClockInterval is where the mean is for sure, whatever the delays of the
	// two directions, were it not for the sampling. It is empty where the
	// clocks are not known.
	ClockInterval estimate.Interval

	Quantiles []lda.Quantile // of p50, p90 and p99, those that are known

	// Flows are the delays of the flows that passed the second point, with
	// Config.Flows, the slowest first; UnknownFlows is how many of them the
	// counters do not tell from the rest.
	Flows        []FlowDelay `json:",omitempty"`
	UnknownFlows int         `json:",omitempty"`

	// Err is nil where there is a mean. Else it is [ErrIdle], wraps
	// [estimate.ErrNoSamples], or says what is wrong.
	Err error
}

// MeanDuration is the mean.
func (d *Delay) MeanDuration() time.Duration { return duration(d.Mean) }

// StdDevDuration is the standard deviation.
func (d *Delay) StdDevDuration() time.Duration { return duration(d.StdDev) }

// MeanInterval is the interval of the mean, of [lda.Result.MeanInterval] and
// for what crossed the ends of the interval.
func (d *Delay) MeanInterval(confidence float64) estimate.Interval {
	i := d.Result.MeanInterval(confidence)
	i.Low -= d.Edge
	i.High += d.Edge
	return i
}

// Quantile returns the quantile of a share, and whether it is known.
func (d *Delay) Quantile(share float64) (time.Duration, bool) {
	for _, q := range d.Quantiles {
		if q.P == share {
			return duration(q.Delay), true
		}
	}
	return 0, false
}

func duration(ns float64) time.Duration { return time.Duration(ns) }

// A Clock says what is known of the difference of two points' clocks.
type Clock struct {
	// Known tells that packets were measured both ways, and that delays are
	// corrected by Offset and Drift. Without that a mean is off by as much as
	// the clocks are apart.
	Known bool

	Offset    float64           // nanoseconds that the first point's clock is ahead of the second's
	Drift     float64           // how much faster it runs: 3e-5 is 30 ppm
	Certain   estimate.Interval // of the offset, whatever the delays were
	Likely    estimate.Interval // of the offset, if the least delays of both directions are equal
	RoundTrip float64           // nanoseconds: the shortest that was seen
	Stepped   bool              // the clock stepped in this interval

	// Apart is by how much the second point's clock is ahead, as far as the
	// transport between the points tells: to about the time that it takes.
	Apart time.Duration
}

func (c *Clock) set(r clock.Reading) {
	c.Known = true
	c.Offset, c.Drift = r.Offset, r.Drift
	c.Certain, c.Likely = r.Certain, r.Likely
	c.RoundTrip, c.Stepped = r.RoundTrip, r.Stepped
}

// correct takes the clocks' difference off. The packets are taken to be spread
// evenly over the interval.
func (d *Delay) correct(r clock.Reading, length time.Duration) {
	const evenly = 0.28867513459481287 // 1/√12
	if d.Err != nil {
		return
	}
	c := r.Correct(d.Delay, evenly*float64(length))
	d.Delay, d.ClockInterval = c.Delay, c.Certain
	// The reading is of the interval's middle, and all packets may have come
	// at one of its ends.
	ends := math.Abs(r.Drift) * float64(length) / 2
	d.ClockInterval.Low -= ends
	d.ClockInterval.High += ends
	for i := range d.Quantiles {
		q := &d.Quantiles[i]
		q.Delay -= r.Offset
		q.Interval = r.Shift(q.Interval)
	}
	for i := range d.Flows {
		f := &d.Flows[i]
		f.Mean -= r.Offset
		f.MeanInterval95 = r.Shift(f.MeanInterval95)
	}
}
