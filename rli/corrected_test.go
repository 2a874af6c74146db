package rli_test

import (
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// References whose sending times are corrected give the delays that they give
// where clocks agree, though the injector's drifts.
func TestCorrectedReferences(t *testing.T) {
	events := pass(t, queue.RLIConfig, adaptive(), 10000, source(t, "flows", 0.7, 2), nil)
	reading := clock.Reading{Time: events[len(events)/2].ref.Sent, Offset: -100e6, Drift: 1e-4}
	skewed := make([]event, len(events))
	copy(skewed, events)
	for i := range skewed {
		skewed[i].ref.Sent += int64(math.Round(reading.Ahead(events[i].ref.Sent)))
	}
	worst := func(a, b *rli.Receiver) (worst float64) {
		for f, want := range a.All() {
			got, err := b.Estimate(f)
			if err != nil {
				t.Fatal(err)
			}
			worst = max(worst, math.Abs(got.Mean-want.Mean))
		}
		return worst
	}
	plain := receive(t, config(rli.Linear), events)
	// Negative control: uncorrected, all means are off by 100 ms.
	if off := worst(plain, receive(t, config(rli.Linear), skewed)); off < 99e6 {
		t.Errorf("uncorrected means are off by %.0f ns only", off)
	}
	for i := range skewed {
		skewed[i].ref.Sent = reading.NearTime(skewed[i].ref.Sent)
	}
	if off := worst(plain, receive(t, config(rli.Linear), skewed)); off > 2 {
		t.Errorf("corrected means are off by %.1f ns", off)
	}
}
