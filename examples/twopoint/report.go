package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/internal/programs"
	"github.com/hoplag/hoplag/lda"
)

// A report is what the program prints, as text or JSON. Delays are in nanoseconds.
type report struct {
	In, Out                  string
	Seconds                  float64
	Interval                 time.Duration
	PassedOver               int64 // frames that are not measured
	Unmatched                int64 // packets that came out without having gone in
	Cut                      int64 // packets that may not be recognised
	Config                   lda.Config
	SynopsisBytes, WireBytes int
	Stopped                  string `json:",omitempty"`
	Intervals                []row
	Named                    []named `json:",omitempty"` // packets that were lost
	NamedWrongly             int     // of them, those that came
}

// A row is one interval. Mean and StdDev are nil if they are unknown.
type row struct {
	Start                  float64 // seconds
	Sent, Received, Lost   figure
	Mean, StdDev           *figure `json:",omitempty"`
	Extra, EffectiveSample uint64  // packets
	Cells, Usable          int
	Problem                string `json:",omitempty"`
}

// A figure is an estimate with the truth.
type figure struct {
	LDA, Exact float64
}

// columns returns an estimated duration, the true one and the error.
func (f figure) columns() string {
	return hoplag.Format(f.LDA) + "\t" + hoplag.Format(f.Exact) + "\t" + programs.Off(f.LDA, f.Exact)
}

func (r *report) writeText(w io.Writer) error {
	c := &r.Config
	fmt.Fprintf(w, "from       %s\nto         %s\n", r.In, r.Out)
	fmt.Fprintf(w, "           %.2f s\n", r.Seconds)
	for _, note := range r.notes() {
		fmt.Fprintf(w, "           %s\n", note)
	}
	fmt.Fprintf(w, "synopsis   2 banks × %d cells, identity %016x: %s bytes at each point, %s on the wire\n\n",
		c.Banks[0].Rows, c.Identity, thousands(r.SynopsisBytes), thousands(r.WireBytes))
	if len(r.Intervals) == 1 {
		return errors.Join(r.Intervals[0].writeText(w), r.writeNames(w))
	}
	return errors.Join(r.writeTable(w), r.writeNames(w))
}

// cutShort explains why packets that were captured in part are not recognised.
const cutShort = "cut off within the bytes that tell them apart, and both captures must cut them at the same byte (give both one " +
	"snap length, best 96 or more)"

// notes describes what spoils the figures in the captures.
func (r *report) notes() []string {
	var notes []string
	if r.Stopped != "" {
		notes = append(notes, "stopped: "+r.Stopped)
	}
	if r.PassedOver > 0 {
		notes = append(notes, fmt.Sprintf("passed over %s frames without whole IP headers", thousands(r.PassedOver)))
	}
	if r.Unmatched > 0 {
		notes = append(notes, thousands(r.Unmatched)+" packets came out that had not gone in, or before they did if the second clock is behind")
	}
	if r.Unmatched > 0 && r.Cut > 0 {
		notes = append(notes, fmt.Sprintf("%s packets are %s", thousands(r.Cut), cutShort))
	}
	return notes
}

// writeText prints one interval, a line for each figure.
func (i *row) writeText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	line := func(name, columns string) {
		fmt.Fprintf(t, "%-20s\t%s\t\n", name, columns)
	}
	line("", "LDA\texact\terror")
	for _, f := range []struct {
		name string
		figure
	}{{"sent", i.Sent}, {"received", i.Received}, {"lost", i.Lost}} {
		line(f.name, thousands(f.LDA)+"\t"+thousands(f.Exact)+"\t"+
			thousands(f.LDA-f.Exact))
	}
	loss := figure{i.Lost.LDA / i.Sent.LDA, i.Lost.Exact / i.Sent.Exact} // something was sent
	line("loss", percent(loss.LDA)+"\t"+percent(loss.Exact)+"\t"+programs.Off(loss.LDA, loss.Exact))
	if i.Mean != nil {
		line("mean delay", i.Mean.columns())
	}
	if i.StdDev != nil {
		line("standard deviation", i.StdDev.columns())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\neffective sample size %s of %s packets, in %s usable cells of %s\n",
		thousands(i.EffectiveSample), thousands(i.Received.LDA),
		thousands(i.Usable), thousands(i.Cells))
	if i.Problem != "" {
		fmt.Fprintln(w, i.Problem)
	}
	return err
}

// writeTable prints a line for each interval.
func (r *report) writeTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "start\tsent\tlost\t(exact)\tmean\t(exact)\terror\tdeviation\t(exact)\terror\tsample\tusable\t")
	for i := range r.Intervals {
		w := &r.Intervals[i]
		fmt.Fprintf(t, "%.3f s\t%s\t%s\t%s\t", w.Start, thousands(w.Sent.LDA), thousands(w.Lost.LDA),
			thousands(w.Lost.Exact))
		if w.Mean == nil {
			fmt.Fprintf(t, "-\t-\t-\t-\t-\t-\t%d\t%d of %d\t  %s\n", w.EffectiveSample, w.Usable, w.Cells, w.Problem)
			continue
		}
		deviation := "-\t-\t-"
		if w.StdDev != nil {
			deviation = w.StdDev.columns()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d of %d\t  %s\n", w.Mean.columns(), deviation,
			thousands(w.EffectiveSample), w.Usable, w.Cells, w.Problem)
	}
	return t.Flush()
}

func percent(share float64) string {
	return fmt.Sprintf("%.3f %%", 100*share)
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
