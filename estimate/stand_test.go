package estimate

import (
	"math"
	"math/rand/v2"
	"testing"

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
		a := NewAreas([]int{cells}, 64, 32)
		var bias, plain Moments
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
