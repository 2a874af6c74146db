package lda

import (
	"math/bits"

	"github.com/hoplag/hoplag/estimate"
)

// A Tuner chooses the sampling of the next interval by the losses of the last. It
// has no state and computes in integers, so that two points with equal Tuners
// derive the same Config from the same two numbers. Package control uses it.
type Tuner struct {
	// Config has everything but the shifts. It is used until losses are known.
	Config Config

	// Quantiles keeps the last bank thin, with about one packet to a cell,
	// whatever the losses.
	Quantiles bool
}

// congestion is the base-2 logarithm of one over the share of lost packets for
// which the deepest bank is tuned.
const congestion = 2

// Validate reports what is out of range. The error wraps [estimate.ErrConfig].
func (t *Tuner) Validate() error {
	if err := t.Config.Validate(); err != nil {
		return err
	}
	if t.Quantiles && t.Config.banks() < 2 {
		return estimate.Invalid("lda", "Quantiles", true, "false with one bank")
	}
	return nil
}

// Next returns the Config for the interval after one in which the given numbers of
// packets were sent and lost. It tunes the first bank to those losses, with an
// allowance for chance. It tunes the last bank that is not for quantiles to the
// loss of a quarter of the packets, so that the first interval of a congestion is
// not missed, and the banks in between by even powers of two. If the Tuner is not
// valid, Next returns its Config.
func (t Tuner) Next(sent, lost uint64) Config {
	c := t.Config
	if t.Validate() != nil {
		return c
	}
	// The deviation of a number of losses is about its root. One loss more
	// keeps an interval without losses from being taken for a promise.
	lost = min(lost, 1<<40)
	lost += 2*squareRoot(lost) + 1
	banks := c.banks()
	tuned := banks // without the one for quantiles
	if t.Quantiles {
		tuned--
	}
	span := bits.Len64(max(sent>>congestion, lost)) - bits.Len64(lost)
	deepest := MaxShift - c.DigestBits
	for j := range banks {
		rows := uint64(c.Banks[j].Rows)
		expected := sent
		if j < tuned {
			expected = lost << (span * j / max(1, tuned-1))
		}
		shift := powersAbove(expected, rows)
		if j > 0 {
			shift = max(shift, c.Banks[j-1].Shift+1)
		}
		c.Banks[j].Shift = min(shift, deepest-uint8(banks-1-j))
	}
	return c
}

// powersAbove returns the smallest s with rows·2^s ≥ n.
func powersAbove(n, rows uint64) uint8 {
	if n <= rows {
		return 0
	}
	return uint8(bits.Len64((n - 1) / rows))
}

// squareRoot returns the root of n, rounded up, by Newton's method.
func squareRoot(n uint64) uint64 {
	if n < 2 {
		return n
	}
	x := uint64(1) << ((bits.Len64(n) + 1) / 2) // not below the root
	for {
		y := (x + n/x) / 2
		if y >= x {
			if x*x < n {
				x++
			}
			return x
		}
		x = y
	}
}
