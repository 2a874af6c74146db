package main

import (
	"fmt"
	"strings"
)

// A view is what a terminal shows, drawn anew each second.
type view struct {
	means []float64 // of the latest minute, 0 if unknown
	since seen      // in all
	lost  uint64
}

// shown is the number of seconds in the view.
const shown = 60

// draw returns the view with a row in it.
func (v *view) draw(r *row) string {
	mean := 0.0
	if r.Mean != nil {
		mean = max(*r.Mean, 0)
	}
	v.means = append(v.means, mean)
	v.means = v.means[max(0, len(v.means)-shown):]
	v.lost += r.Lost
	v.since.Received += r.Received
	v.since.DroppedFrom += r.DroppedFrom
	v.since.DroppedTo += r.DroppedTo
	var b strings.Builder
	b.WriteString("\x1b[H\x1b[2J") // from the top, on an empty screen
	fmt.Fprintf(&b, "wiretap  %s\n\n", r.Time.Format("2006-01-02 15:04:05"))
	fmt.Fprintf(&b, "mean      %s   95 %% between %s and %s\n", format(r.Mean), format(r.Low), format(r.High))
	fmt.Fprintf(&b, "deviation %s   p50 %s   p99 %s\n", format(r.StdDev), format(r.P50), format(r.P99))
	fmt.Fprintf(&b, "packets   %d, lost %d, extra %d   in all %d, lost %d\n", r.Received, r.Lost, r.Extra, v.since.Received, v.lost)
	fmt.Fprintf(&b, "dropped   %d by the rings, in all %d at the first place and %d at the second\n\n",
		r.DroppedFrom+r.DroppedTo, v.since.DroppedFrom, v.since.DroppedTo)
	line, most := spark(v.means)
	fmt.Fprintf(&b, "%s  mean of each second, up to %s\n\n", line, format(&most))
	if len(r.Flows) > 0 {
		fmt.Fprintf(&b, "%10s %22s %8s %11s  %s\n", "mean", "95 % of means", "packets", "lost", "slowest flows")
	}
	for _, f := range r.Flows {
		fmt.Fprintf(&b, "%10s %22s %8d %11s  %s\n", format(&f.Mean), between(f.Low, f.High), f.Sent, f.losses(), f.Flow)
	}
	if r.UnknownFlows > 0 {
		fmt.Fprintf(&b, "and %d flows that the counters do not tell from the rest\n", r.UnknownFlows)
	}
	if r.Error != "" {
		fmt.Fprintf(&b, "\n%s\n", r.Error)
	}
	return b.String()
}

// spark draws values as a line of bars, and returns the greatest value.
func spark(values []float64) (line string, most float64) {
	for _, v := range values {
		most = max(most, v)
	}
	bars := []rune("▁▂▃▄▅▆▇█")
	for _, v := range values {
		if v == 0 {
			line += " "
			continue
		}
		line += string(bars[min(int(v/most*float64(len(bars))), len(bars)-1)])
	}
	return line, most
}
