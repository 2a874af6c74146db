package paper

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

// paperExample is §6.2.1's: M = 1 MB, α = 0.95, β = 0.05. The paper does not
// print t_min, t_max and the part of delays in time stamps. t_max follows from
// its m = 20 by eq. (15); t_min is then the smallest flow that eq. (22)
// allows, delays being as large as they can be.
func paperExample() Requirements {
	return Requirements{
		MemoryBits: 1 << 23, Reliability: 0.95, Error: 0.05, DelayPart: 1,
		Most: 3_514_677, Least: 85_003.2604580,
	}
}

func TestPaperExample(t *testing.T) {
	p, err := paperExample().Solve()
	if err != nil {
		t.Fatal(err)
	}
	// b = 19, m = 20, n = 455,334, T = 8·10¹⁰: eq. (13) holds with b = 18.42.
	near := func(name string, got, want, relative float64) {
		t.Helper()
		if math.Abs(got-want) > relative*want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	near("n", p.Counters, 455_334, 1e-5)
	near("b", p.Bits, 8388608.0/455_334, 1e-5)
	near("m", p.PerFlow, 20, 1e-3)
	near("T", p.Threshold, 8e10, 1e-3)
	c, err := p.Rounded(Config{Vectors: 1})
	if err != nil || c.Bits != 19 || c.PerFlow != 20 || c.Counters < 455_330 || c.Counters > 455_338 {
		t.Errorf("%+v, %v", c, err)
	}
	// All four equations hold.
	r := paperExample()
	near("eq. (13)", p.Counters*p.Bits, r.MemoryBits, 1e-9)
	near("eq. (14)", math.Log2(p.Threshold/p.Counters)+1, p.Bits, 1e-9)
	near("eq. (15)", r.Most/p.PerFlow+(p.Threshold-r.Most)/p.Counters, math.Exp2(p.Bits)-1, 1e-9)
	n, m, k := p.Counters, p.PerFlow, math.Sqrt2*math.Erfinv(0.975)
	right := k * k * n * n * m / ((n - m) * (n - m)) *
		(r.Least/m*(1-1/m) + (p.Threshold-r.Least)/n*(1-1/n))
	near("eq. (22)", 0.05*0.05*r.Least*r.Least, right, 1e-9)
	// As eqs. (21) and (22) are printed, with n−m for (n−m)², B would be over
	// 1 even for the largest flow: no flow is measured at all.
	printed := right * (n - m) / (r.Most * r.Most)
	if b := math.Sqrt(printed); b < 0.5 {
		t.Errorf("as printed, B is %v for the largest flow", b)
	}
	// What it promises for storage: less than 0.1 bit a packet if time stamps
	// are below about a thousand units.
	near("time stamp at 0.1 bit a packet", 0.1/p.BitsPerPacket(1), 954, 1e-2)
}

// How little eq. (22) says about n: see Solve.
func TestIllConditioned(t *testing.T) {
	r := paperExample()
	p, err := r.Solve()
	if err != nil {
		t.Fatal(err)
	}
	r.Least *= 1.001
	q, err := r.Solve()
	if err != nil {
		t.Fatal(err)
	}
	if change := q.Counters/p.Counters - 1; change < 0.02 {
		t.Errorf("t_min larger by 0.1 %% makes n larger by %.1f %%", 100*change)
	}
}

// More memory gives a threshold larger in proportion (Fig. 4), but hardly
// other storage per packet: the paper has it fall with memory (Fig. 3), and
// too little to see (Fig. 10).
func TestMemory(t *testing.T) {
	r := paperExample()
	base, err := r.Solve()
	if err != nil {
		t.Fatal(err)
	}
	for _, factor := range []float64{2, 10, 100} {
		r.MemoryBits = (1 << 23) * factor
		p, err := r.Solve()
		if err != nil {
			t.Fatalf("%v times the memory: %v", factor, err)
		}
		threshold := p.Threshold / base.Threshold / factor
		storage := p.BitsPerPacket(1) / base.BitsPerPacket(1)
		t.Logf("%g times the memory: %+v, %.1f %% more storage a packet", factor, p, 100*(storage-1))
		if math.Abs(threshold-1) > 0.05 || math.Abs(storage-1) > 0.05 {
			t.Errorf("%g times the memory: threshold %g and storage per packet %g times as in proportion", factor, threshold, storage)
		}
	}
}

func TestRequirementErrors(t *testing.T) {
	for _, tt := range []struct {
		change func(*Requirements)
		want   string
	}{
		{func(r *Requirements) { r.MemoryBits = 0 }, "MemoryBits is 0"},
		{func(r *Requirements) { r.Reliability = 1 }, "Reliability is 1"},
		{func(r *Requirements) { r.Error = math.NaN() }, "Error is NaN"},
		{func(r *Requirements) { r.DelayPart = 0 }, "DelayPart is 0"},
		{func(r *Requirements) { r.Least = -1 }, "Least is -1"},
		{func(r *Requirements) { r.Most = r.Least / 2 }, "Most is"},
		{func(r *Requirements) { r.Least /= 10 }, "accurate enough for flows as small"},
		{func(r *Requirements) { r.Error = 0.5 }, "every number of counters"},
		// A delay that is a thousandth of the clock.
		{func(r *Requirements) { r.DelayPart = 1e-3 }, "accurate enough for flows as small"},
	} {
		r := paperExample()
		tt.change(&r)
		if _, err := r.Solve(); !errors.Is(err, estimate.ErrConfig) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want an ErrConfig with %q", r, err, tt.want)
		}
	}
}
