package trace

import (
	"errors"
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue"
)

// limit is how many standard deviations a normal variable exceeds with a
// chance of 1 in 10^6.
const limit = 4.9

// chiSquareLimit is what chi-square exceeds with that chance, by Wilson and
// Hilferty.
func chiSquareLimit(freedom float64) float64 {
	return freedom * math.Pow(1-2/(9*freedom)+limit*math.Sqrt(2/(9*freedom)), 3)
}

// tLimit is the same for Student's t, by the first terms of its expansion in
// the normal quantile (Abramowitz and Stegun 26.7.5).
func tLimit(freedom float64) float64 {
	z := limit
	z3, z5 := z*z*z, z*z*z*z*z
	return z + (z3+z)/(4*freedom) + (5*z5+16*z3+3*z)/(96*freedom*freedom)
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
	return PoissonConfig{Load: Load{1e9, load}, Sizes: IMIX, Flows: 50, Start: 1e18, Seed: seed}
}

func onOffOf(load float64, seed uint64) OnOffConfig {
	return OnOffConfig{
		Load: Load{1e9, load}, Sizes: IMIX, Senders: 40, Peak: 1e8,
		On: 1e6, OnShape: 1.5, OffShape: 1.5, Start: 1e18, Seed: seed,
	}
}

func flowsOf(load float64, seed uint64) FlowsConfig {
	c := DefaultFlows
	c.Load, c.Start, c.Seed = Load{1e9, load}, 1e18, seed
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

// Times never decrease and begin at Start, packets are numbered and named
// apart, and the same seed gives the same packets.
func TestSourcesAreReproducible(t *testing.T) {
	first, again, other := sources(t, 1), sources(t, 1), sources(t, 2)
	for name := range first {
		var p, q, r queue.Packet
		seen, flows := map[hashing.Packet]bool{}, map[hashing.Flow]bool{}
		last, same := int64(1e18), 0
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

// The first packets, so that a change of the stream does not go unseen:
// recorded experiments could not be run again.
func TestGoldenPackets(t *testing.T) {
	source := must(NewPoisson(PoissonConfig{Load: Load{1e9, 0.5}, Sizes: IMIX, Flows: 10, Seed: 1}))(t)
	for i, want := range []struct {
		time  int64
		bytes int32
	}{{11017, 40}, {13826, 576}, {20893, 576}, {31781, 40}} {
		var p queue.Packet
		source.Next(&p)
		if p.Time != want.time || p.Bytes != want.bytes {
			t.Errorf("packet %d: %d bytes at %d, want %d at %d", i, p.Bytes, p.Time, want.bytes, want.time)
		}
	}
}

// utilisation is what a source offers over a time, of a link of 1 Gb/s.
func utilisation(source queue.Source, from, over int64) float64 {
	bytes := 0.0
	var p queue.Packet
	for source.Next(&p); p.Time < from+over; source.Next(&p) {
		bytes += float64(p.Bytes)
	}
	return bytes * 8 / float64(over)
}

// tScore is by how many of its own standard errors the mean of x is off.
func tScore(x []float64, want float64) float64 {
	mean, squares := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		squares += (v - mean) * (v - mean)
	}
	n := float64(len(x))
	return (mean - want) / math.Sqrt(squares/(n-1)/n)
}

// The load is the one asked for from the first packet on: many short runs of
// different seeds average to it.
func TestUtilisation(t *testing.T) {
	const seeds, over = 300, 20e6
	// Times on of a packet or two, looked at for a few packets' time: it would
	// show if a packet were cut short or the start were not stationary.
	const brief, briefSeeds = 200e3, 3000
	for _, load := range []float64{0.2, 0.55, 0.88} {
		runs := map[string]func(seed uint64) queue.Source{
			"poisson": func(seed uint64) queue.Source { return must(NewPoisson(poissonOf(load, seed)))(t) },
			"onoff":   func(seed uint64) queue.Source { return must(NewOnOff(onOffOf(load, seed)))(t) },
			"flows":   func(seed uint64) queue.Source { return must(NewFlows(flowsOf(load, seed)))(t) },
		}
		score := func(run func(uint64) queue.Source, seeds uint64, over int64) float64 {
			var got []float64
			for seed := range seeds {
				got = append(got, utilisation(run(seed), 1e18, over))
			}
			return tScore(got, load)
		}
		choppy := func(seed uint64) queue.Source {
			c := onOffOf(load, seed)
			c.On = 50e3
			return must(NewOnOff(c))(t)
		}
		if z := score(choppy, briefSeeds, brief); math.Abs(z) > tLimit(briefSeeds-1) {
			t.Errorf("short times on at %v: %.1f deviations off", load, z)
		}
		for name, run := range runs {
			if z := score(run, seeds, over); math.Abs(z) > tLimit(seeds-1) {
				t.Errorf("%s at %v: %.1f deviations off", name, load, z)
			}
		}
		cold := func(seed uint64) queue.Source {
			c := flowsOf(load, seed)
			c.Warmup = 0
			return must(NewFlows(c))(t)
		}
		if z := score(cold, seeds, over); math.Abs(z) <= tLimit(seeds-1) {
			t.Errorf("negative control: flows without warm-up at %v pass, %.1f deviations", load, z)
		}
	}
}

// Counts of Poisson arrivals in equal windows have a variance equal to their
// mean; those of evenly spaced packets do not.
func TestPoissonDispersion(t *testing.T) {
	const windows, perWindow = 5000, 40
	check := func(source queue.Source, window float64) float64 {
		counts := make([]float64, windows)
		var p queue.Packet
		for source.Next(&p); ; source.Next(&p) {
			i := int(float64(p.Time-1e18) / window)
			if i >= windows {
				break
			}
			counts[i]++
		}
		sum := 0.0
		for _, n := range counts {
			sum += (n - perWindow) * (n - perWindow) / perWindow
		}
		return (sum - windows) / math.Sqrt(windows*(2+1.0/perWindow)) // the variance of a Poisson variable's squared score
	}
	poisson := must(NewPoisson(poissonOf(0.5, 3)))(t)
	if z := check(poisson, perWindow*poisson.gap); math.Abs(z) > limit {
		t.Errorf("counts are %.1f deviations from Poisson", z)
	}
	var even []queue.Packet
	for i := range windows*perWindow + 1 {
		even = append(even, queue.Packet{Time: 1e18 + int64(i)*1000})
	}
	even[len(even)-1].Time += 1e9
	if z := check(Replay(even), perWindow*1000); math.Abs(z) <= limit {
		t.Errorf("negative control: evenly spaced packets pass, %.1f deviations", z)
	}
}

// Pareto times on and off make traffic that averaging over longer times does
// not smooth as it does Poisson's: the variance of the mean falls with the
// time m as m^-(shape-1), not as 1/m.
func TestOnOffIsBursty(t *testing.T) {
	const seeds = 60
	slope := func(source queue.Source) float64 {
		const fine, windows, coarse = 10e6, 1 << 10, 1 << 5
		counts := make([]float64, windows)
		var p queue.Packet
		for source.Next(&p); p.Time < 1e18+fine*windows; source.Next(&p) {
			counts[(p.Time-1e18)/fine] += float64(p.Bytes)
		}
		spread := func(m int) float64 {
			var means []float64
			for i := 0; i < windows; i += m {
				sum := 0.0
				for _, n := range counts[i : i+m] {
					sum += n / float64(m)
				}
				means = append(means, sum)
			}
			mean, squares := 0.0, 0.0
			for _, v := range means {
				mean += v / float64(len(means))
			}
			for _, v := range means {
				squares += (v - mean) * (v - mean)
			}
			return squares / float64(len(means)-1)
		}
		return math.Log(spread(coarse)/spread(1)) / math.Log(coarse)
	}
	score := func(run func(seed uint64) queue.Source) float64 {
		var slopes []float64
		for seed := range uint64(seeds) {
			slopes = append(slopes, slope(run(seed)))
		}
		return tScore(slopes, -1)
	}
	z := score(func(seed uint64) queue.Source { return must(NewOnOff(onOffOf(0.02, seed)))(t) })
	if z < tLimit(seeds-1) {
		t.Errorf("on-off traffic is only %.1f deviations from smoothing like Poisson", z)
	}
	if z := score(func(seed uint64) queue.Source { return must(NewPoisson(poissonOf(0.02, seed)))(t) }); z > tLimit(seeds-1) {
		t.Errorf("negative control: Poisson traffic passes for bursty, %.1f deviations", z)
	}
}

// What is left of a period looked into at random, against the definition
// integrated numerically.
func TestParetoResidual(t *testing.T) {
	const n = 200_000
	p := paretoOf(100, 1.5)
	exceeds := func(x float64) float64 {
		if x <= p.scale {
			return 1
		}
		return math.Pow(x/p.scale, -p.shape)
	}
	random := generator(4, 0)
	draws := make([]float64, n)
	for i := range draws {
		draws[i] = p.residual(random)
	}
	for _, x := range []float64{10, 33, 40, 100, 1000} {
		want := 0.0
		const steps = 100_000
		for i := range steps {
			want += exceeds((float64(i)+0.5)*x/steps) * x / steps / 100
		}
		got := 0.0
		for _, d := range draws {
			if d <= x {
				got += 1.0 / n
			}
		}
		if z := (got - want) / math.Sqrt(want*(1-want)/n); math.Abs(z) > limit {
			t.Errorf("P(residual ≤ %v) = %.4f, want %.4f: %.1f deviations", x, got, want, z)
		}
	}
}

func TestMix(t *testing.T) {
	for _, c := range []struct {
		mix  Mix
		mean float64
	}{{IMIX, (7*40 + 4*576 + 1500) / 12.0}, {Bimodal, 770}, {Fixed(64), 64}, {Mix{{}, {100, 1}, {}, {300, 3}}, 250}} {
		if got := c.mix.Mean(); math.Abs(got-c.mean) > 1e-12*c.mean {
			t.Errorf("%v: mean %v, want %v", c.mix, got, c.mean)
		}
		const n = 120_000
		s := newSizer(c.mix, 1)
		seen := map[int32]float64{}
		for range n {
			seen[s.draw()]++
		}
		total := 0.0
		for _, size := range c.mix {
			total += size.Weight
		}
		sum, sizes := 0.0, 0
		for _, size := range c.mix {
			if size.Weight == 0 {
				continue
			}
			sizes++
			want := n * size.Weight / total
			sum += (seen[size.Bytes] - want) * (seen[size.Bytes] - want) / want
			delete(seen, size.Bytes)
		}
		if sizes > 1 && sum > chiSquareLimit(float64(sizes-1)) || len(seen) > 0 {
			t.Errorf("%v: chi-square %.1f, other sizes %v", c.mix, sum, seen)
		}
	}
}

func TestMergeScaleReplay(t *testing.T) {
	replayed := func(times ...int64) queue.Source {
		var packets []queue.Packet
		for i, at := range times {
			packets = append(packets, queue.Packet{Time: at, Seq: uint64(i), Tag: uint8(len(times))})
		}
		return Replay(packets)
	}
	merged := Merge(replayed(10, 20, 20, 50), replayed(5, 20), replayed())
	scaled := must(Scale(merged, 2.5))(t)
	var p queue.Packet
	for i, want := range []struct {
		time int64
		tag  uint8
		seq  uint64
	}{{5, 2, 0}, {17, 4, 0}, {42, 4, 1}, {42, 4, 2}, {42, 2, 1}, {117, 4, 3}} {
		if !scaled.Next(&p) || p.Time != want.time || p.Sent != want.time || p.Tag != want.tag || p.Seq != want.seq {
			t.Errorf("packet %d: %+v, want %+v", i, p, want)
		}
	}
	if scaled.Next(&p) || scaled.Next(&p) {
		t.Errorf("%+v beyond the end", p)
	}
	for _, factor := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := Scale(merged, factor); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("factor %v: %v", factor, err)
		}
	}
}

func TestSourceConfigErrors(t *testing.T) {
	poisson := func(change func(*PoissonConfig)) error {
		c := poissonOf(0.5, 1)
		change(&c)
		_, err := NewPoisson(c)
		return err
	}
	onoff := func(change func(*OnOffConfig)) error {
		c := onOffOf(0.5, 1)
		change(&c)
		_, err := NewOnOff(c)
		return err
	}
	flows := func(change func(*FlowsConfig)) error {
		c := flowsOf(0.5, 1)
		change(&c)
		_, err := NewFlows(c)
		return err
	}
	for name, err := range map[string]error{
		"rate":        poisson(func(c *PoissonConfig) { c.Load.Rate = 0 }),
		"utilisation": poisson(func(c *PoissonConfig) { c.Load.Utilisation = 0 }),
		"NaN":         poisson(func(c *PoissonConfig) { c.Load.Utilisation = math.NaN() }),
		"no sizes":    poisson(func(c *PoissonConfig) { c.Sizes = Mix{} }),
		"size 0":      poisson(func(c *PoissonConfig) { c.Sizes = Fixed(0) }),
		"size":        poisson(func(c *PoissonConfig) { c.Sizes = Fixed(65536) }),
		"weight":      poisson(func(c *PoissonConfig) { c.Sizes[0].Weight = -1 }),
		"flows":       poisson(func(c *PoissonConfig) { c.Flows = 0 }),
		"onoff rate":  onoff(func(c *OnOffConfig) { c.Load.Rate = -1 }),
		"onoff sizes": onoff(func(c *OnOffConfig) { c.Sizes = Mix{} }),
		"senders":     onoff(func(c *OnOffConfig) { c.Senders = 0 }),
		"peak":        onoff(func(c *OnOffConfig) { c.Peak = 0 }),
		"on":          onoff(func(c *OnOffConfig) { c.On = 0 }),
		"on shape":    onoff(func(c *OnOffConfig) { c.OnShape = 1 }),
		"off shape":   onoff(func(c *OnOffConfig) { c.OffShape = math.NaN() }),
		"too few":     onoff(func(c *OnOffConfig) { c.Senders = 5 }),
		"flows rate":  flows(func(c *FlowsConfig) { c.Load.Rate = 0 }),
		"flows sizes": flows(func(c *FlowsConfig) { c.Sizes = Mix{} }),
		"flows shape": flows(func(c *FlowsConfig) { c.Shape = 0 }),
		"least":       flows(func(c *FlowsConfig) { c.Least = 0 }),
		"most":        flows(func(c *FlowsConfig) { c.Most = 1 }),
		"RTT":         flows(func(c *FlowsConfig) { c.RTT = 0 }),
		"access":      flows(func(c *FlowsConfig) { c.Access = 0 }),
		"window":      flows(func(c *FlowsConfig) { c.Window = 0 }),
		"backoff":     flows(func(c *FlowsConfig) { c.Backoff = -0.1 }),
		"warm-up":     flows(func(c *FlowsConfig) { c.Warmup = -1 }),
	} {
		if !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("%s: %v", name, err)
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

func BenchmarkSources(b *testing.B) {
	for _, name := range []string{"poisson", "onoff", "flows"} {
		b.Run(name, func(b *testing.B) {
			source := sources(b, 1)[name]
			var p queue.Packet
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				source.Next(&p)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mpkt/s")
		})
	}
}
