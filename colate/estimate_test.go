package colate

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// Theorem 2, Estimate without and with counts, and joint decoding, each better
// than the one before.
func TestAccuracy(t *testing.T) {
	all := traffic(2, 15_000)
	list := truths(all, 200)
	errorsOf := func(c Config) (linear, best, together, deviation float64) {
		up, down := recorded(t, c, all)
		q := newQuery(t, up.Current(), down.Current())
		var records []joint.FlowRecord
		every := truths(all, 1)
		for _, f := range every {
			records = append(records, joint.FlowRecord{Flow: f.flow, Packets: float64(f.packets)})
		}
		decoded, err := Joint(context.Background(), q.upEpochs, q.downEpochs, records, joint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var l, b, j, d []float64
		for i, f := range every {
			if f.packets < 200 {
				continue
			}
			r := q.estimate(f)
			l = append(l, estimate.RelativeError(r.Linear, f.mean))
			b = append(b, estimate.RelativeError(r.Mean, f.mean))
			j = append(j, estimate.RelativeError(decoded.Mean[i], f.mean))
			if r.DeviationKnown {
				d = append(d, estimate.RelativeError(r.StdDev, f.deviation))
			} else {
				d = append(d, math.Inf(1))
			}
		}
		return median(l), median(b), median(j), median(d)
	}
	linear, trimmed, together, deviation := errorsOf(plainConfig)
	_, counted, jointCounted, countedDeviation := errorsOf(countedConfig)
	t.Logf("%d flows: Theorem 2 %.3f, trimmed %.3f, counted %.3f, joint %.3f, joint and counted %.3f; deviation %.2f, counted %.2f",
		len(list), linear, trimmed, counted, together, jointCounted, deviation, countedDeviation)
	if !(trimmed < linear/1.5 && counted < trimmed && together < linear/5 && jointCounted < together) {
		t.Errorf("median errors not in this order")
	}
	if !(countedDeviation < deviation) {
		t.Errorf("counts do not help the deviation")
	}
}

// What the counters of absent flows hold is told by the textbook's formulas.
func TestCalm(t *testing.T) {
	up, down := recorded(t, countedConfig, traffic(9, 5000))
	q := newQuery(t, up.Current(), down.Current())
	q.gather(1)
	c, err := compare(q.up, q.down)
	if err != nil {
		t.Fatal(err)
	}
	noise, err := c.background()
	if err != nil {
		t.Fatal(err)
	}
	e := estimator{&c, 5, noise}
	for _, limit := range []float64{math.Inf(1), noise.median} {
		var counts estimate.Moments
		squares, packets := 0.0, 0.0
		var sums, other [MaxPerFlow]float64
		for a := range Absent {
			for j := range c.delays(1+a, sums[:], other[:]) {
				if other[j] <= limit {
					counts.Add(other[j])
					squares += math.Pow(sums[j]-other[j]*noise.common, 2)
					packets += other[j]
				}
			}
		}
		got := e.calm(limit)
		if !close9(got.count, counts.Mean()) || !close9(got.variance, counts.PopulationVariance()) || !close9(got.dispersion, squares/packets) {
			t.Errorf("up to %v packets: %+v, want a mean of %v, a variance of %v, a dispersion of %v",
				limit, got, counts.Mean(), counts.PopulationVariance(), squares/packets)
		}
	}
}

// What others' delays add to the spread of a flow's counters is taken off: of
// flows that wait evenly, about half seem to deviate by less than nothing, so
// that it is not known. (Where nothing is taken off, next to none.)
func TestDeviationOfOthersIsTakenOff(t *testing.T) {
	all := traffic(8, 15_000)
	rng := rand.New(rand.NewPCG(8, 2))
	for f := range hashing.Flow(200) {
		for range 100 {
			at := rng.IntN(len(all))
			all[at] = passage{f, hashing.Packet(rng.Uint64()), all[at].sent, all[at].sent + 300_000}
		}
	}
	up, down := recorded(t, countedConfig, all)
	q := newQuery(t, up.Current(), down.Current())
	unknown, n := 0, 0
	for _, f := range truths(all, 80) {
		if f.flow < 200 {
			n++
			if !q.estimate(f).DeviationKnown {
				unknown++
			}
		}
	}
	if t.Logf("%d of %d not known", unknown, n); unknown < n/4 || unknown > n*3/4 {
		t.Errorf("the deviation of %d of %d even flows is not known, want about half", unknown, n)
	}
}

// With packet counts, an offset between the clocks shifts a mean by exactly
// itself and leaves the deviation.
func TestClockOffset(t *testing.T) {
	all := traffic(3, 3000)
	f := truths(all, 500)[0]
	up, down := recorded(t, countedConfig, all)
	before := newQuery(t, up.Current(), down.Current()).estimate(f)
	const offset = -2_345_678
	for i := range all {
		all[i].at += offset
	}
	up, down = recorded(t, countedConfig, all)
	after := newQuery(t, up.Current(), down.Current()).estimate(f)
	if got := after.Mean - before.Mean; math.Abs(got-offset) > 1e-6*math.Abs(offset) {
		t.Errorf("the mean moved by %v, want %v", got, offset)
	}
	if got := after.Interval.Low - before.Interval.Low; math.Abs(got-offset) > 1e-6*math.Abs(offset) {
		t.Errorf("the interval moved by %v, want %v", got, offset)
	}
	if before.DeviationKnown != after.DeviationKnown || math.Abs(after.StdDev-before.StdDev) > 1e-6*before.StdDev {
		t.Errorf("the deviation changed from %v to %v", before.StdDev, after.StdDev)
	}
}

// A flow alone at both points is measured exactly by Theorem 2 and by counts.
// Linear knows the noise from a sample of counters alone, among which are some of
// the flow's.
func TestLoneFlow(t *testing.T) {
	var all []passage
	for i := range 100 {
		all = append(all, passage{7, hashing.Packet(hashing.Mix(uint64(i), 1)), int64(i) * 1000, int64(i)*1000 + 250})
	}
	for _, c := range []Config{plainConfig, countedConfig, paperConfig} {
		up, down := recorded(t, c, all)
		q := newQuery(t, up.Current(), down.Current())
		r := q.estimate(truth{flow: 7, packets: 100})
		if !r.Interval.Contains(250) || math.Abs(r.Mean-250) > 0.01*250 || r.N != 100 || r.Counters != c.PerFlow || r.Share != 1 {
			t.Errorf("%+v: %+v, want a mean of 250 of 100 packets", c, r)
		}
		if c.CountBits > 0 && math.Abs(r.Mean-250) > 1e-6 {
			t.Errorf("with counts: mean %v", r.Mean)
		}
		if c.TimeBits > 0 {
			if got, err := Theorem2(q.up, q.down, 100); err != nil || math.Abs(got-250) > 1e-6 {
				t.Errorf("Theorem 2: %v, %v", got, err)
			}
		}
	}
}

// If points choose j independently, the noise of time stamps does not cancel.
func TestIndependentChoices(t *testing.T) {
	all := traffic(4, 3000)
	for i := range all {
		// Clocks count from some time before: here two minutes.
		all[i].sent += 120e9
		all[i].at += 120e9
	}
	list := truths(all, 20)
	medianError := func(q *query) float64 {
		var x []float64
		for _, f := range list {
			up, down := q.gather(f.flow)
			mean, err := Theorem2(up, down, f.packets)
			if err != nil {
				t.Fatal(err)
			}
			x = append(x, estimate.RelativeError(mean, f.mean))
		}
		return median(x)
	}
	up, down := recorded(t, paperConfig, all)
	agreed := medianError(newQuery(t, up.Current(), down.Current()))
	other, _ := New(paperConfig)
	for _, p := range all {
		other.Update(p.flow, hashing.Packet(hashing.Mix(uint64(p.packet), 1)), p.at)
	}
	q := newQuery(t, up.Current(), other.Current())
	independent := medianError(q)
	t.Logf("median error %.3f; with independent choices %.0f", agreed, independent)
	if independent < 1000*agreed {
		t.Errorf("independent choices are only %.0f times worse", independent/agreed)
	}
	// Estimate notices.
	if _, err := Estimate(q.up, q.down, 20); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("Estimate: %v, want ErrNoSamples", err)
	}
}

// Epochs that end apart at the two points give what one long epoch gives.
func TestEpochsAddUp(t *testing.T) {
	all := traffic(5, 3000)
	f := truths(all, 500)[0]
	up, down := recorded(t, countedConfig, all)
	want := newQuery(t, up.Current(), down.Current()).estimate(f)
	split := func(at func(passage) int64, ends ...int) (epochs []*Epoch) {
		r, _ := New(countedConfig)
		for i, p := range all {
			if slices.Contains(ends, i) {
				r.Rotate()
				e := r.Take()
				epochs = append(epochs, e)
				if err := r.Give(newEpoch(countedConfig)); err != nil {
					t.Fatal(err)
				}
			}
			r.Update(p.flow, p.packet, at(p))
		}
		return append(epochs, r.Current())
	}
	q := newQuery(t, up.Current(), down.Current())
	q.upEpochs = split(func(p passage) int64 { return p.sent }, 1000, 5000)
	q.downEpochs = split(func(p passage) int64 { return p.at }, 2000, 2001, 7000)
	if got := q.estimate(f); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Sums that are too narrow for the delays in them are refused.
func TestTooNarrow(t *testing.T) {
	all := traffic(7, 3000)
	list := truths(all, 200)
	for bits, want := range map[uint8]bool{40: false, 20: true, 18: true} {
		c := plainConfig
		c.Bits = bits
		up, down := recorded(t, c, all)
		q := newQuery(t, up.Current(), down.Current())
		refused := 0
		for _, f := range list {
			a, b := q.gather(f.flow)
			if _, err := Estimate(a, b, f.packets); errors.Is(err, estimate.ErrNoSamples) {
				refused++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if want && refused < len(list)*9/10 || !want && refused > 0 {
			t.Errorf("%d bits: %d of %d flows refused", bits, refused, len(list))
		}
	}
}

func TestEstimateErrors(t *testing.T) {
	up, down := recorded(t, plainConfig, traffic(6, 100))
	q := newQuery(t, up.Current(), down.Current())
	fresh, reset := q.up, *q.up
	reset.at = make([]uint32, len(fresh.at))
	if reset.Reset(0); fresh.Flow() != 0 || !slices.Equal(fresh.at, reset.at) {
		t.Error("a new subvector is not that of flow 0")
	}
	a, b := q.gather(1)
	if _, err := Estimate(a, b, 0); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("no packets: %v", err)
	}
	other := plainConfig
	other.Identity++
	c, _ := NewSubvector(other)
	c.Reset(1)
	if _, err := Estimate(a, c, 1); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("another seed: %v", err)
	}
	c, _ = NewSubvector(plainConfig)
	c.Reset(2)
	if _, err := Estimate(a, c, 1); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("another flow: %v", err)
	}
	c.Reset(1)
	if _, err := Estimate(a, c, 1); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("no epochs: %v", err)
	}
	if _, err := Joint(context.Background(), nil, nil, nil, joint.Options{}); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("Joint of nothing: %v", err)
	}
	if _, err := Joint(context.Background(), q.upEpochs, []*Epoch{newEpoch(other)}, nil, joint.Options{}); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("Joint of two Configs: %v", err)
	}
}

// The draws that stand for sums of a flow's delays have nearly the mean and the
// variance that they should. (Those of another shape have not.)
func TestGammaDraws(t *testing.T) {
	const n = 20_000
	for _, shape := range []float64{0.5, 1, 4, 50} {
		var m estimate.Moments
		for i := range uint64(n) {
			m.Add(gammaDraw(7, i, shape))
		}
		// The cube of a normal has the first two moments to some per cent, and
		// the mean of n draws is off by 4 deviations once in 15,000.
		nearly := func(shape float64) bool {
			return math.Abs(m.Mean()-1) < 0.03+4/math.Sqrt(n*shape) && math.Abs(m.Variance()*shape-1) < 0.2
		}
		if !nearly(shape) || nearly(2*shape) {
			t.Errorf("shape %v: mean %v, variance %v", shape, m.Mean(), m.Variance())
		}
	}
}

func TestQueryAllocations(t *testing.T) {
	for _, c := range []Config{plainConfig, countedConfig} {
		up, down := recorded(t, c, traffic(6, 1000))
		q := newQuery(t, up.Current(), down.Current())
		before := encoded(t, up.Current())
		if n := testing.AllocsPerRun(20, func() {
			q.up.Reset(1)
			q.down.Reset(1)
			if q.up.Add(up.Current()) != nil || q.down.Add(down.Current()) != nil {
				t.Fatal("not added")
			}
			if _, err := Estimate(q.up, q.down, 10); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
		sums := slices.Clone(q.up.sums)
		if _, err := Estimate(q.up, q.down, 10); err != nil || !slices.Equal(sums, q.up.sums) || !slices.Equal(before, encoded(t, up.Current())) {
			t.Errorf("Estimate changed something: %v", err)
		}
	}
}
