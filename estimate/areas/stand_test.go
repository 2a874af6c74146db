package areas

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Packets that were alone stand for all, also those that were sent long before the window, while more were on their
// way: here they take 7 cuts, up to 5 cuts before it. The control weighs all alike.
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
