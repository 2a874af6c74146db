package hoplag

import (
	"bytes"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"log/slog"
	"math"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
)

func sampleReport() Report {
	return Report{
		Number: 7, Start: time.Unix(7, 0).UTC(), Length: time.Second, From: "a\"\\\n", To: "b",
		Forth: Delay{
			Result: lda.Result{Delay: estimate.Delay{Mean: 39.137e6, StdDev: 27.752e6, N: 90}, Sent: 100, Received: 95, Lost: 5,
				Spoken: 95, MeanError: 1e5, MeanDegrees: 80, DeviationDegrees: 80,
				Crossed: 6, Repeats: lda.Repeats{Cells: 1, Packets: 3}, MeanDoubt: 2e5},
			MeanInterval95:      estimate.Interval{Low: 38.9e6, High: math.Inf(1), Confidence: 0.95},
			DeviationInterval95: estimate.Interval{Low: 27e6, High: 28e6, Confidence: 0.95},
			Quantiles: []lda.Quantile{{P: 0.5, Delay: 31.2e6, Samples: 50,
				Interval: estimate.Interval{Low: 30e6, High: 33e6, Confidence: 0.95}}},
			Flows: []FlowDelay{{Flow: 1 << 60, Mean: 4e6, Sent: 9, Share: 1}},
		},
		Back:  Delay{Err: ErrIdle},
		Clock: Clock{Known: true, Offset: -1e6, Drift: 3e-5, Likely: estimate.Interval{Low: -1.001e6, High: -0.999e6, Confidence: 0.95}},
		Err:   fmt.Errorf("%w: no route", ErrSilent),
	}
}

var sameErrors = cmp.Options{
	cmp.Comparer(func(a, b error) bool {
		return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error() && errors.Is(a, ErrSilent) == errors.Is(b, ErrSilent) &&
			errors.Is(a, ErrIdle) == errors.Is(b, ErrIdle))
	}),
	cmpopts.EquateEmpty(),
}

// A report survives JSON: its intervals, infinite ones too, and its errors.
func TestReportInJSON(t *testing.T) {
	for _, want := range []Report{sampleReport(), {}} {
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Report
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, sameErrors); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if a, b := want.Forth.MeanInterval(0.9), got.Forth.MeanInterval(0.9); a != b {
			t.Errorf("interval %v became %v", a, b)
		}
	}
	r := sampleReport()
	if err := json.Unmarshal([]byte(`{"Number": "x"}`), &r); err == nil || r.Number != 7 {
		t.Errorf("error %v, number %d", err, r.Number)
	}
}

// Whatever the text, a report that is accepted is encoded and decoded as the same.
func FuzzReportJSON(f *testing.F) {
	for _, text := range []string{
		`{"Forth":{"Mean":1,"Err":"no samples"},"Err":"x"}`, `{"Back":{"Quantiles":[{"P":0.5}]}}`, `{}`, `null`, `{"Back":null}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var r, decoded Report
		if json.Unmarshal(data, &r) != nil {
			return
		}
		first, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("%q is read, and not written: %v", data, err)
		}
		if err := json.Unmarshal(first, &decoded); err != nil {
			t.Fatalf("%q: %v", first, err)
		}
		if second, err := json.Marshal(decoded); err != nil || !bytes.Equal(first, second) {
			t.Errorf("%q became %q, %v", first, second, err)
		}
	})
}

func TestReportString(t *testing.T) {
	r := sampleReport()
	r.From = "a"
	const want = "a → b  39.14 ms (38.90 ms to ∞), deviation 27.75 ms, doubt 200.0 µs, p50 31.20 ms, " +
		"sent 100, lost 5 (5.00 %), repeated 3; clocks: offset -1.000 ms ± 1.000 µs, drift 30 ppm; the other point is silent: no route"
	if got := r.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	const zero = "? → ?  no packets; clocks: not known"
	if got := (Report{Forth: Delay{Err: ErrIdle}, Back: Delay{Err: ErrIdle}}).String(); got != zero {
		t.Errorf("got %s", got)
	}
	if d, ok := r.Forth.Quantile(0.5); d != 31200*time.Microsecond || !ok {
		t.Errorf("median %v", d)
	}
	if d := r.Forth.MeanDuration(); d != 39137*time.Microsecond {
		t.Errorf("mean %v", d)
	}
}

func TestFormat(t *testing.T) {
	for ns, want := range map[float64]string{
		0: "0.000 ns", 1: "1.000 ns", 999.94: "999.9 ns", 999.96: "1.000 µs", 12345: "12.35 µs", -39137000: "-39.14 ms",
		1e9: "1.000 s", 99.9996e9: "100.0 s", 3.6e12: "3600 s", math.Inf(1): "∞", math.Inf(-1): "-∞",
	} {
		if got := Format(ns); got != want {
			t.Errorf("%v ns is %s, want %s", ns, got, want)
		}
	}
}

func TestReportLogs(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(slog.NewTextHandler(&b, nil))
	r := sampleReport()
	log.Info("delay", "a→b", r)
	for _, want := range []string{"forth.sent=100", "forth.lost=5", "forth.mean=39.137ms", "forth.p50=31.2ms", "forth.repeated=3",
		"forth.doubt=200µs", "clocks=", "silent"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in %s", want, b.String())
		}
	}
}

// The metrics add up, and each line is what the exposition format has;
// bench/peers reads them with Prometheus' own parser.
func TestMetrics(t *testing.T) {
	var m Metrics
	m.Add(sampleReport())
	m.Add(sampleReport())
	class := sampleReport()
	class.Class = "udp"
	m.Add(class)
	var v expvar.Var = &m
	var reports []Report
	if err := json.Unmarshal([]byte(v.String()), &reports); err != nil || len(reports) != 2 ||
		reports[0].Forth.Mean != 39.137e6 || reports[1].Class != "udp" {
		t.Errorf("%s: %v", v, err)
	}
	w := httptest.NewRecorder()
	m.ServeHTTP(w, nil)
	page := w.Body.String()
	const labels = `from="a\"\\\n",to="b",direction="forth"`
	for _, want := range []string{
		"# TYPE hoplag_packets_sent_total counter\nhoplag_packets_sent_total{" + labels + "} 200\n",
		"hoplag_packets_lost_total{" + labels + "} 10\n",
		`hoplag_packets_lost_total{from="a\"\\\n",to="b",class="udp",direction="forth"} 5` + "\n",
		"hoplag_packets_crossed_total{" + labels + "} 12\n",
		"hoplag_packets_repeated_total{" + labels + "} 6\n",
		"hoplag_delay_mean_doubt_seconds{" + labels + "} 0.0002\n",
		"hoplag_delay_samples{" + labels + "} 50\n",
		"hoplag_flow_delay_mean_seconds{" + labels + ",flow=\"1000000000000000\"} 0.004\n",
		"hoplag_delay_seconds{" + labels + ",quantile=\"0.5\"} 0.0312\n",
		"hoplag_delay_seconds_count{" + labels + "} 180\n",
		"hoplag_delay_mean_high_seconds{" + labels + "} +Inf\n",
		"hoplag_reports_failed_total{from=\"a\\\"\\\\\\n\",to=\"b\"} 2\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
}
