package trace

import (
	"math"
	"testing"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
)

// limit is how many standard deviations a normal variable exceeds with a chance of 1 in 10^6.
const limit = 4.9

// heavy begins a test that does a lot in one goroutine: there the race detector, which runs with -short, has
// nothing to find, and takes ten times as long.
func heavy(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a lot to do in one goroutine")
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func poissonOf(load float64, seed uint64) PoissonConfig {
	return PoissonConfig{Load: Load{1e9, load}, Sizes: IMIX, Flows: 50, Seed: seed}
}

func onOffOf(load float64, seed uint64) OnOffConfig {
	return OnOffConfig{
		Load: Load{1e9, load}, Sizes: IMIX, Senders: 40, Peak: 1e8,
		On: 1e6, OnShape: 1.5, OffShape: 1.5, Seed: seed,
	}
}

func flowsOf(load float64, seed uint64) FlowsConfig {
	c := DefaultFlows
	c.Load, c.Seed = Load{1e9, load}, seed
	c.Most, c.Warmup = 1000, 100e6
	return c
}

func sources(t testing.TB, seed uint64) map[string]queue.Source {
	return map[string]queue.Source{
		"poisson": must(NewPoisson(poissonOf(0.5, seed)))(t),
		"onoff":   must(NewOnOff(onOffOf(0.5, seed)))(t),
		"flows":   must(NewFlows(flowsOf(0.5, seed)))(t),
	}
}

// Times never decrease and begin at 0, packets have numbers and identities of their own, and the same seed
// gives the same packets.
func TestSourcesAreReproducible(t *testing.T) {
	first, again, other := sources(t, 1), sources(t, 1), sources(t, 2)
	for name := range first {
		var p, q, r queue.Packet
		seen, flows := map[hashing.Packet]bool{}, map[hashing.Flow]bool{}
		last, same := int64(0), 0
		for i := range 50_000 {
			r.Tag = 99 // to be overwritten
			if !first[name].Next(&p) || !again[name].Next(&q) || !other[name].Next(&r) {
				t.Fatalf("%s ended", name)
			}
			if p != q {
				t.Fatalf("%s: packet %d: %+v, then %+v", name, i, p, q)
			}
			if p.Time < last || p.Sent != p.Time || p.Seq != uint64(i) || seen[p.ID] || r.Tag != 0 {
				t.Fatalf("%s: packet %d: %+v after one at %d", name, i, p, last)
			}
			last = p.Time
			seen[p.ID], flows[p.Flow] = true, true
			if p.ID == r.ID || p.Time == r.Time {
				same++
			}
		}
		if same > 100 {
			t.Errorf("%s: another seed gives %d packets alike", name, same)
		}
		if len(flows) < 30 || name == "poisson" && len(flows) != 50 { // a silence can outlast the test
			t.Errorf("%s: %d flows", name, len(flows))
		}
	}
}

func TestSourcesDoNotAllocate(t *testing.T) {
	for name, source := range sources(t, 5) {
		var p queue.Packet
		for range 200_000 { // flows under way come and go: let their number have been large
			source.Next(&p)
		}
		if got := testing.AllocsPerRun(20_000, func() { source.Next(&p) }); got != 0 {
			t.Errorf("%s: %v allocations a packet", name, got)
		}
	}
}

// Poisson packets arrive independently, so that the variance of their number in a given time is its mean,
// however long that is. Pareto times on and off make bursts of all lengths: the longer the time, the more the
// number varies.
func TestDispersion(t *testing.T) {
	heavy(t)
	const fine, windows, coarse, seeds = 10e6, 1 << 10, 1 << 5, 60
	dispersion := func(counts []float64, m int) float64 { // variance over mean
		sum, squares := 0.0, 0.0
		for i := 0; i < windows; i += m {
			n := 0.0
			for _, c := range counts[i : i+m] {
				n += c
			}
			sum, squares = sum+n, squares+n*n
		}
		n := float64(windows / m)
		return (squares - sum*sum/n) / (n - 1) / (sum / n)
	}
	score := func(run func(seed uint64) queue.Source) (one, growth float64) {
		var at, grown []float64
		for seed := range uint64(seeds) {
			counts := make([]float64, windows)
			var p queue.Packet
			for source := run(seed); source.Next(&p) && p.Time < fine*windows; {
				counts[(p.Time)/fine]++
			}
			at = append(at, dispersion(counts, 1))
			grown = append(grown, math.Log(dispersion(counts, coarse)/dispersion(counts, 1)))
		}
		return tScore(at, 1), tScore(grown, 0)
	}
	most := tLimit(seeds - 1)
	one, growth := score(func(seed uint64) queue.Source { return must(NewPoisson(poissonOf(0.02, seed)))(t) })
	if math.Abs(one) > most || growth > most {
		t.Errorf("Poisson packets vary by other than their mean, %.1f deviations, and more over longer times, %.1f", one, growth)
	}
	one, growth = score(func(seed uint64) queue.Source { return must(NewOnOff(onOffOf(0.02, seed)))(t) })
	if math.Abs(one) < most || growth < most {
		t.Errorf("on–off packets vary by their mean, %.1f deviations, or no more over longer times, %.1f", one, growth)
	}
}
