package paper

import (
	"fmt"
	"math"

	"github.com/hoplag/hoplag/estimate"
)

// Requirements are the inputs from which §5 derives parameters. Times are in
// time units.
type Requirements struct {
	MemoryBits  float64 // M: memory for counters, bits
	Reliability float64 // α: the probability with which Error holds, 0 to 1
	Error       float64 // β: the largest relative error of the mean, 0 to 1
	// DelayPart is (t_R − t_S)/(t_R + t_S) of eq. (12): the sum of a flow's
	// delays as a fraction of its time stamps at both points, above 0 and up
	// to 1. With real clocks it is tiny, which is what undoes the promise.
	DelayPart float64
	Least     float64 // t_min: the smallest sum of a flow's time stamps to allow for
	Most      float64 // t_max: the largest
}

// Parameters are the solution of §5.2. Bits and PerFlow are real numbers, as
// in the equations.
type Parameters struct {
	Counters  float64 // n
	Bits      float64 // b
	PerFlow   float64 // m
	Threshold float64 // T, time units
}

// TimeError returns B, eq. (12): the largest relative error of the sum of time
// stamps at one point.
func (r Requirements) TimeError() float64 { return r.Error * r.DelayPart }

// deviations returns k, eqs. (11) and (20).
func (r Requirements) deviations() float64 {
	return math.Sqrt2 * math.Erfinv((1+r.Reliability)/2)
}

func (r Requirements) validate() error {
	bad := func(field string, got float64, want string) error {
		return fmt.Errorf("paper: %w: %s is %g, want %s", estimate.ErrConfig, field, got, want)
	}
	inside := func(x, low, high float64) bool { return x > low && x < high }
	switch {
	case !inside(r.MemoryBits, 255, 1<<40):
		return bad("MemoryBits", r.MemoryBits, "256 to 2^40")
	case !inside(r.Reliability, 0, 1):
		return bad("Reliability", r.Reliability, "between 0 and 1")
	case !inside(r.Error, 0, 1):
		return bad("Error", r.Error, "between 0 and 1")
	case !(r.DelayPart > 0 && r.DelayPart <= 1):
		return bad("DelayPart", r.DelayPart, "over 0 and at most 1")
	case !inside(r.Least, 0, math.Inf(1)):
		return bad("Least", r.Least, "over 0")
	case !(r.Most >= r.Least && r.Most < 1<<60):
		return bad("Most", r.Most, "Least to 2^60")
	}
	return nil
}

// Solve solves eqs. (13), (14), (15) and (22) for the four parameters.
//
// Eq. (22) is taken with (n−m)², where the paper prints n−m: eq. (18) gives
// the square, and with n−m the paper's own example has no solution, because B
// would have to exceed β.
//
// By eqs. (14) and (15) m·T/n is close to t_max whatever n is. So eq. (22)
// says little more than B²t_min² = k²(t_min + t_max): for m from some ten to
// some thousand it varies by less than a hundredth, and changing t_min by a
// thousandth changes n by several hundredths. Solve finds the solution all the
// same, the largest n that meets the requirement; the inputs are hardly ever
// known that well.
//
// The error wraps [estimate.ErrConfig], also if no number of counters meets
// the requirement, or if every number does and eq. (22) has no solution.
func (r Requirements) Solve() (Parameters, error) {
	if err := r.validate(); err != nil {
		return Parameters{}, err
	}
	// From where 2 counters per flow would do, to where counters would have
	// fewer than 2 bits or a flow a tenth of all counters.
	low := r.search(1, r.MemoryBits, func(p Parameters) bool { return p.PerFlow >= 2 })
	high := r.search(low, r.MemoryBits, func(p Parameters) bool { return p.Bits < 2 || p.PerFlow > p.Counters/10 })
	unmet := func(p Parameters) bool { return r.excess(p) > 0 }
	switch {
	case unmet(r.parameters(low)):
		return Parameters{}, fmt.Errorf("paper: %w: no number of counters is accurate enough for flows as small as Least, %g: "+
			"at best the error is %.3g times what Error and DelayPart allow",
			estimate.ErrConfig, r.Least, math.Sqrt(1+r.excess(r.parameters(low))))
	case !unmet(r.parameters(high)):
		return Parameters{}, fmt.Errorf("paper: %w: every number of counters is accurate enough; Error, %g, or Least, %g, can be lower",
			estimate.ErrConfig, r.Error, r.Least)
	}
	return r.parameters(r.search(low, high, unmet)), nil
}

// search returns the number of counters, from low to high, at which ok begins
// to hold.
func (r Requirements) search(low, high float64, ok func(Parameters) bool) float64 {
	for range 100 {
		n := (low + high) / 2
		if ok(r.parameters(n)) {
			high = n
		} else {
			low = n
		}
	}
	return low
}

// parameters returns the parameters for a number of counters.
func (r Requirements) parameters(counters float64) Parameters {
	bits := r.MemoryBits / counters                  // eq. (13)
	average := math.Exp2(min(bits, 1000) - 1)        // T/n, by eq. (14)
	perFlow := 1 / (1/counters + (average-1)/r.Most) // eq. (15), with 2^b twice the average
	return Parameters{Counters: counters, Bits: bits, PerFlow: perFlow, Threshold: average * counters}
}

// excess returns the relative amount by which the left-hand side of eq. (22)
// falls short of the right: the square of what the requirement is missed by.
func (r Requirements) excess(p Parameters) float64 {
	n, m, k, b := p.Counters, p.PerFlow, r.deviations(), r.TimeError()
	right := k * k * n * n * m / ((n - m) * (n - m)) * unitVariance(r.Least, p.Threshold, n, m)
	return right/(b*b*r.Least*r.Least) - 1
}

// Rounded returns c with the parameters in whole numbers: n down, b up, T
// down, m to the nearest even number. It takes n·⌈b⌉ bits, up to n more than
// requested. The time stamps are as wide as possible without a flow's packet
// filling its counter: a quarter of it.
func (p Parameters) Rounded(c Config) (Config, error) {
	c.Counters = int(min(p.Counters, MaxCounters+1))
	c.Bits = uint8(min(math.Ceil(p.Bits), MaxBits+1))
	c.PerFlow = 2 * int(math.Round(min(p.PerFlow, 2*MaxPerFlow)/2))
	c.Threshold = uint64(min(p.Threshold, 1<<63))
	c.TimeBits = max(c.Bits, 3) - 2
	return c, c.Validate()
}

// BitsPerPacket returns the bits that a store takes per packet for the given
// mean time stamp, in units: an epoch of n·b bits ends when the stamps of its
// packets add up to T.
func (p Parameters) BitsPerPacket(meanStamp float64) float64 {
	return p.Counters * p.Bits * meanStamp / p.Threshold
}
