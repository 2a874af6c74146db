package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/hoplag/hoplag/lda/mplane"
)

// An output writes the findings, for people or for programs, and keeps the
// first error.
type output struct {
	w                       io.Writer
	json                    bool
	world                   *world
	err                     error
	intervals, right, wrong int
}

func (o *output) printf(format string, args ...any) {
	if o.err == nil {
		_, o.err = fmt.Fprintf(o.w, format, args...)
	}
}

// plan writes the upgrades and their effect.
func (o *output) plan(p mplane.UpgradePlan) {
	if o.json {
		return
	}
	w := o.world
	o.printf("map         %d routers, %d links\n", w.network.Routers(), w.network.LinkCount())
	o.printf("upgraded    %d routers\n\n", len(p.Steps))
	o.printf("  routers upgraded   probe hop count   mean segment   the latest\n")
	row := func(k int, c mplane.Coverage, latest string) {
		o.printf("  %16d   %15d   %7.2f hops   %s\n", k, c.Hops, c.MeanSegment, latest)
	}
	row(0, p.Before, "")
	for k, step := range p.Steps {
		if k < 3 || k == len(p.Steps)-1 {
			row(k+1, step.Coverage, w.network.Name(step.Router))
		} else if k == 3 {
			o.printf("  %16s\n", "…")
		}
	}
	o.printf("\nflows       %d, one LDA of %d bytes at each end of %d segments\n", len(w.flows), synopsis.EncodedSize(), len(w.ids))
	o.printf("clocks      up to 50 ms off and drifting by up to 20 ppm; 1 report in 100 is lost\n")
	o.printf("slow        %s, by %d µs, from interval %d on\n\n", w.network.Name(w.slow), slowBy/1000, w.slowFrom)
	o.printf("  interval   paths over target   not known   segments that the station names                      exact\n")
}

// row writes one interval.
func (o *output) row(f finding) {
	o.count(f)
	if o.json {
		o.object(f)
		return
	}
	if f.interval < learning {
		if f.interval == 0 {
			o.printf("  0 to %d     learning what is usual\n", learning-1)
		}
		return
	}
	o.printf("  %8d   %8d of %-6d   %9d   %-50s   %s\n", f.interval, f.missed, f.paths, f.unknown, o.names(f.suspects, true),
		o.names(f.exact, false))
}

// count compares what is named with the truth, by the segments that explain
// the most paths.
func (o *output) count(f finding) {
	if f.interval < learning {
		return
	}
	o.intervals++
	if len(f.suspects) == 0 && len(f.exact) == 0 {
		o.right++
		return
	}
	for _, s := range f.suspects {
		if !slices.ContainsFunc(f.exact, func(e suspect) bool { return e.segment == s.segment }) {
			o.wrong++
			return
		}
	}
	if len(f.suspects) > 0 {
		o.right++
	}
}

// names writes up to two segments.
func (o *output) names(list []suspect, excess bool) string {
	text := ""
	for k, s := range list {
		if k == 2 {
			return text + fmt.Sprintf(" +%d more", len(list)-2)
		}
		if k > 0 {
			text += ", "
		}
		text += o.world.name(s.segment)
		if excess {
			text += fmt.Sprintf(" +%.0f µs", s.excess/1000)
		}
	}
	if text == "" {
		return "–"
	}
	return text
}

// name formats a segment: a router with where its packets come from and go to,
// or a way between two routers.
func (w *world) name(id mplane.SegmentID) string {
	from, to := w.network.Name(id.From), w.network.Name(id.To)
	switch {
	case id.Internal():
		return fmt.Sprintf("%s (%s to %s)", w.network.Name(id.Via), from, to)
	case id.Path != 0:
		return fmt.Sprintf("%s … %s", from, to)
	}
	return fmt.Sprintf("%s – %s", from, to)
}

// end writes how often the station was right.
func (o *output) end() {
	if !o.json {
		o.printf("\nright in %d of %d intervals; a segment named that was as usual in %d\n", o.right, o.intervals, o.wrong)
	}
}

// object writes an interval for programs.
func (o *output) object(f finding) {
	type segment struct {
		Name   string  `json:"name"`
		Excess float64 `json:"excess_ns"`
		Sure   float64 `json:"sure,omitempty"`
		Paths  int     `json:"paths"`
	}
	list := func(all []suspect) []segment {
		out := []segment{}
		for _, s := range all {
			out = append(out, segment{o.world.name(s.segment), s.excess, s.sure, s.paths})
		}
		return out
	}
	data, err := json.Marshal(struct {
		Interval uint64    `json:"interval"`
		Paths    int       `json:"paths"`
		Missed   int       `json:"over_target"`
		Unknown  int       `json:"not_known"`
		Suspects []segment `json:"named"`
		Exact    []segment `json:"exact"`
	}{f.interval, f.paths, f.missed, f.unknown, list(f.suspects), list(f.exact)})
	if o.err == nil {
		o.err = err
	}
	o.printf("%s\n", data)
}
