package areas

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/internal/truth"
)

// TestAlikePackets: a few packets share one digest and take ten times as long as the others. At a report's end
// nothing tells which of them are on their way, and the interval says so. Where some of them are lost, those
// that come may be any.
func TestAlikePackets(t *testing.T) {
	for _, loss := range []float64{0, 0.05} {
		if n, of := alikeReports(loss, 0xabcdef01); n > allowedOutside || of < 40 {
			t.Errorf("loss %v: %d of %d reports are outside of 97.5 %%", loss, n, of)
		}
	}
	if n, of := alikeReports(0, 0); n > allowedOutside { // the control: all digests differ
		t.Errorf("unlike: %d of %d reports are outside of 97.5 %%", n, of)
	}
}

// allowedOutside is a number that 60 reports exceed once in 1,000 times if 97.5 % of them hold.
const allowedOutside = 6

// alikeReports returns how many reports of one second were outside, of how many. Packets of each tenth of a
// second fall into few cells.
func alikeReports(loss float64, digest uint32) (outside, answered int) {
	const cells, cuts, report = 256, 630, 10
	r := rand.New(rand.NewPCG(9, uint64(digest)))
	packets := areaTraffic(r, cells, cuts, 100.0/cells, 0.05, 0, 0)
	for i := range packets {
		if p := &packets[i]; r.Float64() < 0.01 {
			if p.Received, p.Lost = p.Received+6*areaLength/10, r.Float64() < loss; digest != 0 {
				p.Cell, p.Flow = 0, uint64(digest)
			}
		}
	}
	a := New([]int{cells}, 64, 32)
	for k, pairs := range pairsOf(cells, packets, cuts) {
		if pass(a, pairs); k < 2*report || k%report != 4 {
			continue
		}
		to := k + 1 - 5
		x, err := a.Transit(to-report, to, nil)
		if a.Settle(to); err != nil {
			continue
		}
		answered++
		mean := x.Mean + (x.First.Ages-x.Last.Ages)/x.Received
		error := 2.24 * 1.15 * math.Hypot(x.Error, math.Sqrt(owedVariance(&[2]OnWay{x.First, x.Last}))/x.Received)
		if math.Abs(mean-truth.Of(packets, int64(to-report)*areaLength, int64(to)*areaLength).MeanDelay()) > error+1e-5 {
			outside++
		}
	}
	return outside, answered
}
