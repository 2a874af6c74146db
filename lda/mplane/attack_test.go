package mplane

import (
	"errors"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

// forged is the interval that false reports are about.
const forged = 12

// TestKeyForgesReports: whoever holds the key can make up reports. If a segment is also reported truthfully,
// neither report is believed, whichever comes first, and its path is said to be incomplete; if nobody else
// reports it, the forger is believed. Without the key a forger changes nothing.
func TestKeyForgesReports(t *testing.T) {
	for name, c := range map[string]struct {
		key            string
		first, instead bool
		believed       bool
	}{
		"before the true one":             {key: "", first: true},
		"after the true one":              {key: ""},
		"instead of the true one":         {key: "", instead: true, believed: true},
		"with another key":                {key: "another"},
		"with another key, and no report": {key: "another", instead: true},
	} {
		w := newWorld(t, 1)
		target := w.ids[1]
		forge := func() {
			m := w.measure(target, forged)
			m.Delay.Mean += 5e6
			key := w.key
			if c.key != "" {
				key = NewKey(c.key)
			}
			r := Report{Monitor: w.path[1], Interval: forged, Measurements: []Measurement{m}}
			if err := w.receive(r, key, forged); errors.Is(err, ErrForged) != (c.key != "") {
				t.Errorf("%s: %v", name, err)
			}
		}
		w.reports(forged)
		w.dropReport = func(r Report) bool { return c.instead && (r.Monitor == target.Via || r.Monitor == target.From) }
		if c.first {
			forge()
			w.report(forged)
		} else {
			w.report(forged)
			forge()
		}
		m, known := w.segment(target, forged)
		_, err := w.station.Path(w.path, forged)
		switch {
		case c.believed:
			if !known || m.Delay.Mean < w.truth(target)+4e6 {
				t.Errorf("%s: %+v, %v", name, m, known)
			}
		case c.key == "" || c.instead:
			if known || !errors.Is(err, estimate.ErrNoSamples) {
				t.Errorf("%s: %+v is believed, %v", name, m, err)
			}
		case !known || m.Delay.Mean > w.truth(target)+1e6 || err != nil:
			t.Errorf("%s: %+v, %v, %v", name, m, known, err)
		}
	}
}
