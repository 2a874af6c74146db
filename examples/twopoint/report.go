package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/programs"
	"github.com/hoplag/hoplag/lda"
)

// A report is what the program prints, as text or JSON. Delays are in nanoseconds.
type report struct {
	In, Out      string
	Seconds      float64
	Interval     time.Duration
	PassedOver   int64 // frames that are not measured
	Unmatched    int64 // packets that came out without having gone in
	Cut          int64 // packets that may not be recognised
	Config       lda.Config
	Stopped      string `json:",omitempty"`
	Intervals    []row
	Named        []named `json:",omitempty"` // packets that were lost
	NamedWrongly int     // of them, those that arrived
}

// A row is one interval. Mean and StdDev are nil if they are unknown.
type row struct {
	Start                float64 // seconds
	Sent, Received, Lost figure
	Mean, StdDev         *figure `json:",omitempty"`

	MeanInterval95 *estimate.Interval `json:",omitempty"`

	Extra, EffectiveSample uint64 // packets
	Crossed                bool   `json:",omitempty"` // by packets of another interval
	Problem                string `json:",omitempty"`
}

// A figure is an estimate with the truth.
type figure struct {
	LDA, Exact float64
}

// columns returns an estimated duration, the true one and the error.
func (f *figure) columns() string {
	if f == nil {
		return "-\t-\t-"
	}
	return hoplag.Format(f.LDA) + "\t" + hoplag.Format(f.Exact) + "\t" + programs.Off(f.LDA, f.Exact)
}

func (r *report) writeText(w io.Writer) error {
	fmt.Fprintf(w, "from       %s\nto         %s\n           %.2f s\n", r.In, r.Out, r.Seconds)
	note := func(is bool, format string, args ...any) {
		if is {
			fmt.Fprintf(w, "           "+format+"\n", args...)
		}
	}
	note(r.Stopped != "", "stopped: %s", r.Stopped)
	note(r.PassedOver > 0, "passed over %s frames without whole IP headers", thousands(r.PassedOver))
	note(r.Unmatched > 0, "%s packets came out that had not gone in, or before they did if the second clock is behind", thousands(r.Unmatched))
	note(r.Unmatched > 0 && r.Cut > 0, "%s packets are %s", thousands(r.Cut), cutShort)
	fmt.Fprintf(w, "synopsis   2 banks × %d cells: %s bytes at each point, %s on the wire\n\n",
		r.Config.Banks[0].Rows, thousands(r.Config.MemorySize()), thousands(r.Config.EncodedSize()))
	return errors.Join(r.writeTable(w), r.writeNames(w))
}

// cutShort explains why packets that were captured in part are not recognised.
const cutShort = "cut off within the bytes that tell them apart, and both captures must cut them at the same byte (give both one " +
	"snap length, best 96 or more)"

// writeTable prints a line for each interval.
func (r *report) writeTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "from\tsent\tlost\texact\tmean delay\texact\terror\tdeviation\texact\terror\tsample\t")
	for i := range r.Intervals {
		w := &r.Intervals[i]
		fmt.Fprintf(t, "%.3f s\t%s\t%s\t%s\t%s\t%s\t%s\t  %s\n", w.Start, thousands(w.Sent.LDA), thousands(w.Lost.LDA),
			thousands(w.Lost.Exact), w.Mean.columns(), w.StdDev.columns(), thousands(w.EffectiveSample), w.Problem)
	}
	return t.Flush()
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
