package areas

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/truth"
)

// Spans that lost nothing are a choice of the short ones, and those near to others that
// lost nothing. Weighed by their chance they stand for all: means have no bias beyond
// their errors. The control weighs all alike.
func TestExactSpansStandForAll(t *testing.T) {
	const cells, cuts, window, settling = 300, 360, 10, 60
	const limit = 3.5 // standard errors: by chance one case in a thousand exceeds it
	for _, c := range []struct{ each, delay, slow, loss float64 }{{0.3, 2, 0, 0.05}, {0.2, 2, 0, 0.2}} {
		random := rand.New(rand.NewPCG(3, uint64(1000*c.loss)))
		packets := areaTraffic(random, cells, cuts, c.each, c.delay, c.slow, c.loss)
		a := New([]int{cells}, 64, 32)
		var bias, plain estimate.Moments
		missed := 0
		for from := 40; from+window+settling <= cuts; from += window {
			passAreas(a, cells, packets, from+window+settling)
			of := truth.Of(packets, int64(from)*areaLength, int64(from+window)*areaLength)
			got, err := a.Transit(from, from+window, nil)
			if err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
			want, r := of.PerPacket(), &a.window.groups[0]
			if math.Abs(got.Mean-want) > 3*got.Error {
				missed++
			}
			bias.Add(got.Mean/want - 1)
			plain.Add(r.plain.a/r.plain.n/want - 1)
		}
		error := bias.StdDev() / math.Sqrt(float64(bias.N()))
		t.Logf("%+v: bias %+.4f, without weights %+.4f, each ± %.4f; %d of %d missed", c, bias.Mean(), plain.Mean(), error, missed, bias.N())
		if math.Abs(bias.Mean()) > limit*error || missed > 1 {
			t.Errorf("%+v: a bias of %+.4f ± %.4f, and %d missed", c, bias.Mean(), error, missed)
		}
		if math.Abs(plain.Mean()) < limit*error {
			t.Errorf("%+v: the control has no bias: %+.4f ± %.4f", c, plain.Mean(), error)
		}
	}
}

// Packets that were alone stand for all, also those that were sent long before the window,
// while more were on their way: here they take 7 cuts, up to 5 cuts before it. The control
// weighs all alike.
func TestAloneStandForAllAfterAStep(t *testing.T) {
	const cells, from, to, cuts, slow, limit = 4000, 40, 50, 70, 7 * areaLength, 4
	packets := areaTraffic(rand.New(rand.NewPCG(5, 5)), cells, cuts, 0.1, 0.3, 0, 0)
	var all, alone, weights [2]float64 // the others, and slow ones
	for i := range packets {
		p, k := &packets[i], 0
		if p.Sent < (from-5)*areaLength {
			p.Received, k = p.Received+slow, 1
		}
		if p.Received >= from*areaLength && p.Received < to*areaLength {
			all[k]++
		}
	}
	a, squares := New([]int{cells}, 64, 32), 0.0
	passAreas(a, cells, packets, cuts)
	_, err := a.Transit(from, to, func(seen []Alone) {
		for _, x := range seen {
			k := int(min(x.Delay/slow, 1))
			alone[k]++
			weights[k] += x.Weight
			squares += sq(x.Weight)
		}
	})
	share := func(of [2]float64) float64 { return of[1] / (of[0] + of[1]) }
	want := share(all)
	error := math.Sqrt(want * (1 - want) * squares / sq(weights[0]+weights[1]))
	t.Logf("%.4f are slow; by those alone %.4f ± %.4f, without weights %.4f", want, share(weights), error, share(alone))
	if err != nil || math.Abs(share(weights)-want) > limit*error || math.Abs(share(alone)-want) < limit*error {
		t.Errorf("not by weights, or without: %v", err)
	}
}
