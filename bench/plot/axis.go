package plot

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// A ruler is an axis with its layout: which numbers it covers and where they
// go.
type ruler struct {
	scale    Scale
	min, max float64
	from, to float64 // where min and max are, in pixels
	ticks    []tick
	minor    []float64 // lines between the ticks
}

type tick struct {
	at    float64
	label string
}

// drawable reports whether a number has a place on an axis of this scale.
func drawable(v float64, scale Scale) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (scale == Linear || v > 0)
}

// lay makes a ruler that covers the drawable values, or goes to the axis's own
// ends.
func lay(a *Axis, values []float64) ruler {
	r := ruler{scale: a.Scale, min: a.Min, max: a.Max}
	named := len(a.Categories) > 0
	switch {
	case a.Min != a.Max:
	case named:
		r.min, r.max = -0.5, float64(len(a.Categories))-0.5
	default:
		r.cover(values)
	}
	switch {
	case named:
		for i, c := range a.Categories {
			r.ticks = append(r.ticks, tick{at: float64(i), label: c})
		}
	case a.Scale == Log:
		r.logTicks()
	default:
		r.linearTicks()
	}
	return r
}

// cover finds ends that leave the values some room.
func (r *ruler) cover(values []float64) {
	if len(values) == 0 {
		r.min, r.max = 0.1, 1
		return
	}
	low, high := slices.Min(values), slices.Max(values)
	if r.scale == Log {
		low, high = math.Log10(low), math.Log10(high)
		room := max(0.04*(high-low), 0.02)
		if high == low {
			room = 0.5
		}
		// Far from 1 a power of ten may be out of the range of floats.
		r.min = max(math.Pow(10, low-room), math.SmallestNonzeroFloat64)
		r.max = min(math.Pow(10, high+room), math.MaxFloat64)
		return
	}
	// Values with next to no floats between them count as one.
	if high-low <= 1e-9*max(math.Abs(low), math.Abs(high)) {
		room := max(0.1*math.Abs(high), 1e-300)
		if high == 0 {
			room = 1
		}
		r.min, r.max = low-room, high+room
		return
	}
	if low > 0 && low < 0.4*high {
		low = 0
	}
	if high < 0 && high > 0.4*low {
		high = 0
	}
	r.min, r.max = low, high
	room := 0.04 * (high - low)
	if low != 0 {
		r.min -= room
	}
	if high != 0 {
		r.max += room
	}
}

// linearTicks puts four to nine ticks at round numbers.
func (r *ruler) linearTicks() {
	step, decimals := roundStep(r.max/8 - r.min/8)
	if step == 0 || math.IsInf(step, 0) {
		return
	}
	large := max(math.Abs(r.min), math.Abs(r.max))
	for k := math.Ceil(r.min/step - 1e-9); k*step <= r.max+1e-9*step && len(r.ticks) < 20; k++ {
		r.ticks = append(r.ticks, tick{at: k * step, label: label(k*step, decimals, large)})
	}
}

// roundStep returns the 1, 2 or 5 times a power of ten at or above x, and its
// number of decimals.
func roundStep(x float64) (step float64, decimals int) {
	power := math.Floor(math.Log10(x))
	base := math.Pow(10, power)
	step = 10 * base
	decimals = int(max(0, -power-1))
	for _, m := range []float64{1, 2, 5} {
		if m*base >= x*(1-1e-9) {
			step, decimals = m*base, int(max(0, -power))
			break
		}
	}
	return step, decimals
}

// logTicks puts ticks at powers of ten: at every one, or at some if there are
// too many; at 2 and 5 times them if there are few; and at round numbers if
// there is hardly one.
func (r *ruler) logTicks() {
	low, high := math.Log10(r.min), math.Log10(r.max)
	decades := high - low
	if decades < 0.8 {
		r.linearTicks()
		return
	}
	stride := math.Ceil(decades / 8)
	plain := low > -4.5 && high < 7.2
	for p := math.Floor(low); p <= math.Ceil(high); p++ {
		for m := 1.0; m < 10; m++ {
			v := m * math.Pow(10, p)
			switch {
			case v < r.min*(1-1e-9) || v > r.max*(1+1e-9):
			case m == 1 && math.Mod(p, stride) == 0, (m == 2 || m == 5) && decades < 2 && plain:
				text := "10" + raised.Replace(strconv.Itoa(int(p)))
				if plain {
					text = label(v, max(0, -int(p)), 1)
				}
				r.ticks = append(r.ticks, tick{v, text})
			case m > 1 && stride == 1 && decades < 5:
				r.minor = append(r.minor, v)
			}
		}
	}
}

var raised = strings.NewReplacer("-", "⁻", "0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶", "7", "⁷",
	"8", "⁸", "9", "⁹")

// label formats a tick with as many decimals as its axis needs or, if numbers
// on the axis are very large or small, with an exponent.
func label(v float64, decimals int, large float64) string {
	if v == 0 {
		return "0"
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if large >= 1e7 || decimals > 6 {
		s = strconv.FormatFloat(v, 'g', 3, 64)
	} else if whole, rest, _ := strings.Cut(s, "."); len(strings.TrimPrefix(whole, "-")) > 4 {
		s = Grouped(whole)
		if rest != "" {
			s += "." + rest
		}
	}
	return strings.ReplaceAll(s, "-", "−")
}

// Grouped puts commas between the thousands of a whole number.
func Grouped(digits string) string {
	for i := len(digits) - 3; i > 0 && digits[i-1] >= '0'; i -= 3 { // no sign, also of Inf
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// at returns where a drawable number goes, in pixels.
func (r *ruler) at(v float64) float64 {
	part := (v - r.min) / (r.max - r.min)
	if r.scale == Log {
		part = (math.Log(v) - math.Log(r.min)) / (math.Log(r.max) - math.Log(r.min))
	}
	return r.from + part*(r.to-r.from)
}

// inside reports whether a drawable number is within the axis's ends.
func (r *ruler) inside(v float64) bool { return v >= r.min && v <= r.max }
