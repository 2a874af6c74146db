package areas

import (
	"math"
	"math/rand/v2"
	"testing"
)

// By how many packets on their way two cuts differ follows from what was sent, received and lost in between. Losses
// come in bursts, and cells know only to within many cuts when they lost a packet; all of them together know it. The
// control takes it that as many of those sent were lost in each cut.
func TestNet(t *testing.T) {
	const cells, cuts, window, settling = 2000, 300, 10, 40
	random := rand.New(rand.NewPCG(4, 4))
	packets, burst := areaTraffic(random, cells, cuts, 0.2, 1, 0, 0), make([]bool, cuts)
	for k := range burst {
		burst[k] = random.IntN(12) == 0
	}
	onWay := make([]float64, cuts+1)
	for i := range packets {
		p := &packets[i]
		if p.Lost = burst[p.Sent/areaLength] && random.IntN(4) == 0; p.Lost {
			continue
		}
		for k := p.Sent/areaLength + 1; k <= cuts && k*areaLength <= p.Received; k++ {
			onWay[k]++
		}
	}
	a, windows, wrong, control := New([]int{cells}, 64, 32), 0, 0, 0
	a.Begin(0)
	for k, pairs := range pairsOf(cells, packets, cuts) {
		pass(a, pairs)
		from := k + 1 - window - settling
		if from < 4*window || from%window != 0 {
			continue
		}
		if _, err := a.Transit(from, from+window, nil); err != nil {
			t.Fatal(err)
		}
		more, variance := a.losses.net()
		want, even := onWay[from+window]-onWay[from], 0.0
		for i := from + 1 - a.before; i <= from+window-a.before; i++ {
			even += float64(a.net[i]) - a.losses.share*a.losses.groups[0].cuts[i].all
		}
		a.Settle(from + window)
		if windows++; math.Abs(more-want) > 3*math.Sqrt(variance) {
			wrong++
		}
		if math.Abs(even-want) > 3*math.Sqrt(variance) {
			control++
		}
	}
	if 20*wrong > windows || 4*control < windows {
		t.Errorf("%d of %d wrong, %d if losses are even", wrong, windows, control)
	}
}

// Where what is known of a window contradicts the rates of all cuts, that alone tells what was lost in it: 16 of 400
// packets, and so 40 of 1,000, though hardly any were before. Where it does not, rates tell.
func TestNetAfterLossesBegan(t *testing.T) {
	for known, want := range map[float64]float64{16: 0, 0: 40} {
		l := losses{
			areas: &Areas{net: []int{0, 40}}, to: 1, share: 1e-4, even: 100, burst: 1,
			sent: []float64{0, 400}, lost: []float64{0, known}, groups: []groupLosses{{cuts: []cutLosses{{}, {all: 1000}}}},
		}
		if more, variance := l.net(); math.Abs(more-want) > 3*math.Sqrt(variance) || variance > 400 {
			t.Errorf("%v known to be lost: %.1f ± %.1f more are on their way, want %v", known, more, math.Sqrt(variance), want)
		}
	}
}
