package figlds

import (
	"math"
	"testing"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/lds"
)

func oneInterval(t *testing.T) *interval {
	t.Helper()
	return newInterval(&experiment.Run{Seed: 7, Quick: true}, 0)
}

// Sketches in which hardly any flow shares all of its cells are exact, and lost packets are missing at the far
// end alone.
func TestObserve(t *testing.T) {
	iv := oneInterval(t)
	c := lds.DefaultConfig
	c.Rates = [lds.MaxRows]float64{1, 1, 1, 1}
	c.Columns = 1 << 18
	const share = 0.01
	s := iv.observe(share, c)
	var wrong, lost int
	for i := range iv.Flows {
		losses := uint64(0)
		for p := range iv.Flows[i].Packets() {
			if iv.loses(p, share) {
				losses++
			}
		}
		lost += int(losses)
		r, err := lds.Estimate(s[0].up, s[0].down, iv.keys[i])
		if r.Sent != uint64(iv.Flows[i].Size) || r.Lost != losses || losses == 0 && (err != nil || math.Abs(r.Mean-iv.Flows[i].Mean) > 1e-3) {
			wrong++
		}
	}
	// A flow meets another in a row with probability 0.054; in all, 8.6e-6.
	if wrong > 3 {
		t.Errorf("%d flows are not as they were sent", wrong)
	}
	n := float64(iv.Packets)
	if want := share * n; math.Abs(float64(lost)-want) > 6*math.Sqrt(want) {
		t.Errorf("%d packets lost, want about %.0f", lost, want)
	}
}
