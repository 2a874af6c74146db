package hoplag

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/hoplag/hoplag/estimate"
)

// String formats the report in one line:
//
//	a → b  39.14 ms (38.92 ms to 39.40 ms), deviation 27.75 ms, p50 31.20 ms, p90 75.31 ms, sent 7830, lost 370 (4.73 %); clocks: not known
//
// If packets repeat or the mean is in doubt, it says how many and by how much:
// see [lda.Repeats] and MeanDoubt of [lda.Result].
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s → %s  %v", name(r.From), name(r.To), r.Forth)
	if !errors.Is(r.Back.Err, ErrIdle) {
		fmt.Fprintf(&b, "; back %v", r.Back)
	}
	fmt.Fprintf(&b, "; clocks: %v", r.Clock)
	if r.Begins {
		b.WriteString("; begins anew")
	}
	if r.Err != nil {
		fmt.Fprintf(&b, "; %v", r.Err)
	}
	return b.String()
}

func name(s string) string {
	if s == "" {
		return "?"
	}
	return s
}

// String formats the delay in one line, with the mean and its 95 % interval.
func (d Delay) String() string {
	var b strings.Builder
	if d.Err != nil {
		b.WriteString(d.Err.Error())
	} else {
		i := d.MeanInterval95
		fmt.Fprintf(&b, "%s (%s to %s), deviation %s", Format(d.Mean), Format(i.Low), Format(i.High), Format(d.StdDev))
		if d.MeanDoubt > 0 {
			fmt.Fprintf(&b, ", doubt %s", Format(d.MeanDoubt))
		}
		for _, q := range d.Quantiles {
			fmt.Fprintf(&b, ", p%g %s", 100*q.P, Format(q.Delay))
		}
	}
	if d.Sent+d.Received > 0 {
		fmt.Fprintf(&b, ", sent %d, lost %d (%.2f %%)", d.Sent, d.Lost, 100*d.Loss())
	}
	if d.Extra > 0 {
		fmt.Fprintf(&b, ", extra %d", d.Extra)
	}
	if d.Repeats.Packets > 0 {
		fmt.Fprintf(&b, ", repeated %d", d.Repeats.Packets)
	}
	return b.String()
}

// String says briefly what is known about the clock.
func (c Clock) String() string {
	if !c.Known {
		if c.Apart.Abs() > 100*time.Millisecond {
			return fmt.Sprintf("not known, about %v apart", c.Apart.Round(10*time.Millisecond))
		}
		return "not known"
	}
	return fmt.Sprintf("offset %s ± %s, drift %.3g ppm", Format(c.Offset), Format(half(c.Likely)), 1e6*c.Drift)
}

func half(i estimate.Interval) float64 { return (i.High - i.Low) / 2 }

// Format formats nanoseconds with four digits and a unit, as in "39.14 ms".
func Format(ns float64) string {
	switch {
	case math.IsInf(ns, 1):
		return "∞"
	case math.IsInf(ns, -1):
		return "-∞"
	}
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}} {
		// A value that would round to 1,000 of a unit is 1 of the next.
		if math.Abs(ns) >= 0.99995*u.size {
			return digits(ns/u.size) + " " + u.name
		}
	}
	return digits(ns) + " ns"
}

// digits formats x with four significant digits, one of them before the point.
func digits(x float64) string {
	switch a := math.Abs(x); {
	case a >= 999.95:
		return fmt.Sprintf("%.0f", x)
	case a >= 99.995:
		return fmt.Sprintf("%.1f", x)
	case a >= 9.9995:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.3f", x)
}

// LogValue returns the report as a group of attributes: what passed, the
// delays, and what is wrong.
func (r Report) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("from", r.From), slog.String("to", r.To), slog.Time("start", r.Start),
		slog.Any("forth", r.Forth),
	}
	if !errors.Is(r.Back.Err, ErrIdle) {
		attrs = append(attrs, slog.Any("back", r.Back))
	}
	attrs = append(attrs, slog.String("clocks", r.Clock.String()))
	if r.Begins {
		attrs = append(attrs, slog.Bool("begins", true))
	}
	if r.Err != nil {
		attrs = append(attrs, slog.Any("err", r.Err))
	}
	return slog.GroupValue(attrs...)
}

// LogValue returns the delay as a group of attributes.
func (d Delay) LogValue() slog.Value {
	attrs := []slog.Attr{slog.Uint64("sent", d.Sent), slog.Uint64("received", d.Received), slog.Uint64("lost", d.Lost)}
	if d.Repeats.Packets > 0 {
		attrs = append(attrs, slog.Uint64("repeated", d.Repeats.Packets))
	}
	if d.Err != nil {
		return slog.GroupValue(append(attrs, slog.Any("err", d.Err))...)
	}
	attrs = append(attrs,
		slog.Duration("mean", d.MeanDuration()),
		slog.Duration("low", duration(d.MeanInterval95.Low)), slog.Duration("high", duration(d.MeanInterval95.High)),
		slog.Duration("deviation", d.StdDevDuration()))
	if d.MeanDoubt > 0 {
		attrs = append(attrs, slog.Duration("doubt", duration(d.MeanDoubt)))
	}
	for _, q := range d.Quantiles {
		attrs = append(attrs, slog.Duration(fmt.Sprintf("p%g", 100*q.P), duration(q.Delay)))
	}
	return slog.GroupValue(attrs...)
}
