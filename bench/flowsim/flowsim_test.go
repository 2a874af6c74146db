package flowsim

import (
	"math"
	"slices"
	"testing"
)

func interval(t *testing.T) *Traffic {
	t.Helper()
	return New(Config{Flows: 2_000, Packets: 40_000, Shape: 0.8, Seconds: 60, Seed: 7})
}

func TestTruth(t *testing.T) {
	traffic := interval(t)
	var packets int
	var total, slow float64
	for i := range traffic.Flows {
		f := &traffic.Flows[i]
		sum, n := 0.0, 0
		for p := range f.Packets() {
			if p.Sent < 0 || p.Sent >= 60e9 || p.Delay < int64(f.fast) {
				t.Fatalf("flow %d: packet %+v outside the interval or faster than %g", i, p, f.fast)
			}
			sum += float64(p.Delay)
			n++
		}
		mean := sum / float64(n)
		if n != f.Size || math.Abs(f.Mean-mean) > 1e-3 {
			t.Fatalf("flow %d: %d packets of %g, says %d of %g", i, n, mean, f.Size, f.Mean)
		}
		packets += n
		total += sum
		slow += f.slowly
	}
	if packets != traffic.Packets || packets > 40_000 || packets < 40_000-2_000 {
		t.Errorf("%d packets, says %d, asked for 40,000", packets, traffic.Packets)
	}
	if math.Abs(traffic.Mean-total/float64(packets)) > 1e-3 {
		t.Errorf("mean %g, says %g", total/float64(packets), traffic.Mean)
	}
	// 0.6 × 0.1 + 0.4 × 0.9, with a deviation of 0.39 a flow; five of them.
	if got := slow / 2000; math.Abs(got-0.42) > 5*0.39/math.Sqrt(2000) {
		t.Errorf("%g of packets are slow, want about 0.42", got)
	}
}

func TestInOrder(t *testing.T) {
	traffic := interval(t)
	type sent struct {
		flow   *Flow
		packet Packet
	}
	var got, want []sent
	for f, p := range traffic.InOrder() {
		got = append(got, sent{f, p})
	}
	for i := range traffic.Flows {
		for p := range traffic.Flows[i].Packets() {
			want = append(want, sent{&traffic.Flows[i], p})
		}
	}
	slices.SortStableFunc(want, func(a, b sent) int { return int(max(-1, min(1, a.packet.Sent-b.packet.Sent))) })
	if !slices.Equal(got, want) {
		t.Error("not the packets of all flows in order of time")
	}
	ids := map[uint64]bool{}
	for _, s := range got {
		ids[uint64(s.packet.ID)] = true
	}
	if len(ids) != len(got) {
		t.Errorf("%d packets have %d identities", len(got), len(ids))
	}
	for range traffic.InOrder() {
		break // must not panic
	}
}

func TestSizesAreParetoUpToTheCut(t *testing.T) {
	traffic := New(Config{Flows: 20_000, Packets: 1_000_000, Shape: 0.8, Seconds: 60, Seed: 3})
	for _, x := range []int{2, 10, 50, 500} {
		large := 0
		for i := range traffic.Flows {
			if traffic.Flows[i].Size >= x {
				large++
			}
		}
		// Six deviations of a binomial: one run in 5·10^8 fails by chance.
		p := math.Pow(float64(x), -0.8)
		if want := p * 20_000; math.Abs(float64(large)-want) > 6*math.Sqrt(want*(1-p)) {
			t.Errorf("%d flows of %d packets or more, want about %.0f", large, x, want)
		}
	}
	if largest := slices.MaxFunc(traffic.Flows, func(a, b Flow) int { return a.Size - b.Size }).Size; largest > traffic.Cut {
		t.Errorf("a flow of %d packets, beyond the cut at %d", largest, traffic.Cut)
	}
}
