package rli_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

// TestIntervalsCover: the intervals of flows' means and deviations hold the truth
// as often as they say, by every method, and so does that of all packets. The
// negative control is the interval as if every packet were a sample of its own.
func TestIntervalsCover(t *testing.T) {
	long(t)
	hundredth := rli.InjectorConfig{Every: 100}
	const confidence = 0.95
	missed := false
	for _, test := range []struct {
		name     string
		link     queue.LinkConfig
		injector rli.InjectorConfig
		source   queue.Source
	}{
		{"Poisson, 20 %", queue.RLIConfig, adaptive(), source(t, "poisson", 0.2, 9)},
		{"Poisson, 85 %", queue.RLIConfig, adaptive(), source(t, "poisson", 0.85, 9)},
		{"Poisson, 97 %, RED", queue.RLIConfig, hundredth, source(t, "poisson", 0.97, 9)},
		{"flows, 70 %", queue.RLIConfig, hundredth, source(t, "flows", 0.7, 9)},
	} {
		events := pass(t, test.link, test.injector, 100_000, test.source, nil)
		truth := map[hashing.Flow]*estimate.Moments{}
		var all estimate.Moments
		for i := range events {
			if e := &events[i]; e.kind == measured {
				if truth[e.flow] == nil {
					truth[e.flow] = new(estimate.Moments)
				}
				truth[e.flow].Add(float64(e.delay))
				all.Add(float64(e.delay))
			}
		}
		for _, m := range []rli.Method{rli.Auto, rli.Linear, rli.Left} {
			r := receive(t, config(m), events)
			flows, means, deviations, naive := 0.0, 0.0, 0.0, 0.0
			for f, res := range r.All() {
				want := truth[f]
				flows++
				if res.MeanInterval(confidence).Contains(want.Mean()) {
					means++
				}
				if res.DeviationInterval(confidence).Contains(math.Sqrt(want.PopulationVariance())) {
					deviations++
				}
				if math.Abs(res.Mean-want.Mean()) <= 2*res.StdDev/math.Sqrt(float64(res.N)) {
					naive++
				}
			}
			total, err := r.Total()
			if err != nil {
				t.Fatal(err)
			}
			in := total.MeanInterval(confidence)
			t.Logf("%s, %v: means %.3f, deviations %.3f, naive %.3f of %v flows; total %.0f in %.0f to %.0f", test.name, m, means/flows,
				deviations/flows, naive/flows,
				flows, all.Mean(), in.Low, in.High)
			if means < (confidence-0.01)*flows || deviations < (confidence-0.01)*flows || !in.Contains(all.Mean()) {
				t.Errorf("%s, %v: means %.3f, deviations %.3f, total %.0f in %.0f to %.0f", test.name, m, means/flows, deviations/flows,
					all.Mean(), in.Low, in.High)
			}
			missed = missed || naive < confidence*flows
		}
	}
	if !missed {
		t.Error("intervals of independent packets also cover")
	}
}

// TestFewReferences: from few references no interval follows, and from few pairs of one
// flow's that none has errors in common: three hundred senders as regular as clocks meet the
// same packets again and again. The negative control is what they would be by themselves.
func TestFewReferences(t *testing.T) {
	random, next := rand.New(rand.NewPCG(1, 9)), make([]int64, 300)
	for i := range next {
		next[i] = random.Int64N(224_000) // at 75 % of the rate
	}
	slices.Sort(next)
	link, injector := must(queue.NewLink(queue.RLIConfig)), must(rli.NewInjector(rli.InjectorConfig{Every: 530}))
	r := newReceiver(t, config(rli.Auto))
	truth := make([]estimate.Moments, len(next))
	for i := range 120_000 {
		if i == 60_000 {
			if total, err := r.Total(); err != nil || total.MeanInterval(0.5).Bounded() {
				t.Errorf("from %d references: %+v, %v", r.Counts().References, total.MeanInterval(0.5), err)
			}
		}
		flow, at := i%300, next[i%300]+int64(i/300)*224_000
		out, _ := link.Send(at, 700)
		truth[flow].Add(float64(out - at))
		r.Update(hashing.Flow(flow), 700, out)
		if ref, ok := injector.Packet(700, at); ok {
			out, _ := link.Send(at, referenceBytes)
			r.Reference(ref, out)
		}
	}
	r.Flush()
	held, narrow := 0, 0
	for f, res := range r.All() {
		want, in := truth[f].Mean(), res.MeanInterval(0.95)
		if in.Contains(want) {
			held++
		}
		if alone := (in.High - in.Low) / 2 / math.Sqrt(100); math.Abs(res.Mean-want) <= alone {
			narrow++
		}
	}
	if held < 285 || narrow > 270 {
		t.Errorf("%d of 300 intervals hold the mean, %d if packets were independent", held, narrow)
	}
}
