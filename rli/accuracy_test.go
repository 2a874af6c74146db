package rli_test

import (
	"errors"
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/rli"
)

// truths are the delays of each flow, and of all packets.
func truths(events []event) (flows map[hashing.Flow]*estimate.Moments, all estimate.Moments) {
	flows = map[hashing.Flow]*estimate.Moments{}
	for i := range events {
		if e := &events[i]; e.kind == measured {
			if flows[e.flow] == nil {
				flows[e.flow] = new(estimate.Moments)
			}
			flows[e.flow].Add(float64(e.delay))
			all.Add(float64(e.delay))
		}
	}
	return flows, all
}

// medianError is that of the flows' mean delays, relative to the truth.
func medianError(t testing.TB, r *rli.Receiver, events []event) float64 {
	t.Helper()
	truth, _ := truths(events)
	var relative []float64
	for f, m := range truth {
		got, err := r.Estimate(f)
		if errors.Is(err, rli.ErrUntrusted) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		relative = append(relative, math.Abs(got.Mean-m.Mean())/m.Mean())
	}
	if len(relative) < len(truth)*19/20 {
		t.Errorf("%d of %d flows are refused", len(truth)-len(relative), len(truth))
	}
	return median(relative)
}

func median(list []float64) float64 { return must(estimate.NewEmpirical(list).Quantile(0.5)) }

func count[T int | float64](n *T, ok bool) {
	if ok {
		*n++
	}
}

// long skips long statistics of a single goroutine, as under the race detector.
func long(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// meanError is how far the mean of all delays is off, in proportion to the mean time that packets waited.
func meanError(t testing.TB, r *rli.Receiver, events []event) float64 {
	t.Helper()
	_, truth := truths(events)
	var waited estimate.Moments
	for i := range events {
		if e := &events[i]; e.kind == measured {
			waited.Add(float64(e.delay) - float64(e.bytes)*8e9/linkRate)
		}
	}
	total := must(r.Total())
	return (total.Mean - truth.Mean()) / waited.Mean()
}
