package areas

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/internal/truth"
)

// A few packets come twice, where packets take many intervals and few cells have others on their way: later
// reports, without a copy, are right all the same, from the start of a session on. The control counts every packet
// received as one that was sent, so that copies are missing from all that is on its way later.
func TestCopiesDoNotLinger(t *testing.T) {
	const cells, cuts, settling, deviations = 2000, 260, 90, 3.3
	windows, wrong, lingers := 0, 0, 0
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 21))
		packets := areaTraffic(random, cells, cuts, 3.0/cells, 8, 0, 0)
		pairs, copies := pairsOf(cells, packets, cuts), make([]float64, cuts+1)
		for _, p := range packets {
			if k := p.Received / areaLength; random.IntN(20) == 0 && k < cuts {
				c := &pairs[k][p.Cell]
				c.ReceivedSum += uint64(p.Received)
				c.ReceivedTally += p.Flow<<32 | 1
				copies[k]++
			}
		}
		a, next, before := New([]int{cells}, 64, 32), 0, 0.0
		a.Begin(0)
		a.UnderWay()
		for k := range pairs {
			pass(a, pairs[k])
			for ; k-next >= min(a.Settling(settling), settling); next++ {
				got, err := a.Transit(next, next+1, nil)
				_, extra, _ := a.Losses(next + 1)
				a.Settle(next + 1)
				of := truth.Of(packets, int64(next)*areaLength, int64(next+1)*areaLength)
				if before += copies[next]; copies[next] > 0 || extra > 0 || err != nil || of.Received == 0 {
					continue
				}
				windows++
				owed := math.Sqrt(owedVariance(&[2]OnWay{got.First, got.Last}))
				way, error := got.Mean*got.Received, got.Error*got.Received
				delays := way + got.First.Ages - got.Last.Ages
				if error = deviations*math.Hypot(error, owed) + 1e-6*of.Way; math.Abs(delays-of.Delays) > error {
					wrong++
				}
				if before*areaLength > error {
					lingers++
				}
			}
		}
	}
	if limit := windows / 100; wrong > limit || lingers < 10*limit {
		t.Errorf("%d of %d reports are wrong, want at most %d; %d if copies linger", wrong, windows, limit, lingers)
	}
}
