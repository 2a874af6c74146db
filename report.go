package hoplag

import (
	"errors"
	"math"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/lda"
)

// ErrIdle says that no packet passed in the interval.
var ErrIdle = errors.New("no packets")

// A Report says what happened to packets between two points in one interval.
// Each interval is reported once, in order.
type Report struct {
	Number int64         // of the interval: Start in units of Length
	Start  time.Time     // by the clock of the point that reports
	Length time.Duration // Config.Report
	From   string        // Config.Name of the first point, as far as it is known
	To     string        // and of the second
	Class  string        `json:",omitempty"` // Config.Class of the point that reports

	Forth Delay // of packets that passed the first point and then the second
	Back  Delay // of those that passed the second and then the first, as Back.Passed said
	Clock Clock // of the first point, as the second one's clock sees it

	// Begins says that a point began anew in this interval or up to ten cuts
	// before: it was started, its clock was stepped, or it was unreachable for
	// longer than its Config.History. Packets on their way then are not
	// counted. Lost and Extra are unknown, and 0.
	Begins bool

	// Err says why the interval could not be compared, or not completely:
	// [ErrSilent], or why the first point cannot be reached. The rest of the
	// report covers what could be compared; what comes late counts in a later
	// interval.
	Err error
}

// A Delay is the one-way delay of the packets of one direction. Numbers are in
// nanoseconds; [Delay.MeanDuration] and similar methods return a time.Duration.
type Delay struct {
	// Result has the mean and the deviation of the delays of the packets
	// received. Sent and Received count what passed the first and the second
	// point in the interval; packets on their way at its ends are in only one
	// of them. Lost counts the packets found missing in the interval: once
	// others have certainly overtaken them, or eight cuts later. A packet that
	// counted as lost and still comes is Extra, as duplicates are.
	//
	// If Clock.Known, delays are corrected for the clocks' difference.
	lda.Result

	// MeanInterval95 and DeviationInterval95 hold the mean and the deviation in at
	// least 95 of 100 reports, apart from what the clocks add.
	// [Delay.MeanInterval] is for other confidences.
	MeanInterval95, DeviationInterval95 estimate.Interval

	// Edge is how many nanoseconds the mean may be off because packets
	// received close to an end of the interval may count in its neighbour. The
	// intervals include it.
	Edge float64

	// ClockInterval is where the clocks allow the mean to be, whatever the delays
	// of the two directions, apart from sampling. It is empty if the clocks are
	// not known.
	ClockInterval estimate.Interval

	Quantiles []lda.Quantile // p50, p90 and p99, if known

	// Flows holds the delays of the flows that passed the second point,
	// slowest first, if Config.Flows is set. UnknownFlows is the number of
	// flows that the counters could not tell from the rest.
	Flows        []FlowDelay `json:",omitempty"`
	UnknownFlows int         `json:",omitempty"`

	// Err is nil if there is a mean. Otherwise it is [ErrIdle], wraps
	// [estimate.ErrNoSamples], or says what is wrong.
	Err error
}

// MeanDuration returns the mean.
func (d *Delay) MeanDuration() time.Duration { return duration(d.Mean) }

// StdDevDuration returns the standard deviation.
func (d *Delay) StdDevDuration() time.Duration { return duration(d.StdDev) }

// MeanInterval returns [lda.Result.MeanInterval], widened for packets that
// crossed the ends of the interval.
func (d *Delay) MeanInterval(confidence float64) estimate.Interval {
	i := d.Result.MeanInterval(confidence)
	i.Low -= d.Edge
	i.High += d.Edge
	return i
}

// Quantile returns the quantile for a share, and whether it is known.
func (d *Delay) Quantile(share float64) (time.Duration, bool) {
	for _, q := range d.Quantiles {
		if q.P == share {
			return duration(q.Delay), true
		}
	}
	return 0, false
}

func duration(ns float64) time.Duration { return time.Duration(ns) }

// A Clock describes the difference between two points' clocks.
type Clock struct {
	// Known says that packets were measured both ways and that delays are
	// corrected by Offset and Drift. Otherwise a mean is off by the difference of
	// the clocks.
	Known bool

	Offset    float64           // nanoseconds by which the first point's clock is ahead of the second's
	Drift     float64           // how much faster it runs: 3e-5 is 30 ppm
	Certain   estimate.Interval // interval of the offset, whatever the delays were
	Likely    estimate.Interval // interval of the offset if the smallest delays of both directions are equal
	RoundTrip float64           // nanoseconds: the shortest seen
	Stepped   bool              // the clock stepped in this interval

	// Apart is how far the second point's clock is ahead, as far as the
	// transport between the points shows: give or take the time that it takes.
	Apart time.Duration
}

func (c *Clock) set(r clock.Reading) {
	c.Known = true
	c.Offset, c.Drift = r.Offset, r.Drift
	c.Certain, c.Likely = r.Certain, r.Likely
	c.RoundTrip, c.Stepped = r.RoundTrip, r.Stepped
}

// correct subtracts the clocks' difference. It assumes that the packets are
// spread evenly over the interval.
func (d *Delay) correct(r clock.Reading, length time.Duration) {
	const evenly = 0.28867513459481287 // 1/√12
	if d.Err != nil {
		return
	}
	c := r.Correct(d.Delay, evenly*float64(length))
	d.Delay, d.ClockInterval = c.Delay, c.Certain
	// The reading is for the interval's middle, and all packets may have come
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
