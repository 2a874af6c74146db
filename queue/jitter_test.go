package queue

import (
	"math"
	"slices"
	"testing"
)

// Delays are drawn one by one, from the least on; without overtaking each packet
// waits for those before, and with it they come out sorted.
func TestJitterIsReference(t *testing.T) {
	packets := tracked(3000, 11)
	for _, reorder := range []bool{false, true} {
		c := JitterConfig{Least: 300, Mean: 2000, Reorder: reorder, Seed: 4}
		random := generator(4, 'J')
		want := slices.Clone(packets)
		for i := range want {
			want[i].Fate = Passed
			want[i].Time += 300 + int64(-2000*math.Log(uniform(random)))
			if !reorder && i > 0 {
				want[i].Time = max(want[i].Time, want[i-1].Time)
			}
		}
		slices.SortStableFunc(want, func(a, b Packet) int { return int(a.Time - b.Time) })
		j := must(NewJitter(c))(t)
		got, _ := drive(j, packets, 3)
		if !slices.Equal(got, want) {
			t.Errorf("reorder %v: the packets that come out are others", reorder)
		}
	}
}
