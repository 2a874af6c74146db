package lda

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// A Demand describes the traffic to expect in an interval whose ends no packet crosses, and what you want to
// know of it. For an [Accumulator], some bank must have more rows than packets that it samples are on their way
// at once.
type Demand struct {
	Packets           float64 // in an interval: 1 to 10^12
	LowLoss, HighLoss float64 // the range of loss rates, 0 ≤ LowLoss ≤ HighLoss ≤ 0.9

	// Burst is the average number of packets lost one after another: 0 or 1 if they are lost independently. The
	// longer bursts are, the more the number of lost packets varies from interval to interval.
	Burst float64

	// MeanError is the greatest half width of the interval of the mean delay that you accept at any of these
	// loss rates, relative to the mean, with the given Confidence, by the central limit theorem. Variation is
	// the deviation of the delays divided by their mean, as far as you know it: 1 for exponential delays, 1.8
	// for Weibull delays of shape 0.6.
	MeanError  float64 // over 0
	Confidence float64 // 0.5 up to but not including 1
	Variation  float64 // over 0

	Quantiles bool // add a thin bank that gives quantiles
}

const (
	planRows  = 16   // fewest rows of a planned bank
	thinRows  = 2048 // 700 samples and more: a p99 takes 368
	lossSteps = 9    // loss rates at which a plan is judged

	// keptBy is how many standard deviations intervals may be below the average: 95 of 100
	// keep a plan's promise.
	keptBy = 1.6448536
)

// splits are the ways to divide rows among banks, as powers of two.
var splits = [][]int{{0}, {1, 1}, {1, 2, 2}, {2, 2, 2, 2}}

// Plan chooses banks, rows and sampling that meet a demand in 95 of 100 intervals with the fewest cells. Of the
// ways to use that many cells, it takes the one whose mean is sharpest at its worst loss rate. The Config has
// Identity 0, sums of 64 bits and digests of 16; change these as you like. [Result.MeanInterval], which also
// allows for rare slow packets that were not seen, is wider than MeanError, several times where few packets are
// seen. The Expectations are what at least 95 of 100 intervals give, at loss rates that rise from LowLoss to
// HighLoss.
//
// The error wraps [estimate.ErrConfig], also if no Config can meet the demand.
func Plan(d Demand) (c Config, expect []Expectation, err error) {
	if err := d.validate(); err != nil {
		return c, nil, err
	}
	d.Burst = max(d.Burst, 1)
	for rows := planRows; rows <= 1<<20; rows *= 2 {
		least := d.MeanError
		for _, split := range splits {
			if planned, all, worst := d.forecast(rows, split); worst <= least {
				c, expect, least = planned, all, 0.99*worst // more banks must be worth it
			}
		}
		if expect != nil {
			return c, expect, nil
		}
	}
	const reach = "lda: %w: MeanError is %v, not within reach at Packets %v, HighLoss %v, Variation %v, Quantiles %v"
	return c, nil, fmt.Errorf(reach, estimate.ErrConfig, d.MeanError, d.Packets, d.HighLoss, d.Variation, d.Quantiles)
}

// forecast divides rows among banks that are tuned to losses from the lowest to the
// highest, and returns what to expect, with the greatest error of the mean.
func (d *Demand) forecast(rows int, split []int) (c Config, expect []Expectation, worst float64) {
	n, losses := len(split), d.losses()
	c = Config{SumBits: 64, DigestBits: 16}
	for j, by := range split {
		c.Banks[j].Rows = rows >> by
	}
	low := losses[min(1, len(losses)-1)]
	if n == 1 {
		low = d.HighLoss
	}
	c.tune(n, low*d.Packets, d.HighLoss*d.Packets)
	if d.Quantiles && (n == MaxBanks || !d.addThin(&c, n)) || c.Banks[n-1].Shift > maxShift-c.DigestBits {
		return c, nil, math.Inf(1)
	}
	for _, loss := range losses {
		e := d.atLeast(&c, loss)
		expect = append(expect, e)
		worst = max(worst, e.MeanError(d.Variation, d.Confidence))
	}
	return c, expect, worst
}

// tune tunes the first n banks to numbers of lost packets from low to high, each to
// as many times more than the one before.
func (c *Config) tune(n int, low, high float64) {
	low = max(low, 1)
	for j := range n {
		lost := low * math.Pow(max(1, high/low), float64(j)/float64(max(1, n-1)))
		c.Banks[j].Shift = shiftFor(c.Banks[j].Rows, lost)
		if j > 0 {
			c.Banks[j].Shift = max(c.Banks[j].Shift, c.Banks[j-1].Shift+1)
		}
	}
}

// shiftFor returns the sampling shift that gives a bank of the given rows the greatest effective sample when
// lost packets are lost: p = m/L, or the nearest power of two below, which costs little of the sample, gains
// usable cells, and errs on the side that does less harm.
func shiftFor(rows int, lost float64) (shift uint8) {
	for shift < maxShift && math.Ldexp(1, -int(shift)) > float64(rows)/lost {
		shift++
	}
	return shift
}

// atLeast returns what the demanded share of intervals gives at a loss rate: the number
// of lost packets, and with it that of spoilt cells, is high by as many standard deviations.
func (d *Demand) atLeast(c *Config, loss float64) Expectation {
	lost := d.Packets * loss
	lost = min(lost+keptBy*math.Sqrt(lost*(2*d.Burst-1)), d.Packets)
	e := c.expect(d.Packets, lost/d.Packets, keptBy)
	e.Loss = loss
	return e
}

func (d *Demand) validate() error {
	for _, f := range []struct {
		name string
		got  float64
		ok   bool
		want string
	}{
		{"Packets", d.Packets, d.Packets >= 1 && d.Packets <= 1e12, "1 to 1e12"},
		{"HighLoss", d.HighLoss, d.HighLoss >= 0 && d.HighLoss <= 0.9, "0 to 0.9"},
		{"LowLoss", d.LowLoss, d.LowLoss >= 0 && d.LowLoss <= d.HighLoss, "0 to HighLoss"},
		{"MeanError", d.MeanError, d.MeanError > 0, "over 0"},
		{"Confidence", d.Confidence, d.Confidence >= 0.5 && d.Confidence < 1, "0.5 up to but not including 1"},
		{"Burst", d.Burst, d.Burst == 0 || d.Burst >= 1 && d.Burst <= d.Packets, "0, or 1 to Packets"},
		{"Variation", d.Variation, d.Variation > 0 && d.Variation < math.Inf(1), "over 0"},
	} {
		if !f.ok {
			return estimate.Invalid("lda", f.name, f.got, f.want)
		}
	}
	return nil
}

// losses returns loss rates spread evenly over the logarithm of the range. If
// LowLoss is 0, it stands for less than one packet.
func (d *Demand) losses() []float64 {
	if d.LowLoss == d.HighLoss {
		return []float64{d.HighLoss}
	}
	low := max(d.LowLoss, min(1/d.Packets, d.HighLoss/2))
	var all []float64
	for i := range lossSteps {
		all = append(all, low*math.Pow(d.HighLoss/low, float64(i)/(lossSteps-1)))
	}
	all[0], all[lossSteps-1] = d.LowLoss, d.HighLoss
	return all
}

// addThin adds the bank for quantiles, with about one packet a cell. Where hardly as many pass
// as it has rows, it takes half of what the bank before it would.
func (d *Demand) addThin(c *Config, banks int) bool {
	least := c.Banks[banks-1].Shift + 1
	shift := uint8(max(0, math.Round(math.Log2(d.Packets/thinRows))))
	if d.Packets < 2*thinRows {
		shift = max(shift, least)
	}
	c.Banks[banks] = Bank{Rows: thinRows, Shift: shift}
	return shift >= least && shift <= maxShift-c.DigestBits
}
