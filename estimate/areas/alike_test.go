package areas

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/internal/truth"
)

// TestAlikePackets: a few packets share one digest and take ten times as long as the others. At a report's end
// nothing tells which of them are on their way, and the interval says so. Where some of them are lost, those
// that come may be any. So they may where all packets of a cell share one, or a few that are beside others.
func TestAlikePackets(t *testing.T) {
	for _, c := range [][3]float64{{0, 100, 1}, {0.05, 100, 1}, {0.05, 20, 1}, {0, 20, 1 << 13}} {
		if n, of := alikeReports(c[0], c[1], uint64(c[2])); n > allowedOutside || of < 40 {
			t.Errorf("loss %v of %v: %d of %d reports are outside of 97.5 %%", c[0], c[1], n, of)
		}
	}
	if n, of := alikeReports(0, 100, 0); n > allowedOutside { // the control: all digests differ
		t.Errorf("unlike: %d of %d reports are outside of 97.5 %%", n, of)
	}
}

// Packets are lost that are like one which crossed an earlier cut. They did not age before they were sent, though one more crossed
// between, one came in the interval in which another was sent, or digests are narrow: nor are they on their way for less than none.
func TestAlikeOneAfterAnother(t *testing.T) {
	const tenth, cuts = areaLength / 10, 40
	first, second := truth.Packet{Flow: 1, Sent: 9 * tenth, Received: 11 * tenth}, truth.Packet{Flow: 1, Sent: 25 * tenth, Lost: true}
	for i, packets := range [][]truth.Packet{{first, {Flow: 2, Sent: 19 * tenth, Received: 21 * tenth}, second},
		{{Flow: 1, Sent: 9 * tenth, Received: 31 * tenth}, {Flow: 2, Sent: 15 * tenth, Received: 22 * tenth}, second},
		{first, {Flow: 1, Sent: 15 * tenth, Lost: true}}} {
		for k := range int64(20 * cuts) {
			at := k/20*areaLength + 3*tenth
			packets = append(packets, truth.Packet{Cell: 1 + int(k%20), Flow: uint64(3 + k), Sent: at, Received: at + 2*tenth})
		}
		a := New([]int{21}, 64, uint8(32-16*(i/2)))
		passAreas(a, 21, packets, cuts)
		got, err := a.Transit(0, 10, nil)
		early, want := slices.ContainsFunc(a.alone, func(x Alone) bool { return x.Delay < 0 }), truth.Of(packets, 0, 10*areaLength).PerPacket()
		if err != nil || early || math.Abs(got.Mean-want) > 2*got.Error+1 || got.Error > tenth/5 {
			t.Errorf("%d: %.0f ± %.0f, want %.0f: %v; some came before they were sent: %v", i, got.Mean, got.Error, want, err, early)
		}
	}
}

// allowedOutside is a number that 60 reports exceed once in 1,000 times if 97.5 % of them hold.
const allowedOutside = 6

// alikeReports returns how many reports of one second were outside, of how many. Packets of each tenth of a
// second fall into few cells. If they are 20, all of a cell are alike, or have one of so many digests.
func alikeReports(loss, each float64, digests uint64) (outside, answered int) {
	const cells, cuts, report = 256, 630, 10
	r := rand.New(rand.NewPCG(9, digests))
	packets := areaTraffic(r, cells, cuts, each/cells, 0.05, 0, 0)
	if each == 20 {
		packets = areaTraffic(r, cells, cuts, each/cells, 0.7, 0, loss/5)
	}
	for i := range packets {
		if p := &packets[i]; digests > 1 {
			p.Received, p.Flow = p.Sent+2*areaLength+(p.Received-p.Sent)/4, p.Flow%digests
			p.Cell = int(p.Flow % cells)
		} else if each == 20 {
			p.Flow = uint64(p.Cell)
		} else if r.Float64() < 0.01 {
			if p.Received, p.Lost = p.Received+6*areaLength/10, r.Float64() < loss; digests > 0 {
				p.Cell, p.Flow = 0, 0xabcdef01
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
		if levels := 2.24 * 1.15 * x.DelayError; levels < error {
			mean, error = x.Delay, levels
		}
		if math.Abs(mean-truth.Of(packets, int64(to-report)*areaLength, int64(to)*areaLength).MeanDelay()) > error+1e-5 {
			outside++
		}
	}
	return outside, answered
}
