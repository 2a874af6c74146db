package main

import (
	"bytes"
	"errors"
	"math"
	"net/http/httptest"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
)

// Prometheus' own parser reads what hoplag.Metrics writes, and means the same.
func TestMetricsParse(t *testing.T) {
	var m hoplag.Metrics
	for _, name := range []string{"a", "quote \" backslash \\ newline \n", "invalid \xff", ""} {
		m.Add(hoplag.Report{
			From: name, To: "b",
			Forth: hoplag.Traffic{
				Mean: 2e6, Sent: 10, Received: 9, Lost: 1,
				MeanInterval95: estimate.Interval{Low: 1e6, High: math.Inf(1)},
				AtMost:         []float64{0, 0, 0, 0, 0, 0, 2, 6, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9},
				Quantiles:      []lda.Quantile{{P: 0.5, Delay: 1.5e6}, {P: 0.99, Delay: 4e6}},
			},
			Back: hoplag.Traffic{Err: errors.New("nothing")},
		})
	}
	w := httptest.NewRecorder()
	m.ServeHTTP(w, nil)
	page := w.Body
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page.Bytes()))
	if err != nil {
		t.Fatalf("%v in\n%s", err, page)
	}
	f := families["hoplag_delay_seconds"]
	if f == nil || f.GetType() != dto.MetricType_HISTOGRAM || len(f.Metric) != 4 { // none of delays that are not known
		t.Fatalf("histogram %v", f)
	}
	h := f.Metric[0].GetHistogram()
	if h.GetSampleCount() != 9 || math.Abs(h.GetSampleSum()-0.018) > 1e-12 || len(h.Bucket) != 20 ||
		h.Bucket[7].GetCumulativeCount() != 6 {
		t.Errorf("histogram %v", h)
	}
	for name, kind := range map[string]dto.MetricType{
		"hoplag_packets_sent_total": dto.MetricType_COUNTER, "hoplag_packets_lost_total": dto.MetricType_COUNTER,
		"hoplag_delay_mean_high_seconds": dto.MetricType_GAUGE, "hoplag_clock_known": dto.MetricType_GAUGE,
	} {
		if f := families[name]; f == nil || f.GetType() != kind || f.GetHelp() == "" || len(f.Metric) == 0 {
			t.Errorf("%s is %v", name, f)
		}
	}
	labels := map[string]bool{}
	for _, metric := range families["hoplag_reports_total"].Metric {
		for _, l := range metric.Label {
			labels[l.GetValue()] = true
		}
	}
	if !labels["quote \" backslash \\ newline \n"] {
		t.Errorf("labels %v", labels)
	}
}
