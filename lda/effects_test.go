package lda

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// grouped is traffic a share of which comes in groups of identical packets.
type grouped struct {
	packets, group         int
	share, loss, otherLoss float64
}

// pass passes it, 5 µs apart: copies take 150 µs, others 40, and 10 more on average.
func (g grouped) pass(t *testing.T, seed uint64) (up, down *Aggregator, truth estimate.Moments, late estimate.Empirical) {
	t.Helper()
	up, down = mustNewFor(t, DefaultConfig), mustNewFor(t, DefaultConfig)
	rng := rand.New(rand.NewPCG(seed, 99))
	var delays []float64
	begins := g.share / float64(g.group) / (1 - g.share + g.share/float64(g.group))
	for i := 0; i < g.packets; {
		p, size, delay, loss := hashing.Packet(rng.Uint64()), 1, 40e3, g.otherLoss
		if rng.Float64() < begins {
			size, delay, loss = g.group, 150e3, g.loss
		}
		for range size {
			now, d := int64(i)*5000, int64(delay+10e3*rng.ExpFloat64())
			i++
			if up.Update(p, now); rng.Float64() >= loss {
				down.Update(p, now+d)
				truth.Add(float64(d))
				delays = append(delays, float64(d))
			}
		}
	}
	return up, down, truth, estimate.NewEmpirical(delays)
}

// Groups too small to overfill a cell leave every interval right.
func TestSmallGroups(t *testing.T) {
	const runs = 4
	blindMean, blindDeviation, blindQuantile := 0, 0, 0
	for _, g := range []grouped{
		{packets: 50_000, group: 10, share: 0.05, loss: 0.05}, {packets: 200_000, group: 2, share: 0.01},
		{packets: 200_000, group: 10, share: 0.05, loss: 0.05}, {packets: 100_000, group: 10, share: 0.05},
		{packets: 100_000, group: 2, share: 0.1},
	} {
		for seed := range uint64(runs) {
			up, down, truth, late := g.pass(t, seed)
			r, err := Estimate(up, down)
			if err != nil {
				t.Errorf("%+v: %v", g, err)
				continue
			}
			mean, deviation := truth.Mean(), math.Sqrt(truth.PopulationVariance())
			if i := r.MeanInterval(0.999); !i.Contains(mean) {
				t.Errorf("%+v: mean %.0f in %.0f to %.0f, want %.0f", g, r.Mean, i.Low, i.High, mean)
			}
			if i := r.DeviationInterval(0.999); !i.Contains(deviation) {
				t.Errorf("%+v: deviation %.0f in %.0f to %.0f, want %.0f", g, r.StdDev, i.Low, i.High, deviation)
			}
			d := accumulated(t, up, down)
			// The slowest of all packets are the copies, if there are more than 4 %.
			p96, _ := late.Quantile(0.96)
			if q, err := d.Quantile(0.96, 0.999); err == nil && !q.Interval.Contains(p96) {
				t.Errorf("%+v: p96 in %+v, want %.0f", g, q.Interval, p96)
			}
			// Negative control: without what counts reveal, they miss.
			r.Repeats, r.behind, r.calmDegrees, d.distribution.strays = 0, figure{}, 0, 0
			if i := r.MeanInterval(0.95); !i.Contains(mean) {
				blindMean++
			}
			if i := r.DeviationInterval(0.999); !i.Contains(deviation) {
				blindDeviation++
			}
			if q, err := d.Quantile(0.96, 0.999); err == nil && !q.Interval.Contains(p96) {
				blindQuantile++
			}
		}
	}
	if blindMean < runs || blindDeviation < 3*runs || blindQuantile < runs {
		t.Errorf("of %d intervals that see no repeats %d of means miss, %d of deviations and %d of quantiles",
			5*runs, blindMean, blindDeviation, blindQuantile)
	}
}

// Copies that are slow and often lost may be too few for any figure to be sure of them, and
// still move the mean by several half widths. Where most are lost, pairs of lost packets tell.
func TestFewLostCopies(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const runs = 20
	for _, g := range []grouped{{group: 2, loss: 0.05}, {group: 5, loss: 0.3}, {group: 2, loss: 0.9}, {group: 5, loss: 0.9}} {
		g.packets, g.share = 100_000, 0.02
		held, blind := 0, 0
		for seed := range uint64(runs) {
			up, down, truth, _ := g.pass(t, seed)
			r, err := Estimate(up, down)
			if err != nil {
				t.Fatalf("%+v: %v", g, err)
			}
			if r.MeanInterval(0.95).Contains(truth.Mean()) {
				held++
			}
			if r.behind = (figure{}); !r.MeanInterval(0.95).Contains(truth.Mean()) { // negative control
				blind++
			}
		}
		if held < runs-2 || blind < runs/2 {
			t.Errorf("%+v: %d of %d held; without what counts say of copies %d missed", g, held, runs, blind)
		}
	}
}

// Packets that do not repeat raise hardly an alarm, whatever is lost.
func TestNoFalseRepeats(t *testing.T) {
	alarms, open := 0, 0 // by chance: once in 18; of quantiles once in 10 to 25
	for seed := range uint64(30) {
		g := grouped{[]int{20, 1000, 20_000, 150_000}[seed%4], 1, 0.05 * float64(seed%2), 0.3, 0.02 * float64(seed%3)}
		up, down, _, _ := g.pass(t, seed)
		r, err := Estimate(up, down)
		d := accumulated(t, up, down)
		if err != nil || r.Repeats > 0 || seed%2 == 0 && r.calmDegrees > 0 {
			t.Errorf("%+v: %+v, %v", g, r, err)
		}
		if r.behind.value != 0 {
			alarms++
		}
		if d.distribute().strays > 0 {
			open++
		}
	}
	if alarms > 7 || open > 10 { // once in 1,000 times
		t.Errorf("of 30 %d raise an alarm, and quantiles are open in %d", alarms, open)
	}
}
