package main

import (
	"fmt"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/HdrHistogram/hdrhistogram-go"
	vm "github.com/VictoriaMetrics/metrics"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// A recorder takes delays in nanoseconds, each as its makers document, and
// returns their mean. Its tolerance is the allowed relative error of that
// mean.
type recorder struct {
	name      string
	record    func(delay int64)
	mean      func() float64
	tolerance float64
}

// recorders returns a new recorder of every kind.
func recorders() []recorder {
	return []recorder{newSum(), newHDR(), newDD(), newVM(), newPrometheus(), newPrometheusNative()}
}

// newSum returns a recorder without a distribution: the least that one can do
// with a delay.
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

func newVM() recorder {
	var h vm.Histogram
	return recorder{
		name:   "VictoriaMetrics",
		record: func(delay int64) { h.Update(float64(delay) * 1e-9) },
		// The mean of the buckets' middles. They are named "low...high", with
		// 18 to each factor of ten.
		mean: func() float64 {
			var sum, count float64
			h.VisitNonZeroBuckets(func(bucket string, n uint64) {
				var low, high float64
				if _, err := fmt.Sscanf(bucket, "%g...%g", &low, &high); err != nil {
					panic(fmt.Sprintf("bucket %q: %v", bucket, err))
				}
				sum += float64(n) * (low + high) / 2
				count += float64(n)
			})
			return sum / count * 1e9
		},
		tolerance: 0.07, // half a bucket
	}
}

// newPrometheus returns a recorder with 20 buckets, each twice as wide as the
// last, from 1 µs.
func newPrometheus() recorder {
	return prometheusRecorder("Prometheus", prometheus.HistogramOpts{
		Buckets: prometheus.ExponentialBuckets(1e-6, 2, 20),
	})
}

// newPrometheusNative returns a recorder with a native histogram of 8 buckets
// to each doubling.
func newPrometheusNative() recorder {
	return prometheusRecorder("Prometheus-native", prometheus.HistogramOpts{
		NativeHistogramBucketFactor: 1.1,
	})
}

func prometheusRecorder(name string, opts prometheus.HistogramOpts) recorder {
	opts.Name = "delay_seconds"
	h := prometheus.NewHistogram(opts)
	return recorder{
		name:   name,
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
