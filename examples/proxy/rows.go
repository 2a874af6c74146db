package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/hoplag/hoplag"
)

// rows prints a row for each report, and keeps the first error.
type rows struct {
	w     io.Writer
	json  bool
	exact *exact
	count int
	err   error
}

// The heading is repeated now and then.
const headingEvery = 30

func (o *rows) add(r hoplag.Report) {
	if o.json {
		o.object(r)
		return
	}
	if o.count%headingEvery == 0 {
		o.print("%-8s  %-5s %12s %22s %12s %8s %8s", "time", "", "mean", "95 % of means", "p99", "packets", "lost")
		if o.exact != nil {
			o.print("   %12s %8s %10s", "exact mean", "error", "packets")
		}
		o.print("   clocks\n")
	}
	o.count++
	o.row(r, 0, "forth", &r.Forth)
	o.row(r, 1, "back", &r.Back)
}

// object prints a report as JSON. In the demo it adds the truth, forth and
// back, as Exact.
func (o *rows) object(r hoplag.Report) {
	data, err := json.Marshal(r)
	if o.exact != nil && err == nil {
		second := r.Start.Unix()
		var beside []byte
		beside, err = json.Marshal([]truth{o.exact.take(0, second), o.exact.take(1, second)})
		data = fmt.Appendf(data[:len(data)-1], `,"Exact":%s}`, beside)
	}
	o.err = errors.Join(o.err, err)
	o.print("%s\n", data)
}

// row prints one direction.
func (o *rows) row(r hoplag.Report, direction int, name string, d *hoplag.Delay) {
	at, clocks := r.Start.Format("15:04:05"), r.Clock.String()
	if direction == 1 {
		at, clocks = "", ""
	}
	var mean, low, p99 string
	switch {
	case d.Err == nil:
		mean = hoplag.Format(d.Mean)
		low = hoplag.Format(d.MeanInterval95.Low) + " – " + hoplag.Format(d.MeanInterval95.High)
		if q, ok := d.Quantile(0.99); ok {
			p99 = hoplag.Format(float64(q))
		}
	case errors.Is(d.Err, hoplag.ErrIdle):
		mean = "–"
	default:
		mean = "unknown"
	}
	o.print("%-8s  %-5s %12s %22s %12s %8d %8d", at, name, mean, low, p99, d.Received, d.Lost)
	if o.exact != nil {
		o.beside(r, direction, d)
	}
	if r.Err != nil && direction == 0 {
		clocks = r.Err.Error()
	}
	o.print("   %s\n", clocks)
}

// beside prints the truth of the second.
func (o *rows) beside(r hoplag.Report, direction int, d *hoplag.Delay) {
	t := o.exact.take(direction, r.Start.Unix())
	if t.Received == 0 {
		o.print("   %12s %8s %10d", "–", "", 0)
		return
	}
	off := ""
	if d.Err == nil {
		off = fmt.Sprintf("%+.2f %%", 100*(d.Mean/t.Mean-1))
	}
	o.print("   %12s %8s %10d", hoplag.Format(t.Mean), off, t.Received)
}

func (o *rows) print(format string, args ...any) {
	if o.err == nil {
		_, o.err = fmt.Fprintf(o.w, format, args...)
	}
}
