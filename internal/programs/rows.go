package programs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/estimate"
)

// Rows prints a table row by row, or JSON objects, and keeps the first error.
type Rows struct {
	W    io.Writer
	JSON bool
	Err  error

	count int
}

// headingEvery is how many rows there are between headings.
const headingEvery = 30

// Printf prints.
func (r *Rows) Printf(format string, args ...any) {
	if r.Err == nil {
		_, r.Err = fmt.Fprintf(r.W, format, args...)
	}
}

// Heading counts a row, and prints a line before it now and then.
func (r *Rows) Heading(format string, args ...any) {
	if r.count%headingEvery == 0 {
		r.Printf(format+"\n", args...)
	}
	r.count++
}

// Object prints a value as JSON on a line.
func (r *Rows) Object(v any) {
	if r.Err == nil {
		r.Err = json.NewEncoder(r.W).Encode(v)
	}
}

// Columns returns the mean of a delay, the interval of the mean and the p99,
// as far as they are known.
func Columns(d *hoplag.Delay) (mean, within, p99 string) {
	if q, ok := d.Quantile(0.99); ok {
		p99 = hoplag.Format(float64(q))
	}
	switch {
	case d.Err == nil:
		return hoplag.Format(d.Mean), Between(d.MeanInterval95), p99
	case errors.Is(d.Err, hoplag.ErrIdle):
		return "idle", "", ""
	}
	return "unknown", "", p99
}

// Between formats an interval of delays.
func Between(i estimate.Interval) string {
	return hoplag.Format(i.Low) + " – " + hoplag.Format(i.High)
}

// Off formats how far a figure is from the truth.
func Off(got, exact float64) string {
	switch off := math.Round(1e4*(got/exact-1)) / 100; {
	case math.IsNaN(off) || math.IsInf(off, 0):
		return ""
	case off == 0:
		return "0.00 %" // and not -0
	default:
		return fmt.Sprintf("%+.2f %%", off)
	}
}

// Finite returns a number for JSON, or null if it is not finite.
func Finite(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	return &v
}

// Thousands formats a number with its digits in groups of three.
func Thousands[N int | int64 | uint64 | float64](n N) string {
	s, sign := strconv.FormatInt(int64(n), 10), ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Terminal reports whether people read what is written there.
func Terminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Missing names the messages that a direction lost: some of them, and how many more.
func Missing(d *hoplag.Delay) string {
	const most = 3
	var b strings.Builder
	for i, m := range d.Missing[:min(len(d.Missing), most)] {
		if i > 0 {
			b.WriteString(", ")
		}
		if m.Number {
			fmt.Fprint(&b, m.ID)
		} else {
			fmt.Fprintf(&b, "%016x", m.ID)
		}
		fmt.Fprintf(&b, " of %s", m.Sent.Format("15:04:05.000"))
	}
	if more := len(d.Missing) - most; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	if d.Unnamed > 0 {
		fmt.Fprintf(&b, ", %d not named", d.Unnamed)
	}
	return strings.TrimPrefix(b.String(), ", ")
}
