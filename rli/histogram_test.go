package rli

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
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

// TestQuantile: per flow and in total, quantiles are within 1/16 of the delay
// of that rank. Buckets of twice the width must fail.
func TestQuantile(t *testing.T) {
	c := DefaultConfig
	c.Method, c.Buffer, c.Flows, c.Buckets, c.Floor = Left, 0, 8, 160, 64
	r, err := NewReceiver(c)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	delays := map[hashing.Flow][]float64{}
	var all []float64
	for i := range 50000 {
		f := hashing.Flow(i % 4)
		delay := int64(1000 * math.Exp(random.NormFloat64()*float64(f+1)/2))
		r.Reference(ReferencePacket{Sequence: uint64(i), Sent: int64(i)*1e9 - delay}, int64(i)*1e9)
		r.Update(f, 100, int64(i)*1e9)
		delays[f] = append(delays[f], float64(delay))
		all = append(all, float64(delay))
	}
	worst := 0.0
	check := func(name string, samples []float64, quantile func(float64) (float64, error)) {
		slices.Sort(samples)
		for _, p := range []float64{0, 0.01, 0.5, 0.9, 0.99, 1} {
			want := samples[max(int(math.Ceil(p*float64(len(samples))))-1, 0)]
			got, err := quantile(p)
			off := math.Abs(got-want) / want
			if want < float64(c.Floor) {
				if got != float64(c.Floor)/2 {
					t.Errorf("%s: %v of rank %v below the floor", name, got, p)
				}
				continue
			}
			if err != nil || off > 1.0/16 {
				t.Errorf("%s: %v, %v; want %v at %v", name, got, err, want, p)
			}
			worst = max(worst, off)
		}
	}
	for f, samples := range delays {
		check(fmt.Sprint("flow ", f), samples, func(p float64) (float64, error) { return r.Quantile(f, p) })
	}
	check("total", all, r.TotalQuantile)
	if worst < 1.0/32 {
		t.Errorf("the worst is off by %v: this would not tell buckets of half the number", worst)
	}
	for _, p := range []float64{-0.1, 1.1, math.NaN()} {
		if _, err := r.Quantile(1, p); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("quantile %v: %v", p, err)
		}
	}
	if _, err := r.Quantile(77, 0.5); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("no such flow: %v", err)
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
			want := (edge(step.rank, floor) + edge(step.rank+1, floor)) / 2
			if got := quantile(one, floor, step.p); got != want {
				t.Errorf("quantile %v is %v, want %v, of rank %d", step.p, got, want, step.rank)
			}
		}
	}
}

// TestLastBucket: beyond the buckets a quantile is where the last one begins.
func TestLastBucket(t *testing.T) {
	c := DefaultConfig
	c.Method, c.Buffer, c.Flows, c.Buckets, c.Floor = Left, 0, 8, 9, 64
	r, err := NewReceiver(c)
	if err != nil {
		t.Fatal(err)
	}
	r.Reference(ReferencePacket{Sent: 0}, 100000)
	r.Update(1, 100, 100000)
	if got, err := r.Quantile(1, 0.5); err != nil || got != 64+7*8 {
		t.Errorf("%v, %v", got, err)
	}
}
