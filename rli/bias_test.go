package rli_test

import (
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// TestBias: the mean of all delays is off by no more than one in a hundred of the
// mean wait, and by chance, which the runs themselves show. The negative control
// are straight lines through references as if they named no packet.
func TestBias(t *testing.T) {
	long(t)
	const runs = 6
	const unlikely = 4.03 // Student's t of 5 degrees: 0.5 % on each side
	tenth := rli.InjectorConfig{Every: 10}
	controls := 0
	for _, test := range []struct {
		traffic     string
		utilisation float64
		injector    rli.InjectorConfig
	}{
		{"poisson", 0.2, tenth}, {"poisson", 0.55, adaptive()}, {"poisson", 0.85, adaptive()}, {"flows", 0.7, tenth},
	} {
		var ours, broken estimate.Moments
		for seed := range uint64(runs) {
			events := pass(t, queue.RLIConfig, test.injector, 100_000, source(t, test.traffic, test.utilisation, seed+11), nil)
			ours.Add(meanError(t, receive(t, config(rli.Auto), events), events))
			for i := range events {
				events[i].ref.Behind = 0
			}
			broken.Add(meanError(t, receive(t, config(rli.Linear), events), events))
		}
		most := func(m *estimate.Moments) float64 { return 0.01 + unlikely*math.Sqrt(m.Variance()/runs) }
		if math.Abs(ours.Mean()) > most(&ours) {
			t.Errorf("%s, %v: bias %+.4f, want up to %.4f", test.traffic, test.utilisation, ours.Mean(), most(&ours))
		}
		if math.Abs(broken.Mean()) > most(&broken) {
			controls++
		}
	}
	if controls < 2 {
		t.Errorf("straight lines through references as if they named no packet fail in %d settings only", controls)
	}
}

// long skips statistics that one goroutine makes, as for the race detector.
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

// meanError is how far the mean of all delays is off, in proportion to the
// mean time that packets waited.
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
