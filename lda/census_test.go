package lda

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/truth"
)

// grouped is traffic a share of which comes in groups of identical packets.
type grouped struct {
	packets, group         int
	share, loss, otherLoss float64
}

// pass passes it, 5 µs apart: copies take 150 µs, others 40, and 10 more on average.
func (g grouped) pass(t *testing.T, seed uint64) (up, down *Aggregator, truth estimate.Moments, delays []float64) {
	t.Helper()
	up, down = mustNewFor(t, DefaultConfig), mustNewFor(t, DefaultConfig)
	rng := rand.New(rand.NewPCG(seed, 99))
	delays = make([]float64, 0, g.packets)
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
	return up, down, truth, delays
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
			up, down, truth, delays := g.pass(t, seed)
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
			p96, _ := estimate.NewEmpirical(delays).Quantile(0.96)
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

// Where 30 % are copies of few packets, faster or slower than others, which overfill cells or only show in pairs,
// deviations hold in one interval, and so do means in many: on their way, copies take the places of one another.
func TestStreamsOfCopies(t *testing.T) {
	var deviations, means covered
	for seed := range uint64(20) {
		up, down, rng := mustNewFor(t, DefaultConfig), mustNewFor(t, DefaultConfig), rand.New(rand.NewPCG(seed, 98))
		packets, all := make([]truth.Packet, 20_000), estimate.Moments{}
		for i := range packets {
			x, d := &packets[i], int64(5e6*rng.ExpFloat64())
			if x.Flow = rng.Uint64(); i%10 < 3 {
				x.Flow, d = uint64(hashing.Word(seed, rng.Uint64N(50<<(seed%2*4)))), d*int64(3+27*(seed/2%2))/10
			}
			x.Sent = int64(i) * 10 * cutInterval / int64(len(packets))
			x.Received = x.Sent + d
			up.Update(hashing.Packet(x.Flow), x.Sent)
			down.Update(hashing.Packet(x.Flow), x.Received)
			all.Add(float64(d))
		}
		r, err := Estimate(up, down)
		deviations.add(err == nil && r.DeviationInterval(0.95).Contains(all.StdDev()))
		run := new(cutRun)
		run.pass(t, packets, math.MaxInt64, 0)
		held, _, _ := run.ofReceived(t, 10, after(cutInterval), 0, 10*cutInterval, 0.95)
		means.join(held)
	}
	if deviations.hits < 16 || means.hits < 16 { // once in 400 times
		t.Errorf("%+v deviations and %+v means are inside 95 %%", deviations, means)
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

// If all packets change between the points, that is the answer, with or without digests, and whatever cells happen to agree.
func TestAllPacketsChanged(t *testing.T) {
	translated := func(p hashing.Packet) hashing.Packet { return hashing.Word(9, uint64(p)) }
	plain := Config{Banks: [maxBanks]Bank{{Rows: 1024}}, SumBits: 64}
	for _, c := range []Config{DefaultConfig, plain} {
		for _, packets := range []int{300, 20_000, 200_000} {
			up, down := pair(t, c, traffic(1, 1, packets, 0.01, 0), translated)
			r, err := Estimate(up, down)
			if !errors.Is(err, ErrDifferent) || r.Sent != uint64(packets) || r.Received != down.Packets() ||
				r.Lost != r.Sent-r.Received || r.Extra != 0 {
				t.Errorf("%d packets: %+v, %v", packets, r, err)
			}
			// Negative control: as few packets pass both points in an extreme loss, a
			// flood, or where half are changed; but they are the same.
			half := func(p hashing.Packet) hashing.Packet {
				if p>>8&1 == 0 {
					return p
				}
				return translated(p)
			}
			for name, f := range map[string]struct {
				n           int
				loss, birth float64
				change      func(hashing.Packet) hashing.Packet
			}{"loss": {packets, 0.9, 0, same}, "flood": {10 * packets, 0, 0.9, same}, "half": {packets, 0, 0, half}} {
				up, down := pair(t, c, traffic(2, 2, f.n, f.loss, f.birth), f.change)
				if _, err := Estimate(up, down); errors.Is(err, ErrDifferent) {
					t.Errorf("%s of %d packets: %v", name, packets, err)
				}
			}
		}
	}
}

// Losses in cells that other packets join are counted.
func TestLossesBehindJoiners(t *testing.T) {
	const runs, packets = 10, 100_000
	for _, c := range []struct{ loss, join float64 }{{0.01, 0}, {0.01, 0.001}, {0.01, 0.01}, {0.1, 0.05}, {0.3, 0.001}, {0.001, 0.1}} {
		var told, counted estimate.Moments
		for seed := range uint64(runs) {
			up, down := pair(t, DefaultConfig, traffic(seed, seed, int(packets*(1+c.join)), c.loss, c.join/(1+c.join)), same)
			r, err := Estimate(up, down)
			if err != nil && !errors.Is(err, estimate.ErrNoSamples) {
				t.Fatal(err)
			}
			told.Add(r.Loss())
			counted.Add(float64(r.Lost) / float64(r.Sent))
		}
		off := func(m *estimate.Moments) bool { return math.Abs(m.Mean()-c.loss) > 5*math.Sqrt(m.Variance()/runs) }
		if off(&told) || c.join >= 0.01 && !off(&counted) {
			t.Errorf("%+v: %.4f, counted %.4f", c, told.Mean(), counted.Mean())
		}
	}
}

// repeating passes packets of 40 ± 25 µs, a share of which are copies of one that take longer by extra, and loses some of those.
func repeating(t *testing.T, packets int, share, extra float64, lost int) (up, down *Aggregator, all estimate.Moments) {
	t.Helper()
	up, down = mustNewFor(t, DefaultConfig), mustNewFor(t, DefaultConfig)
	rng := rand.New(rand.NewPCG(12, 5))
	key := hashing.SipHashFromKey([16]byte{1, 2}) // no key helps
	copyOf := hashing.Packet(key.Word(1 << 40))
	for i := range packets {
		p, delay := hashing.Packet(key.Word(uint64(i))), 40_000+25_000*rng.NormFloat64()
		repeated := rng.Float64() < share
		if repeated {
			p, delay = copyOf, delay+extra
		}
		now := int64(i) * 1000
		up.Update(p, now)
		if repeated && lost > 0 {
			lost--
			continue
		}
		down.Update(p, now+int64(delay))
		all.Add(float64(int64(delay)))
	}
	return up, down, all
}

// Copies of one packet are seen and counted, and neither they nor the loss of one make the mean or the deviation wrong.
func TestRepeats(t *testing.T) {
	const packets = 200_000
	for _, c := range []struct {
		share, extra float64
		lost         int
	}{{0, 0, 0}, {0.01, 150_000, 0}, {0.05, 150_000, 1}, {0.5, 1e9, 7}} {
		up, down, truth := repeating(t, packets, c.share, c.extra, c.lost)
		r, err := Estimate(up, down)
		if i, d := r.MeanInterval(0.98), r.DeviationInterval(0.98); c.share == 0.5 {
			if !errors.Is(err, estimate.ErrNoSamples) {
				t.Errorf("%v: %+v, %v: half of the packets are not known", c, r, err)
			}
		} else if err != nil || !i.Contains(truth.Mean()) || !d.Contains(truth.StdDev()) {
			t.Errorf("%v: mean %v in %+v, want %v; deviation %v in %+v, want %v", c, r.Mean, i, truth.Mean(), r.StdDev, d, truth.StdDev())
		}
		if i := r.MeanInterval(0.98); c.lost == 0 && (!near(r.Mean, truth.Mean(), 1e-9) || !(i.High-i.Low < 1e-6*truth.Mean())) {
			t.Errorf("%v: mean %v in %+v, want %v exactly: none was lost", c, r.Mean, i, truth.Mean())
		}
		if (r.unknown > 0) != (c.lost > 0) || r.spoken != r.Received || (r.Repeats == 0) != (c.share == 0) {
			t.Errorf("%v: %+v", c, r)
		}
		if want := c.share * packets; math.Abs(float64(r.Repeats)-want) > 0.05*want+100 {
			t.Errorf("%v: %d packets repeat, want %.0f", c, r.Repeats, want)
		}
		if r.Sent != packets || r.Lost != uint64(c.lost) {
			t.Errorf("%v: %d sent, %d lost", c, r.Sent, r.Lost)
		}
		if n := testing.AllocsPerRun(3, func() { Estimate(up, down) }); n > 0 && err == nil {
			t.Errorf("%v: Estimate allocates %v times", c, n)
		}
	}
}

// Counts that are chance stay within the limit. However many copies a cell holds, the limit is not much above
// the normal one with a correction for the skewness.
func TestUsualCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 2))
	const n = 1024
	for _, load := range []float64{0, 0.01, 1, 10, 170} {
		for _, copies := range []uint64{0, 1000, 1_000_000_000} {
			cells := make([]cell, n)
			for range int(load * n) {
				cells[rng.IntN(n)].tally++
			}
			greatest := uint64(0)
			for i := range cells {
				greatest = max(greatest, cells[i].tally)
			}
			cells[7].tally += copies
			u := usualCounts(cells, uint64(load*n)+copies, max(greatest, cells[7].tally))
			rarity := math.Log(n * 1e6)
			said := load + math.Sqrt(2*load*rarity) + rarity
			if u.most < greatest || copies > 0 && float64(u.most) > 1.1*said || math.Abs(u.mean-load) > 0.1*load+0.01 {
				t.Errorf("load %v, %d copies: %+v, want a mean of %v and about %v at most", load, copies, u, load, said)
			}
		}
	}
}
