package paper

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/traffic"
)

// close9 reports whether got is want to nine digits.
func close9(got, want float64) bool {
	return math.Abs(got-want) <= 1e-9*math.Max(math.Abs(want), 1)
}

// Theorem 2, eqs. (3) and (4), from single counters and by hand.
func TestTheorem2(t *testing.T) {
	all := traffic.Flows(11, 500)
	up, down := recorded(t, paperConfig, all)
	f := traffic.Truths(all, 50)[0]
	sum := func(e *Epoch) float64 {
		c := e.config
		own, total := 0.0, 0.0
		for j := range c.PerFlow {
			h := uint64(uint32(hashing.Mix(uint64(f.Flow)^c.Identity, uint64(j)))) * uint64(c.Counters) >> 32
			own += float64(e.Counter(0, int(h)))
		}
		for i := range c.Counters {
			total += float64(e.Counter(0, i))
		}
		n, m := float64(c.Counters), float64(c.PerFlow)
		return 1 / (n - m) * (n*own - m*total)
	}
	want := (sum(down.Current()) - sum(up.Current())) / float64(f.Packets)
	q := newQuery(t, up.Current(), down.Current())
	a, b := q.gather(f.Flow)
	got, err := Theorem2(a, b, f.Packets)
	if err != nil || math.Abs(got-want) > 1e-6*math.Abs(want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

// Points of different sizes can be compared, but what used to cancel is noise.
func TestDifferentSizes(t *testing.T) {
	all := traffic.Flows(12, 1000)
	larger := paperConfig
	larger.Counters, larger.PerFlow, larger.Bits = 7000, 30, 62
	up, down := recorded(t, paperConfig, all)
	_, odd := recorded(t, larger, all)
	q, o := newQuery(t, up.Current(), down.Current()), newQuery(t, odd.Current(), odd.Current())
	list := traffic.Truths(all, 20)
	var x, y []float64
	for _, f := range list {
		a, b := q.gather(f.Flow)
		same, err := Theorem2(a, b, f.Packets)
		if err != nil {
			t.Fatal(err)
		}
		_, c := o.gather(f.Flow)
		other, err := Theorem2(a, c, f.Packets)
		if err != nil {
			t.Fatal(err)
		}
		x = append(x, estimate.RelativeError(same, f.Mean))
		y = append(y, estimate.RelativeError(other, f.Mean))
		if _, err := Theorem2Interval(a, c, f.Packets, 0.9); err != nil {
			t.Error(err)
		}
		if _, err := ClosedForm(a, c, f.Packets); !errors.Is(err, estimate.ErrMismatch) {
			t.Errorf("deviation from %d and %d counters: %v", a.config.PerFlow, c.config.PerFlow, err)
		}
	}
	same, other := median(x), median(y)
	t.Logf("median error of %d flows: %.2f with equal sizes, %.2f with others", len(list), same, other)
	if other < 2*same {
		t.Error("sizes make no difference")
	}
	// A flow by itself has no noise, and any sizes do.
	var lone []passage
	for i := range 100 {
		lone = append(lone, passage{Flow: 7, Packet: hashing.Packet(hashing.Mix(uint64(i), 1)), Sent: int64(i) * 1000, At: int64(i)*1000 + 250})
	}
	up, _ = recorded(t, paperConfig, lone)
	_, odd = recorded(t, larger, lone)
	a, _ := newQuery(t, up.Current(), up.Current()).gather(7)
	_, c := newQuery(t, odd.Current(), odd.Current()).gather(7)
	if got, err := Theorem2(a, c, 100); err != nil || math.Abs(got-250) > 1e-3 {
		t.Errorf("a lone flow: %v, %v, want 250", got, err)
	}
}

// Eq. (7): what is left in a counter is the likeliest value of a binomial, found
// here by trying them all.
func TestNoisePerCounter(t *testing.T) {
	for _, tt := range []struct{ total, counters int }{{1000, 10}, {5000, 13}, {300, 100}, {50, 100}, {0, 100}, {100_000, 7}} {
		logBinomial := func(k int) float64 {
			a, _ := math.Lgamma(float64(tt.total) + 1)
			b, _ := math.Lgamma(float64(k) + 1)
			c, _ := math.Lgamma(float64(tt.total-k) + 1)
			p := 1 / float64(tt.counters)
			return a - b - c + float64(k)*math.Log(p) + float64(tt.total-k)*math.Log1p(-p)
		}
		best := 0
		for k := range tt.total + 1 {
			if logBinomial(k) > logBinomial(best) {
				best = k
			}
		}
		got := noisePerCounter(float64(tt.total), float64(tt.counters))
		if math.Abs(got-float64(best)) > 1 {
			t.Errorf("%d units over %d counters: %v, the likeliest is %d", tt.total, tt.counters, got, best)
		}
		if got > 0 {
			left := math.Log(float64(tt.counters) - 1)
			right := estimate.Digamma(float64(tt.total)-got+1) - estimate.Digamma(got+1)
			if math.Abs(left-right) > 1e-9 {
				t.Errorf("%d units over %d counters: eq. (7) says %v = %v", tt.total, tt.counters, left, right)
			}
		}
	}
	// The paper's own size, and larger: the mean counter.
	for _, total := range []float64{8e10, 1e15, 1e18} {
		if got, want := noisePerCounter(total, 455_334), total/455_334; math.Abs(got-want) > 1e-4*want+1 {
			t.Errorf("%g units: %v, want about %v", total, got, want)
		}
	}
}

// Theorem 3 shifts all counters of a flow by one number.
func TestDenoiseShifts(t *testing.T) {
	all := traffic.Flows(13, 500)
	up, down := recorded(t, paperConfig, all)
	a, _ := newQuery(t, up.Current(), down.Current()).gather(traffic.Truths(all, 50)[0].Flow)
	w, err := a.Denoise(nil, 0)
	if err != nil || len(w) != paperConfig.PerFlow {
		t.Fatalf("%d counters, %v", len(w), err)
	}
	for j, x := range a.own(0) {
		if shift := float64(x) - w[j]; !close9(shift, float64(a.own(0)[0])-w[0]) || shift <= 0 {
			t.Errorf("counter %d is shifted by %v, the first by %v", j, shift, float64(a.own(0)[0])-w[0])
		}
	}
	if _, err := a.Denoise(nil, 1); !errors.Is(err, estimate.ErrConfig) {
		t.Errorf("a vector that is not there: %v", err)
	}
}

// The average of eq. (10) over all pairings is m·S²: exactly over the three
// pairings of four counters, and more nearly the more random ones there are.
func TestVirtualRepetitions(t *testing.T) {
	x := []float64{3, -1, 4, 15}
	all := 0.0
	for _, p := range [][4]int{{0, 1, 2, 3}, {0, 2, 1, 3}, {0, 3, 1, 2}} {
		a, b := x[p[0]]-x[p[1]], x[p[2]]-x[p[3]]
		all += (a*a + b*b) / 3
	}
	if got := squares(x) * float64(len(x)); !close9(got, all) {
		t.Errorf("m·S² is %v, the average of all pairings %v", got, all)
	}

	// A lone flow, of which the deviation comes out positive.
	rng := rand.New(rand.NewPCG(14, 1))
	var lone []passage
	for i := range 300 {
		lone = append(lone, passage{Flow: 7, Packet: hashing.Packet(rng.Uint64()), Sent: int64(i) * 1000,
			At: int64(i)*1000 + int64(1e5*rng.ExpFloat64())})
	}
	up, down := recorded(t, paperConfig, lone)
	a, b := newQuery(t, up.Current(), down.Current()).gather(7)
	want, err := ClosedForm(a, b, 300)
	if err != nil {
		t.Fatal(err)
	}
	previous := math.Inf(1)
	for _, repetitions := range []int{1, 100, 10_000} {
		worst := 0.0
		for seed := range uint64(5) {
			got, err := VirtualRepetitions(a, b, 300, repetitions, seed)
			if errors.Is(err, estimate.ErrNoSamples) {
				got = 0 // the variance came out negative, as it may
			} else if err != nil {
				t.Fatal(err)
			}
			worst = max(worst, math.Abs(got-want)/want)
		}
		if worst > previous/2 {
			t.Errorf("%d repetitions: off by %v, with fewer by %v", repetitions, worst, previous)
		}
		previous = worst
	}
	if previous > 0.02 {
		t.Errorf("10,000 repetitions are %v off their limit", previous)
	}
	if _, err := VirtualRepetitions(a, b, 300, 0, 1); !errors.Is(err, estimate.ErrConfig) {
		t.Errorf("no repetitions: %v", err)
	}
}

// The mean square of delays is estimated without bias where there is no noise:
// the mean of many lone flows is theirs, within 4 standard errors of that mean
// as observed (a false alarm in 15,000). Without dividing the packets among
// the counters at random it would not be.
func TestDeviationUnbiased(t *testing.T) {
	c := paperConfig
	rng := rand.New(rand.NewPCG(15, 1))
	check := func(biased bool) bool {
		var got, want estimate.Moments
		for range 400 {
			a, _ := New(c)
			b, _ := New(c)
			var square float64
			for i := range 60 {
				p := hashing.Packet(rng.Uint64())
				if biased {
					p = hashing.Packet(uint64(i%c.PerFlow)<<32/uint64(c.PerFlow) + 1)
				}
				d := int64(1000 * rng.ExpFloat64())
				a.Update(1, p, int64(i)*100)
				b.Update(1, p, int64(i)*100+d)
				square += float64(d) * float64(d) / 60
			}
			u, d := newQuery(t, a.Current(), b.Current()).gather(1)
			delays, p, err := denoisedDelays(u, d, 60)
			if err != nil {
				t.Fatal(err)
			}
			got.Add(squares(delays) * float64(len(delays)) / p)
			want.Add(square)
		}
		limit := 4 * math.Sqrt((got.Variance()+want.Variance())/400)
		return math.Abs(got.Mean()-want.Mean()) <= limit
	}
	if !check(false) {
		t.Error("the mean square is biased")
	}
	if check(true) {
		t.Error("packets in turn pass, so the test tests nothing")
	}
}

func TestPaperErrors(t *testing.T) {
	all := traffic.Flows(16, 100)
	up, down := recorded(t, paperConfig, all)
	a, b := newQuery(t, up.Current(), down.Current()).gather(1)
	if _, err := Theorem2(a, b, 0); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("no packets: %v", err)
	}
	if _, err := Theorem2Interval(a, b, 10, 1); !errors.Is(err, estimate.ErrConfig) {
		t.Errorf("certainty: %v", err)
	}
	coarse := paperConfig
	coarse.Shift = 3
	c, _ := NewSubvector(coarse)
	c.Reset(1)
	if _, err := Theorem2(a, c, 10); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("another unit: %v", err)
	}
}
