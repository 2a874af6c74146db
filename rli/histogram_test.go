package rli

import (
	"math"
	"testing"
)

// TestBuckets: each delay is in the bucket between whose edges it is, and the
// buckets are as narrow as promised.
func TestBuckets(t *testing.T) {
	const buckets = 200
	for _, floor := range []int64{8, 16, 100, 1 << 20} {
		for i := 1; i < buckets-1; i++ {
			low, high := edge(i, floor), edge(i+1, floor)
			if high > low*9/8 {
				t.Fatalf("floor %d: bucket %d from %v to %v", floor, i, low, high)
			}
			if first := int64(math.Ceil(low)); float64(first) < high {
				for _, d := range []int64{first, int64(math.Ceil(high)) - 1} {
					if got := bucketOf(d, floor, buckets); got != i {
						t.Fatalf("floor %d: %d in bucket %d, want %d of %v to %v", floor, d, got, i, low, high)
					}
				}
			}
		}
		for d, want := range map[int64]int{math.MinInt64: 0, -1: 0, 0: 0, floor - 1: 0, floor: 1, math.MaxInt64: buckets - 1} {
			if got := bucketOf(d, floor, buckets); got != want {
				t.Errorf("floor %d: %d in bucket %d, want %d", floor, d, got, want)
			}
		}
	}
}

// TestRank: of 100 delays, k of them do not exceed that of k hundredths.
func TestRank(t *testing.T) {
	const floor = 64
	one := make([]uint32, 102)
	for i := range 100 {
		one[1+i] = 1
	}
	for k := 1; k <= 100; k++ {
		for _, step := range []struct {
			p    float64
			rank int
		}{{float64(k) / 100, k}, {(float64(k) - 0.5) / 100, k}, {float64(k)/100 - 1e-9, k}, {min(float64(k)/100+1e-9, 1), min(k+1, 100)}} {
			want := step.rank
			if got := rank(one, step.p); got != want {
				t.Errorf("quantile %v is %v, want %v, of rank %d", step.p, got, want, step.rank)
			}
		}
	}
}
