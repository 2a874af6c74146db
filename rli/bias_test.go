package rli_test

import (
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// TestBias: the mean of all delays is off by no more than is stated here, in parts
// of the mean wait, and by chance, which the runs themselves show; its interval
// holds the truth; and the median error of flows is no more than a twentieth above
// that of straight lines. The negative control are straight
// lines through references as if they named no packet.
func TestBias(t *testing.T) {
	tail := queue.LinkConfig{Rate: linkRate, Queue: queue.QueueConfig{Packets: 1000}}
	tenth := rli.InjectorConfig{Every: 10}
	const runs = 6
	const unlikely = 4.03 // Student's t of 5 degrees: 0.5 % on each side
	controls := 0
	for _, test := range []struct {
		name     string
		link     queue.LinkConfig
		injector rli.InjectorConfig
		source   func(seed uint64) queue.Source
		bias     float64
	}{
		{"Poisson, 20 %", queue.RLIConfig, tenth, func(n uint64) queue.Source { return source(t, "poisson", 0.2, n) }, 0.01},
		{"Poisson, 55 %", queue.RLIConfig, adaptive(), func(n uint64) queue.Source { return source(t, "poisson", 0.55, n) }, 0.01},
		{"Poisson, 85 %", queue.RLIConfig, adaptive(), func(n uint64) queue.Source { return source(t, "poisson", 0.85, n) }, 0.01},
		{"Poisson, 97 %, RED", queue.RLIConfig, adaptive(), func(n uint64) queue.Source { return source(t, "poisson", 0.97, n) }, 0.01},
		{"modulated, 50 %", tail, tenth, func(n uint64) queue.Source { return newModulated(0.5, n) }, 0.01},
		{"flows, 70 %", queue.RLIConfig, tenth, func(n uint64) queue.Source { return source(t, "flows", 0.7, n) }, 0.01},
	} {
		t.Run(test.name, func(t *testing.T) {
			var ours, theirs, broken estimate.Moments
			errs, errsOfLines := 0.0, 0.0
			for seed := range uint64(runs) {
				events := pass(t, test.link, test.injector, 100_000, test.source(seed+11), nil)
				busy, linear := receive(t, config(rli.BusyAware), events), receive(t, config(rli.Linear), events)
				ours.Add(meanError(t, busy, events))
				theirs.Add(meanError(t, linear, events))
				for i := range events {
					events[i].ref.Behind = 0
				}
				broken.Add(meanError(t, receive(t, config(rli.Linear), events), events))
				errs += medianError(t, busy, events) / runs
				errsOfLines += medianError(t, linear, events) / runs
				total, truth := must(busy.Total()), 0.0
				for i := range events {
					if events[i].kind == measured {
						truth += float64(events[i].delay)
					}
				}
				if truth /= float64(total.N); !total.MeanInterval(0.95).Contains(truth) {
					t.Errorf("seed %d: %v, in truth %v", seed, total.MeanInterval(0.95), truth)
				}
			}
			chance := func(m *estimate.Moments) float64 { return unlikely * math.Sqrt(m.Variance()/runs) }
			t.Logf("bias %+.4f ± %.4f, median error %.4f; of straight lines %+.4f ± %.4f and %.4f",
				ours.Mean(), chance(&ours), errs, theirs.Mean(), chance(&theirs), errsOfLines)
			if math.Abs(ours.Mean()) > test.bias+chance(&ours) || errs > 1.05*errsOfLines && errs-errsOfLines > 0.002 {
				t.Errorf("bias %+.4f ± %.4f, median error %.4f, of straight lines %.4f", ours.Mean(), chance(&ours), errs, errsOfLines)
			}
			if math.Abs(broken.Mean()) > test.bias+chance(&broken) {
				controls++
			}
		})
	}
	if controls < 3 {
		t.Errorf("straight lines through references as if they named no packet fail in %d settings only", controls)
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
	var truth, waited estimate.Moments
	for i := range events {
		if e := &events[i]; e.kind == measured {
			truth.Add(float64(e.delay))
			waited.Add(float64(e.delay) - float64(e.bytes)*8e9/linkRate)
		}
	}
	total, err := r.Total()
	if err != nil {
		t.Fatal(err)
	}
	return (total.Mean - truth.Mean()) / waited.Mean()
}
