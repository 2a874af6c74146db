package estimate

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// The errors that every synopsis returns, wrapped with what was wrong. Test for them with [errors.Is].
var (
	// ErrConfig means that a Config is out of range, and nothing was made.
	ErrConfig = errors.New("invalid configuration")
	// ErrMismatch means that two synopses cannot be compared or merged, because their Configs (sizes, widths or
	// identities) differ.
	ErrMismatch = errors.New("configurations differ")
	// ErrNoSamples means that the synopses hold nothing from which to answer, for example no usable cell.
	ErrNoSamples = errors.New("no usable samples")
	// ErrEncoding means that bytes are truncated, corrupt, or not of the expected kind. What they were to be
	// decoded into is unchanged.
	ErrEncoding = errors.New("invalid encoding")
	// ErrOrder means that an interval does not follow the one before.
	ErrOrder = errors.New("interval out of order")
	// ErrClocks means that a clock was set, so that delays have become negative or were negative before, or
	// that the points' cuts are so far apart that packets arrive before they are sent.
	ErrClocks = errors.New("the clocks do not agree")
)

// Invalid returns an error that says which field of a package's Config is wrong, what its value is, and what it
// may be.
//
//	lda: invalid configuration: Rows is 3, want a power of two from 1 to 16777216
//
// The error wraps [ErrConfig].
func Invalid(pkg, field string, got any, want string) error {
	return fmt.Errorf("%s: %w: %s is %v, want %s", pkg, ErrConfig, field, got, want)
}

// A Delay is an estimate of a distribution of one-way delays.
type Delay struct {
	Mean   float64 // nanoseconds; negative where the clocks are offset or the points swapped
	StdDev float64 // nanoseconds, of the delays of packets (not of the error of Mean)
	N      uint64  // effective sample size: how many packets the mean rests on
}

// An Interval is a confidence interval: it holds the true value with probability at least Confidence, under the
// assumptions that the function which made it states. These functions take the confidence, above 0 and below 1,
// and put half of the rest on either side. If nothing can be said (no samples, a confidence out of range) the
// interval is the whole range of the quantity, with Confidence 1. Its ends are never NaN.
type Interval struct {
	Low, High  float64 // of the value, in its unit; infinite where nothing bounds it
	Confidence float64 // 0 to 1
}

// Contains reports whether x is in the interval, ends included.
func (i Interval) Contains(x float64) bool {
	return i.Low <= x && x <= i.High
}

// Bounded reports whether both ends are finite.
func (i Interval) Bounded() bool { return finite(i.Low) && finite(i.High) }

// intervalJSON has null for an end that is infinite.
type intervalJSON struct {
	Low, High  *float64
	Confidence float64
}

// MarshalJSON encodes an infinite end, for which JSON has no number, as null.
func (i Interval) MarshalJSON() ([]byte, error) {
	j := intervalJSON{&i.Low, &i.High, i.Confidence}
	if !finite(i.Low) {
		j.Low = nil
	}
	if !finite(i.High) {
		j.High = nil
	}
	return json.Marshal(j)
}

// UnmarshalJSON decodes what MarshalJSON encoded. After an error i is unchanged.
func (i *Interval) UnmarshalJSON(data []byte) error {
	all := Interval{Low: math.Inf(-1), High: math.Inf(1)}
	j := intervalJSON{&all.Low, &all.High, 0}
	if err := json.Unmarshal(data, &j); err != nil {
		return fmt.Errorf("estimate: %w: %w", ErrEncoding, err)
	}
	*i = Interval{all.Low, all.High, j.Confidence}
	return nil
}
