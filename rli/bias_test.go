package rli_test

import (
	"math"
	"testing"

	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// TestBias: the mean of all delays is off by a few per cent of the mean wait at
// most, whatever the traffic, and the median error of flows is no more than a
// twentieth above that of straight lines. The negative control is a straight
// line from reference to reference as if none named its packet.
func TestBias(t *testing.T) {
	tail := queue.LinkConfig{Rate: linkRate, Queue: queue.QueueConfig{Packets: 1000}}
	tenth := rli.InjectorConfig{Every: 10, ReferenceBytes: referenceBytes}
	for _, test := range []struct {
		name     string
		link     queue.LinkConfig
		injector rli.InjectorConfig
		source   queue.Source
		bias     float64
	}{
		{"Poisson, 20 %", queue.RLIConfig, adaptive(), source(t, "poisson", 0.2, 9), 0.03},
		{"Poisson, 55 %", queue.RLIConfig, adaptive(), source(t, "poisson", 0.55, 9), 0.04},
		{"Poisson, 85 %", queue.RLIConfig, adaptive(), source(t, "poisson", 0.85, 9), 0.02},
		{"Poisson, 97 %, RED", queue.RLIConfig, adaptive(), source(t, "poisson", 0.97, 9), 0.01},
		{"modulated, 50 %", tail, adaptive(), newModulated(0.5, 3), 0.02},
		{"modulated, 50 %, a tenth", tail, tenth, newModulated(0.5, 3), 0.02},
		{"flows, 70 %, a tenth", queue.RLIConfig, tenth, source(t, "flows", 0.7, 9), 0.02},
	} {
		t.Run(test.name, func(t *testing.T) {
			events, _ := pass(t, test.link, test.injector, 200_000, test.source, nil)
			busy, linear := receive(t, config(rli.BusyAware), events), receive(t, config(rli.Linear), events)
			bias := meanError(t, busy, events)
			ours, theirs := medianError(t, busy, events), medianError(t, linear, events)
			t.Logf("bias %+.4f, median error %.4f, of RLI %+.4f and %.4f", bias, ours, meanError(t, linear, events), theirs)
			if math.Abs(bias) > test.bias || ours > 1.05*theirs && ours-theirs > 0.002 {
				t.Errorf("bias %+.4f, median error %.4f, of RLI %.4f", bias, ours, theirs)
			}
			for i := range events {
				events[i].ref.Behind = 0
			}
			if bias := meanError(t, receive(t, config(rli.Linear), events), events); test.bias > 0.02 && math.Abs(bias) < 2*test.bias {
				t.Errorf("a bias of %+.4f without names also passes", bias)
			}
		})
	}
}
