package perflow

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Means between two times are those of the samples there, one by one.
func TestBetween(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var list Samples
	for range 50 {
		list = append(list, Sample{random.Int64N(100), random.Float64()})
	}
	between := list.Between()
	for range 1000 {
		from := random.Int64N(120) - 10
		to := from + random.Int64N(20)
		sum, n, before := 0.0, 0.0, list[0].Value
		for _, s := range list {
			if s.At >= from && s.At <= to {
				sum += s.Value
				n++
			}
			if s.At < from {
				before = s.Value
			}
		}
		want := before
		if n > 0 {
			want = sum / n
		}
		if got := between(from, to); math.Abs(got-want) > 1e-12 {
			t.Fatalf("from %d to %d: %v, want %v", from, to, got, want)
		}
	}
	if !math.IsNaN(Samples(nil).Between()(1, 2)) {
		t.Error("a mean of nothing")
	}
}
