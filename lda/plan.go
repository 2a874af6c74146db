package lda

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hoplag/hoplag/estimate"
)

// A Demand describes the traffic to expect and what you want to know of it.
type Demand struct {
	Packets           float64 // in an interval: 1 to 10^12
	LowLoss, HighLoss float64 // the range of loss rates, 0 ≤ LowLoss ≤ HighLoss ≤ 0.9

	// Burst is the average number of packets lost one after another: 0 or 1 if
	// they are lost independently. The longer bursts are, the more the number of
	// lost packets varies from interval to interval.
	Burst float64

	// MeanError is the greatest half width of the interval of the mean delay
	// that you accept at any of these loss rates, relative to the mean, with the
	// given Confidence (see [Result.CentralLimitInterval]). Variation is the
	// deviation of the delays divided by their mean, as far as you know: 1 for
	// exponential delays, 1.8 for Weibull delays of shape 0.6.
	MeanError  float64 // over 0
	Confidence float64 // 0.5 up to but not including 1
	Variation  float64 // over 0

	// Share is the share of the intervals that must meet that, 0.5 up to but not
	// including 1. 0.5 is about the average interval. 0 stands for 0.95.
	Share float64

	// GreatestDelay is the longest delay to expect, in nanoseconds, including the
	// offset of the clocks. It decides how wide sums are. 0 stands for any delay.
	GreatestDelay float64

	Banks     int  // number of banks, 1 to 4 including the one for quantiles; 0 for the best number
	Quantiles bool // add a thin bank that gives quantiles
}

// A Forecast is a Config and what to expect of it.
type Forecast struct {
	Demand Demand
	Config Config

	// Expect is what the demanded share of intervals gives at least, at loss
	// rates that rise from LowLoss to HighLoss.
	Expect []Expectation
}

const (
	planRows  = 16   // fewest rows of a planned bank
	thinRows  = 2048 // 700 samples and more: a p99 takes 368
	lossSteps = 9    // loss rates at which a plan is judged
)

// Plan chooses banks, rows and sampling that meet a demand with the fewest cells.
// Of the ways to use that many cells, it takes the best at its worst loss rate:
// the one whose effective sample is the greatest share of what a single bank of
// all cells, made for that loss rate, would give. The Config has identity 0 and
// digests of 16 bits; set them as you like.
//
// The error wraps [estimate.ErrConfig], also if no Config can meet the demand.
func Plan(d Demand) (Forecast, error) {
	if err := d.validate(); err != nil {
		return Forecast{}, err
	}
	if d.Share == 0 {
		d.Share = 0.95
	}
	d.Burst = max(d.Burst, 1)
	losses := d.losses()
	for rows := planRows; rows <= 1<<20; rows *= 2 {
		c, ok := d.choose(rows, losses)
		if !ok {
			continue
		}
		c.SumBits = d.sumBits(&c)
		f := Forecast{Demand: d, Config: c}
		for _, loss := range losses {
			f.Expect = append(f.Expect, d.atLeast(&c, loss, estimate.NormalQuantile(d.Share)))
		}
		return f, nil
	}
	return Forecast{}, fmt.Errorf("lda: %w: MeanError is %v, not within reach at Packets %v, HighLoss %v, Variation %v",
		estimate.ErrConfig, d.MeanError, d.Packets, d.HighLoss, d.Variation)
}

// atLeast returns what the demanded share of intervals gives at a loss rate:
// the number of lost packets, and with it that of spoilt cells, is high, and
// the cells that survive are few, by z standard deviations.
func (d *Demand) atLeast(c *Config, loss, z float64) Expectation {
	lost := d.Packets * loss
	lost = min(lost+z*math.Sqrt(lost*(2*d.Burst-1)), d.Packets)
	e := c.Expect(d.Packets, lost/d.Packets)
	received := d.Packets - lost
	var sample, usable float64 // variances
	for j, b := range c.Banks[:c.banks()] {
		m, density := float64(b.Rows), c.rate(j)*received/float64(b.Rows)
		unspoilt := math.Exp(lost * max(math.Log1p(-c.rate(j)/m), -math.MaxFloat64))
		sample += m * unspoilt * ((1-unspoilt)*density*density + density*(1-c.rate(j)))
		used := unspoilt * -math.Expm1(-density)
		usable += m * used * (1 - used)
	}
	e.Loss = loss
	e.Sample = max(0, e.Sample-z*math.Sqrt(sample))
	e.Usable = max(0, e.Usable-z*math.Sqrt(usable))
	e.surely = z
	return e
}

// sumBits returns the smallest number of whole bytes in which the sums of the
// sparsest bank's cells do not wrap, and in which no sum of the fullest is nearly
// half a wrap from what the mean makes expect: those are unwrapped with its help.
// Half the greatest delay is the greatest deviation that there can be.
func (d *Demand) sumBits(c *Config) uint8 {
	if d.GreatestDelay == 0 {
		return 64
	}
	least, most := math.Inf(1), 0.0
	for j, b := range c.Banks[:c.banks()] {
		n := c.rate(j) * d.Packets / float64(b.Rows)
		n = max(1, n+3*math.Sqrt(n))
		least, most = min(least, n), max(most, n)
	}
	const chance = 6 // deviations
	needed := math.Log2(d.GreatestDelay) + max(math.Log2(least)+2, math.Log2(chance/2*math.Sqrt(most))+2)
	return uint8(min(64, 8*math.Ceil(needed/8)))
}

func (d *Demand) validate() error {
	most := MaxBanks
	if d.Quantiles {
		most--
	}
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
		{"Share", d.Share, d.Share == 0 || d.Share >= 0.5 && d.Share < 1, "0, or 0.5 up to but not including 1"},
		{"GreatestDelay", d.GreatestDelay, d.GreatestDelay >= 0 && d.GreatestDelay < 1<<62, "0 up to but not including 2^62"},
		{"Variation", d.Variation, d.Variation > 0 && d.Variation < math.Inf(1), "over 0"},
		{"Banks", float64(d.Banks), d.Banks >= 0 && d.Banks <= most, fmt.Sprintf("0 to %d beside that for quantiles", most)},
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

// choose returns the best use of a number of rows, if one meets the demand.
func (d *Demand) choose(rows int, losses []float64) (Config, bool) {
	most := MaxBanks
	if d.Quantiles {
		most--
	}
	best, bestShare := Config{}, -1.0
	z := estimate.NormalQuantile(d.Share)
	ideal := make([]float64, len(losses)) // for all rows in one bank, made for the loss
	for i, loss := range losses {
		c := Config{Banks: [MaxBanks]Bank{{Rows: rows, Shift: ShiftFor(rows, loss*d.Packets)}}}
		ideal[i] = c.Expect(d.Packets, loss).Sample
	}
	for _, split := range splits(rows) {
		banks := len(split)
		if d.Banks > 0 && banks != d.Banks || banks > most {
			continue
		}
		deepest := ShiftFor(split[banks-1], d.HighLoss*d.Packets) + 2
		eachShifts(banks, min(deepest, MaxShift-16), func(shifts []uint8) {
			c := Config{SumBits: 64, DigestBits: 16}
			for j := range split {
				c.Banks[j] = Bank{Rows: split[j], Shift: shifts[j]}
			}
			if d.Quantiles && !d.addThin(&c, banks) {
				return
			}
			share := math.Inf(1)
			for i, loss := range slices.Backward(losses) { // most fail at the highest
				e := d.atLeast(&c, loss, z)
				if e.MeanError(d.Variation, d.Confidence) > d.MeanError {
					return
				}
				share = min(share, e.Sample/ideal[i])
			}
			// Use more banks only for a gain that is worth it.
			if share > bestShare*1.01 {
				best, bestShare = c, share
			}
		})
	}
	return best, bestShare > 0
}

// addThin adds the bank for quantiles, with about one packet a cell.
func (d *Demand) addThin(c *Config, banks int) bool {
	shift := uint8(max(0, math.Round(math.Log2(d.Packets/thinRows))))
	c.Banks[banks] = Bank{Rows: thinRows, Shift: shift}
	return shift > c.Banks[banks-1].Shift && shift <= MaxShift-c.DigestBits
}

// splits returns the ways to divide rows among one to four banks, each a power
// of two: equal ones, and for three banks those with one twice as large.
func splits(rows int) [][]int {
	half, quarter := rows/2, rows/4
	return [][]int{
		{rows},
		{half, half},
		{half, quarter, quarter}, {quarter, half, quarter}, {quarter, quarter, half},
		{quarter, quarter, quarter, quarter},
	}
}

// eachShifts calls f with all ascending sequences of n shifts up to last. f
// must not keep its argument.
func eachShifts(n int, last uint8, f func([]uint8)) {
	shifts := make([]uint8, n)
	var choose func(j int, from uint8)
	choose = func(j int, from uint8) {
		if j == n {
			f(shifts)
			return
		}
		for s := from; s <= last; s++ {
			shifts[j] = s
			choose(j+1, s+1)
		}
	}
	choose(0, 0)
}

// String describes the forecast, with a line for each loss rate.
func (p Forecast) String() string {
	var s strings.Builder
	c := &p.Config
	fmt.Fprintf(&s, "%.4g packets an interval, losses %.4g to %.4g %%\n", p.Demand.Packets, 100*p.Demand.LowLoss, 100*p.Demand.HighLoss)
	for j, b := range c.Banks[:c.banks()] {
		fmt.Fprintf(&s, "bank %d: %d cells, 1 packet in %.4g\n", j+1, b.Rows, 1/c.rate(j))
	}
	fmt.Fprintf(&s, "%d bytes in memory, %d on the wire\n\n", c.MemorySize(), c.EncodedSize())
	fmt.Fprintf(&s, "in %.4g %% of intervals at least\n", 100*p.Demand.Share)
	fmt.Fprintf(&s, "%10s %12s %8s %14s %14s %10s\n", "loss", "sample", "cells",
		fmt.Sprintf("mean ±, %.4g %%", 100*p.Demand.Confidence), "deviation ±", "alone")
	for _, e := range p.Expect {
		fmt.Fprintf(&s, "%8.4g %% %12.0f %8.0f %12.3g %% %12.3g %% %10.0f\n", 100*e.Loss, e.Sample, e.Usable,
			100*e.MeanError(p.Demand.Variation, p.Demand.Confidence), 100*e.DeviationError(), e.Alone)
	}
	return s.String()
}
