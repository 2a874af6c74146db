package areas

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/internal/truth"
)

// What is lost is known where few packets pass, most of which are lost for a while, and where packets
// take no time. Taken to be on their way, those lost made means twice as great, for the next reports, too.
func TestFewPackets(t *testing.T) {
	const cells, cuts, window, settling = 2000, 260, 10, 60
	for _, delay := range []int64{0, 6 * areaLength} {
		random := rand.New(rand.NewPCG(16, 21))
		packets, want := areaTraffic(random, cells, cuts, 5.0/cells, 0, 0, 0), 0
		for i := range packets {
			p, second := &packets[i], packets[i].Sent/areaLength/window
			p.Received = p.Sent + delay + delay/200*int64(random.IntN(3))
			if p.Lost = (second == 10 || second == 11) && i%10 > 1; p.Lost {
				want++
			}
		}
		a, next, lost := New([]int{cells}, 64, 32), 0, 0
		for k, pairs := range pairsOf(cells, packets, cuts) {
			pass(a, pairs)
			for ; k+1-next-window >= min(a.Settling(settling), settling); next += window {
				got, err := a.Transit(next, next+window, nil)
				l, extra, _ := a.Losses(next + window)
				lost += l
				a.Settle(next + window)
				of := truth.Of(packets, int64(next)*areaLength, int64(next+window)*areaLength)
				if extra > 0 || next > 0 && (err != nil || math.Abs(got.Mean-of.PerPacket()) > 3*got.Error+1e-6*of.PerPacket()) {
					t.Errorf("%d, from cut %d: %v ± %v, want %v; %d extra, %v", delay, next, got.Mean, got.Error, of.PerPacket(), extra, err)
				}
			}
		}
		if lost != want {
			t.Errorf("%d: %d lost, want %d", delay, lost, want)
		}
	}
}

// A patience of years, as a clock that was set may make it, takes no longer to weigh.
func TestPatienceIsBounded(t *testing.T) {
	const cells, cuts = 20, 30
	a := New([]int{cells}, 64, 32)
	passAreas(a, cells, areaTraffic(rand.New(rand.NewPCG(1, 1)), cells, cuts, 1, 0.1, 0, 0.05), cuts)
	if _, err := a.Transit(0, 10, nil); err != nil {
		t.Fatal(err)
	}
	a.patience = 1e18
	clear(a.losses.groups[0].near)
	if got := a.losses.free(0, 3, 4); got <= 0 || got > 1 {
		t.Errorf("a chance of %v", got)
	}
}
