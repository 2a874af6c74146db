package areas

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/internal/truth"
)

// Once all packets that were lost are taken out, every window is exact, and each loss is counted once. 7 beside one is 7 again.
func TestTakeOut(t *testing.T) {
	const cells, cuts, window, settling = 50, 120, 10, 10
	random := rand.New(rand.NewPCG(27, 1))
	packets := areaTraffic(random, cells, cuts, 2, 0.3, 0, 0.1)
	a, pairs := New([]int{cells}, 64, 32), pairsOf(cells, packets, cuts)
	few, total, want := New([]int{1}, 64, 24), 0, 0
	pass(few, []CellPair{{SentTally: 7<<32 | 1}})
	pass(few, []CellPair{{SentTally: 5<<32 | 2}})
	if n := few.TakeOut([]Lost{{0, 2, 1<<24 - 2, 0}}); n != 1 || !few.repeats(&few.cells[0], 1) {
		t.Error("another 7 is not seen")
	}
	for from := 0; from+window+settling <= cuts; from += window {
		for a.Cuts() < from+window+settling {
			pass(a, pairs[a.Cuts()])
		}
		a.Transit(from, from+window, nil)
		var lost []Lost
		a.Trails(from, from+window, func(trail Trail) {
			for _, p := range packets {
				if p.Cell == trail.Cell && p.Lost && p.Sent >= trail.From && p.Sent < trail.Until {
					lost = append(lost, lostOf(p))
				}
			}
		})
		if n, again := a.TakeOut(lost), a.TakeOut(lost); again != 0 {
			t.Errorf("%d of %d taken out again", again, n)
		}
		of := truth.Of(packets, int64(from)*areaLength, int64(from+window)*areaLength)
		got, err := a.Transit(from, from+window, nil)
		if err != nil || math.Abs(got.Mean*got.Received-of.Way) > 1e-6*of.Way {
			t.Errorf("from cut %d: %v for %v packets, want %+v; %v", from, got.Mean*got.Received, got.Received, of, err)
		}
		l, extra, _ := a.Losses(from + window)
		total += l - extra
		a.Settle(from + window)
		want += of.Lost
		if total != want {
			t.Errorf("by cut %d: %d lost, want %d", from+window, total, want)
		}
	}
}

func lostOf(p truth.Packet) Lost {
	return Lost{p.Cell, int(p.Sent/areaLength) + 1, uint32(p.Flow), p.Sent}
}
