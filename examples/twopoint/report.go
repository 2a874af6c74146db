package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/hoplag/hoplag/lda"
)

// report is what the program prints, as text or JSON.
type report struct {
	In             string   `json:"in"`
	Out            string   `json:"out"`
	Seconds        float64  `json:"seconds"`
	IntervalLength int64    `json:"interval_ns"`
	PassedOver     int64    `json:"passed_over_frames"`
	Unmatched      int64    `json:"unmatched_packets"`
	Early          int64    `json:"early_packets"` // of the unmatched
	Cut            int64    `json:"cut_packets"`
	Config         settings `json:"config"`
	SynopsisBytes  int      `json:"synopsis_bytes"`
	WireBytes      int      `json:"wire_bytes"`
	Stopped        string   `json:"stopped,omitempty"`
	Intervals      []row    `json:"intervals"`
	Named          []named  `json:"lost_packets,omitempty"`
	NamedWrongly   int      `json:"lost_packets_that_came"`
}

// settings is an aggregator's Config.
type settings struct {
	Identity   string `json:"identity"` // hexadecimal
	Banks      []bank `json:"banks"`
	SumBits    uint8  `json:"sum_bits"`
	DigestBits uint8  `json:"digest_bits"`
}

type bank struct {
	Rows  int   `json:"rows"`
	Shift uint8 `json:"shift"`
}

func newSettings(c lda.Config) settings {
	s := settings{Identity: fmt.Sprintf("%016x", c.Identity), SumBits: c.SumBits, DigestBits: c.DigestBits}
	for _, b := range c.Banks {
		if b.Rows > 0 {
			s.Banks = append(s.Banks, bank{b.Rows, b.Shift})
		}
	}
	return s
}

// row is one interval. Mean and StdDev are nil if they are unknown.
type row struct {
	Start           float64 `json:"start_seconds"`
	Sent            figure  `json:"sent"`
	Received        figure  `json:"received"`
	Lost            figure  `json:"lost"`
	Extra           uint64  `json:"extra"`
	Mean            *figure `json:"mean_ns,omitempty"`
	StdDev          *figure `json:"stddev_ns,omitempty"`
	Ambiguous       uint64  `json:"ambiguous_packets"`
	EffectiveSample uint64  `json:"effective_sample"`
	Cells           int     `json:"cells"`
	Usable          int     `json:"usable_cells"`
	Replaced        int     `json:"replaced_cells"`
	Problem         string  `json:"problem,omitempty"`
}

// figure is an estimate with the truth.
type figure struct {
	Estimate float64 `json:"lda"`
	Exact    float64 `json:"exact"`
}

// columns returns an estimated duration, the true one and the error.
func (f figure) columns() string {
	return duration(f.Estimate) + "\t" + duration(f.Exact) + "\t" + off(f.Estimate, f.Exact)
}

func (r *report) writeJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

func (r *report) writeText(w io.Writer) error {
	c := &r.Config
	fmt.Fprintf(w, "from       %s\nto         %s\n", r.In, r.Out)
	fmt.Fprintf(w, "           %.2f s\n", r.Seconds)
	for _, note := range r.notes() {
		fmt.Fprintf(w, "           %s\n", note)
	}
	fmt.Fprintf(w, "synopsis   2 banks × %d cells, identity %s: %s bytes at each point, %s on the wire\n\n",
		c.Banks[0].Rows, c.Identity, thousands(r.SynopsisBytes), thousands(r.WireBytes))
	if len(r.Intervals) == 1 {
		err := r.Intervals[0].writeText(w)
		r.writeNames(w)
		return err
	}
	err := r.writeTable(w)
	r.writeNames(w)
	return err
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
	if n := r.Unmatched - r.Early; n > 0 {
		note := thousands(n) + " packets came out that had not gone in"
		if r.Config.DigestBits == 0 {
			note += "; where they take the place of lost ones in a cell LDA is misled: give -digest 16"
		}
		notes = append(notes, note)
	}
	if r.Early > 0 {
		notes = append(notes, thousands(r.Early)+" packets came out before they went in: the second clock is behind, "+
			"or both captures have both directions; the exact figures count these as lost")
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
		line(f.name, thousands(f.Estimate)+"\t"+thousands(f.Exact)+"\t"+
			thousands(f.Estimate-f.Exact))
	}
	loss := figure{i.Lost.Estimate / i.Sent.Estimate, i.Lost.Exact / i.Sent.Exact} // something was sent
	line("loss", percent(loss.Estimate)+"\t"+percent(loss.Exact)+"\t"+off(loss.Estimate, loss.Exact))
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
		thousands(i.EffectiveSample), thousands(i.Received.Estimate),
		thousands(i.Usable), thousands(i.Cells))
	if i.Ambiguous > 0 {
		fmt.Fprintf(w, "%s packets were identical to one sent before; the exact deviation leaves them out\n", thousands(i.Ambiguous))
	}
	if i.Replaced > 0 {
		fmt.Fprintf(w, "%d cells had the right number of packets but not the same ones\n", i.Replaced)
	}
	if i.Problem != "" {
		fmt.Fprintln(w, i.Problem)
	}
	return err
}

// writeTable prints a line for each interval.
func (r *report) writeTable(w io.Writer) error {
	highest := 0.0
	for i := range r.Intervals {
		if m := r.Intervals[i].Mean; m != nil {
			highest = max(highest, m.Estimate)
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "start\tsent\tlost\t(exact)\tmean\t(exact)\terror\tdeviation\t(exact)\terror\tsample\tusable\t  mean delay")
	for i := range r.Intervals {
		w := &r.Intervals[i]
		fmt.Fprintf(t, "%.3f s\t%s\t%s\t%s\t", w.Start, thousands(w.Sent.Estimate), thousands(w.Lost.Estimate),
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
			thousands(w.EffectiveSample), w.Usable, w.Cells, cmp.Or(w.Problem, bar(w.Mean.Estimate, highest)))
	}
	return t.Flush()
}

// bar draws a fraction of 20 characters, in eighths.
func bar(value, highest float64) string {
	if !(value > 0) || !(highest > 0) {
		return ""
	}
	eighths := int(math.Round(160 * value / highest))
	s := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		s += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return s
}

// duration prints nanoseconds with three decimals in the unit that suits them.
func duration(ns float64) string {
	size := math.Abs(ns)
	switch {
	case size >= 1e9:
		return fmt.Sprintf("%.3f s", ns/1e9)
	case size >= 1e6:
		return fmt.Sprintf("%.3f ms", ns/1e6)
	case size >= 1e3:
		return fmt.Sprintf("%.3f µs", ns/1e3)
	}
	return fmt.Sprintf("%.2f ns", ns)
}

func percent(share float64) string {
	return fmt.Sprintf("%.3f %%", 100*share)
}
