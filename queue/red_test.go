package queue

import (
	"math"
	"testing"
)

var testRED = REDConfig{Min: 4000, Max: 9000, Weight: 0.002, Probability: 0.02, Typical: 500}

// The published point of counting: at a constant average the number of
// packets from one drop to the next is uniform. With the count as in figure 2,
// which is 1 for the first packet after a drop, it is so over 1 to 1/p_b-1.
func TestREDGapsAreUniform(t *testing.T) {
	const (
		inverse = 100 // 1/p_b at the average of 6,500
		gaps    = 50_000
	)
	bins := func(drop func() bool) []int {
		seen := make([]int, inverse+1)
		gap, first := 0, true
		for n := 0; n < gaps; {
			gap++
			if !drop() {
				continue
			}
			if !first { // the first gap began with a count of -1
				seen[min(gap, inverse)]++
				n++
			}
			gap, first = 0, false
		}
		return seen[1:]
	}
	// The statistic is chi-square of inverse-2 degrees of freedom; its limit
	// is that by Wilson and Hilferty for false alarms of 1 in 10^6 (4.75
	// deviations).
	const freedom = inverse - 2
	limit := freedom * math.Pow(1-2.0/(9*freedom)+4.75*math.Sqrt(2.0/(9*freedom)), 3)
	check := func(seen []int) float64 {
		sum := 0.0
		for _, n := range seen[:inverse-1] {
			want := float64(gaps) / (inverse - 1)
			sum += (float64(n) - want) * (float64(n) - want) / want
		}
		return sum + float64(seen[inverse-1])*1e9 // none may be longer
	}

	g := newGate(QueueConfig{RED: testRED}, 1e9, 3)
	g.average = 6500
	if x := check(bins(func() bool { return g.admit(0, 6500) == Early })); x > limit {
		t.Errorf("gaps between drops: chi-square %.1f, limit %.1f", x, limit)
	}
	random := generator(3, 0)
	if x := check(bins(func() bool { return uniform(random) < 1.0/inverse })); x <= limit {
		t.Errorf("negative control: gaps without count pass, chi-square %.1f, limit %.1f", x, limit)
	}
}
