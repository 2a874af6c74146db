package main

import (
	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// A recorder takes delays in nanoseconds, each as its makers document, and returns their mean. Its tolerance is
// the allowed relative error of that mean.
type recorder struct {
	name      string
	record    func(delay int64)
	mean      func() float64
	tolerance float64
}

// recorders returns a new recorder of every kind.
func recorders() []recorder {
	return []recorder{newSum(), newHDR(), newDD(), newPrometheus()}
}

// newSum returns a recorder without a distribution: the least that one can do with a delay.
func newSum() recorder {
	var sum, count int64
	return recorder{
		name:      "sum",
		record:    func(delay int64) { sum += delay; count++ },
		mean:      func() float64 { return float64(sum) / float64(count) },
		tolerance: 1e-12,
	}
}

// newHDR returns a recorder up to 10 s with 3 significant digits.
func newHDR() recorder {
	h := hdrhistogram.New(1, 10_000_000_000, 3)
	return recorder{
		name: "HdrHistogram",
		record: func(delay int64) {
			if err := h.RecordValue(delay); err != nil {
				panic(err)
			}
		},
		mean:      h.Mean,
		tolerance: 1e-3,
	}
}

// newDD returns a recorder with 1 % relative accuracy.
func newDD() recorder {
	d := must(ddsketch.NewDefaultDDSketch(0.01))
	return recorder{
		name: "DDSketch",
		record: func(delay int64) {
			if err := d.Add(float64(delay)); err != nil {
				panic(err)
			}
		},
		mean:      func() float64 { return d.GetSum() / d.GetCount() },
		tolerance: 0.01,
	}
}

// newPrometheus returns a recorder with 20 buckets, each twice as wide as the last, from 1 µs.
func newPrometheus() recorder {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "delay_seconds", Buckets: prometheus.ExponentialBuckets(1e-6, 2, 20)})
	return recorder{
		name:   "Prometheus",
		record: func(delay int64) { h.Observe(float64(delay) * 1e-9) },
		mean: func() float64 {
			var m dto.Metric
			if err := h.Write(&m); err != nil {
				panic(err)
			}
			return m.Histogram.GetSampleSum() / float64(m.Histogram.GetSampleCount()) * 1e9
		},
		tolerance: 1e-9,
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
