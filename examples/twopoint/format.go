package main

import (
	"fmt"
	"math"
	"strconv"
)

// off formats how far a figure is from the truth.
func off(got, exact float64) string {
	switch share := math.Round(1e4*(got/exact-1)) / 100; {
	case math.IsNaN(share) || math.IsInf(share, 0):
		return ""
	case share == 0:
		return "0.00 %" // and not -0
	default:
		return fmt.Sprintf("%+.2f %%", share)
	}
}

// thousands formats a number with its digits in groups of three.
func thousands[N int | int64 | uint64 | float64](n N) string {
	s, sign := strconv.FormatInt(int64(n), 10), ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}
