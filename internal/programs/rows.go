package programs

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// Rows prints a table row by row, or JSON objects, and keeps the first error.
type Rows struct {
	W    io.Writer
	JSON bool
	Err  error
}

// Printf prints.
func (r *Rows) Printf(format string, args ...any) {
	if r.Err == nil {
		_, r.Err = fmt.Fprintf(r.W, format, args...)
	}
}

// Object prints a value as JSON on a line.
func (r *Rows) Object(v any) {
	if r.Err == nil {
		r.Err = json.NewEncoder(r.W).Encode(v)
	}
}

// Between formats an interval of delays.
func Between(i estimate.Interval) string {
	return hoplag.Format(i.Low) + " – " + hoplag.Format(i.High)
}

// Missing names the messages that a direction lost: some of them, and how many more.
func Missing(d *hoplag.Traffic) string {
	const most = 3
	var parts []string
	for _, m := range d.Missing[:min(len(d.Missing), most)] {
		format := map[bool]string{true: "%d of %s", false: "%016x of %s"}[m.ID != uint64(m.Packet)] // a number, or a hash
		parts = append(parts, fmt.Sprintf(format, m.ID, time.Unix(0, m.Sent).UTC().Format("15:04:05.000")))
	}
	if more := len(d.Missing) - most; more > 0 {
		parts[most-1] += fmt.Sprintf(" and %d more", more)
	}
	if unnamed := int(d.Lost) - len(d.Missing); unnamed > 0 {
		parts = append(parts, fmt.Sprintf("%d not named", unnamed))
	}
	return strings.Join(parts, ", ")
}

// Lost has a line for each direction in which lost messages are known.
func Lost(r *hoplag.Report) (lines string) {
	for i, d := range [2]*hoplag.Traffic{&r.Forth, &r.Back} {
		if missing := Missing(d); missing != "" {
			lines += fmt.Sprintf("          lost %s: %s\n", []string{"forth", "back"}[i], missing)
		}
	}
	return lines
}

// Finite returns a number for JSON, or null if it is not finite.
func Finite(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	return &v
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

var protocols = map[uint8]string{1: "icmp", 6: "tcp", 17: "udp", 58: "ipv6-icmp"}

// FlowName formats a 5-tuple, as in "tcp 10.0.0.1:80 10.0.0.2:1234".
func FlowName(t *hashing.Tuple) string {
	protocol, ok := protocols[t.Proto]
	if !ok {
		protocol = fmt.Sprint(t.Proto)
	}
	return fmt.Sprintf("%s %v %v", protocol, t.Source(), t.Destination())
}
