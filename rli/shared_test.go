package rli

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// TestTailInTwoMebibytes: of 65,536 flows of very different numbers of packets,
// each with delays of its own, the exact quantiles are always within the bounds, and
// those that are given are near for flows of many packets. The negative control are
// the histograms as if they were the flow's alone.
func TestTailInTwoMebibytes(t *testing.T) {
	c := DefaultConfig
	c.Method, c.Buffer, c.Buckets, c.Floor, c.Histograms = Left, 0, 63, 1000, 16384
	own := c
	own.Buckets, own.Floor, own.Histograms = 0, 0, 0
	if extra := c.MemorySize() - own.MemorySize(); extra > 2<<20 {
		t.Fatalf("%d bytes", extra)
	}
	r, err := NewReceiver(c)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	delays := make(map[hashing.Flow][]float64, c.Flows)
	now, number := int64(1e9), uint64(0)
	for i := range c.Flows {
		f := hashing.Flow(random.Uint64())
		n := min(int(1+2*math.Pow(random.Float64(), -1/1.1)), 10_000)
		median, spread := 5000*math.Exp(random.NormFloat64()/2), 1.0
		if i < 5 {
			n, spread = 100_000, 0.01 // more than a counter holds
		}
		for range n {
			delay := int64(median * math.Exp(spread*random.NormFloat64()))
			r.Reference(ReferencePacket{Sequence: number, Sent: now - delay}, now)
			r.Update(f, 100, now)
			delays[f] = append(delays[f], float64(delay))
			now, number = now+1e9, number+1
		}
	}
	outside, controls, wide := 0, 0, 0
	errs := map[float64][]float64{}
	for f, all := range delays {
		slices.Sort(all)
		for _, p := range []float64{0.5, 0.99} {
			exact := all[max(int(math.Ceil(p*float64(len(all))*(1-1e-12))), 1)-1]
			in, err := r.QuantileInterval(f, p)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := r.Quantile(f, p)
			if exact < in.Low || exact >= in.High || got < in.Low || got > in.High {
				outside++
			}
			if len(all) >= 1000 {
				errs[p] = append(errs[p], math.Abs(got-exact)/exact)
				if in.High > 2*in.Low {
					wide++
				}
			}
			alone := r.shared.histogram(r.shared.of(f)[0])
			of := make([]uint32, len(alone))
			for i, n := range alone {
				of[i] = uint32(n)
			}
			if x := quantile(of, c.Floor, p); math.Abs(x-exact) > exact/8 {
				controls++
			}
		}
	}
	for p, list := range errs {
		slices.Sort(list)
		median, tail := list[len(list)/2], list[len(list)*95/100]
		t.Logf("quantile %v of %d flows of 1,000 packets and more: median error %.3f, 95th percentile %.3f", p, len(list), median, tail)
		if median > 0.06 || tail > 0.25 {
			t.Errorf("quantile %v: median error %.3f, 95th percentile %.3f", p, median, tail)
		}
	}
	if outside > 0 || controls < len(delays)/4 {
		t.Errorf("%d outside their bounds, %d of the others' too", outside, controls)
	}
	t.Logf("%d of %d bounds are wider than a factor of 2", wide, 2*len(errs[0.5]))
	shared := r.shared.scales
	if slices.Max(shared) == 0 {
		t.Error("no counter was full")
	}
}

// TestSharedMerge: two halves of the packets give what all give.
func TestSharedMerge(t *testing.T) {
	c := DefaultConfig
	c.Method, c.Buffer, c.Flows, c.Buckets, c.Floor, c.Histograms = Left, 0, 64, 32, 100, 8
	whole, _ := NewReceiver(c)
	halves := [2]*Receiver{}
	for i := range halves {
		halves[i], _ = NewReceiver(c)
	}
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 50_000 {
		now, f := int64(i+1)*1e6, hashing.Flow(random.Uint64N(40)*0x9e3779b97f4a7c15)
		p := ReferencePacket{Sequence: uint64(i), Sent: now - int64(100*math.Exp(random.NormFloat64()))}
		for _, r := range []*Receiver{whole, halves[i%2]} {
			r.Reference(p, now)
			r.Update(f, 100, now)
		}
	}
	if err := halves[0].Merge(halves[1]); err != nil {
		t.Fatal(err)
	}
	a, _ := whole.MarshalBinary()
	var decoded Receiver
	if err := decoded.UnmarshalBinary(a); err != nil || len(a) > c.EncodedSize() {
		t.Fatal(err, len(a))
	}
	for f := range whole.All() {
		want, err := whole.Quantile(f, 0.9)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []*Receiver{halves[0], &decoded} {
			if got, err := r.Quantile(f, 0.9); err != nil || got != want {
				t.Errorf("%v, %v, want %v", got, err, want)
			}
		}
	}
	// Beyond what a counter holds, shares stay.
	one, two := newShared(&c), newShared(&c)
	for i := range 400_000 {
		one.add(5, i%4/3, random.Uint64())
		two.add(5, i%4/3, random.Uint64())
	}
	one.merge(&two)
	h := one.histogram(one.of(5)[0])
	if share := float64(h[1]) / float64(h[0]+h[1]); math.Abs(share-0.25) > 0.01 {
		t.Errorf("a share of %v, want 0.25", share)
	}
	if n := math.Ldexp(float64(h[0])+float64(h[1]), int(one.scales[one.of(5)[0]])); math.Abs(n-800_000) > 20_000 {
		t.Errorf("%v packets", n)
	}
}
