package experiment

import (
	"math"
	"strconv"
)

// Number formats x with three significant digits.
func Number(x float64) string {
	if x >= 1000 || x <= -1000 {
		return Grouped(strconv.FormatFloat(x, 'f', 0, 64))
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// Grouped puts commas between the thousands of a whole number.
func Grouped(digits string) string {
	for i := len(digits) - 3; i > 0 && digits[i-1] >= '0'; i -= 3 { // no sign, also of Inf
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Percent formats a fraction as a percentage, with two significant digits. It
// returns a dash for NaN, and 0 if only rounding errors are left.
func Percent(x float64) string {
	switch {
	case math.IsNaN(x):
		return "-"
	case math.Abs(x) < 1e-9:
		x = 0
	}
	if x >= 0.1 || x <= -0.1 {
		return Grouped(strconv.FormatFloat(100*x, 'f', 0, 64)) + " %"
	}
	return strconv.FormatFloat(100*x, 'g', 2, 64) + " %"
}

// Duration formats nanoseconds in the unit that suits them.
func Duration(ns float64) string {
	switch size := math.Abs(ns); {
	case size < 1e3:
		return Number(ns) + " ns"
	case size < 1e6:
		return Number(ns/1e3) + " µs"
	case size < 1e9:
		return Number(ns/1e6) + " ms"
	}
	return Number(ns/1e9) + " s"
}
