package lost_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/areas"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/lost"
)

// A world passes packets between two points and judges what is named.
type world struct {
	config     lda.Config
	rate, loss float64
	delay      func(*rand.Rand) float64 // seconds; < 0: lost
	twice      float64                  // share of packets that come twice
	same       float64                  // share of packets that are like others about the same cut
	seconds    int
}

type outcome struct {
	lost, named, wrong, said int
	worst                    float64 // error of a report's mean
	outside, reports         float64 // deviations outside 95 %
}

type passing struct {
	p hashing.Packet
	t int64
}

func (w *world) run(t testing.TB, seed uint64, mend bool) (o outcome) {
	const cut, report = int64(1e8), 10
	random := rand.New(rand.NewPCG(seed, 27))
	cuts := 10 * w.seconds
	up, down := make([][]passing, cuts), make([][]passing, cuts)
	lostAt := map[passing]bool{}
	way, received := make([]float64, w.seconds), make([]estimate.Moments, w.seconds)
	for now := 0.0; now < float64(w.seconds); now += random.ExpFloat64() / w.rate {
		x := passing{hashing.Packet(random.Uint64()), int64(now * 1e9)}
		if w.same > 0 && random.Float64() < w.same {
			x.p = hashing.Word(seed, uint64(x.t+5e7)/1e8*50+random.Uint64N(50))
		}
		up[x.t/cut] = append(up[x.t/cut], x)
		d := w.delay(random)
		if random.Float64() < w.loss || d < 0 {
			lostAt[x] = true
			continue
		}
		came := x.t + int64(d*1e9)
		for s := x.t / 1e9; s < int64(w.seconds) && s*1e9 < came; s++ {
			way[s] += float64(min(came, (s+1)*1e9) - max(x.t, s*1e9))
		}
		if came/cut < int64(cuts) {
			down[came/cut] = append(down[came/cut], passing{x.p, came})
			received[came/1e9].Add(float64(came - x.t))
			if random.Float64() < w.twice {
				down[came/cut] = append(down[came/cut], passing{x.p, came})
			}
		}
	}
	total, _ := lda.NewAccumulator(w.config)
	a, _ := lda.New(w.config)
	b, _ := lda.New(w.config)
	memory := lost.NewMemory(1<<20, math.MaxInt64)
	number := 0
	for k := range int64(cuts) {
		a.Reset()
		b.Reset()
		for _, x := range up[k] {
			a.Update(x.p, x.t)
			memory.Update(uint64(x.p), false, x.t)
		}
		for _, x := range down[k] {
			b.Update(x.p, x.t)
		}
		if err := total.Add(k*cut, (k+1)*cut, a, b); err != nil {
			t.Fatal(err)
		}
		if (k+1)%report == 0 {
			total.End()
		}
		for total.Settled() {
			if mend {
				w.name(t, total, memory, lostAt, &o)
			}
			r, err := total.Estimate()
			if err != nil {
				t.Fatal(err)
			}
			o.said += int(r.Lost)
			if number > 0 {
				o.worst = max(o.worst, math.Abs(r.Mean*float64(received[number].N())-way[number])/way[number])
				if o.reports++; !r.DeviationInterval(0.95).Contains(received[number].StdDev()) {
					o.outside++
				}
			}
			total.Reset()
			number++
		}
	}
	for x := range lostAt {
		if x.t < int64(number)*1e9 {
			o.lost++
		} else if !lostAt[x] {
			o.named--
		}
	}
	return o
}

func (w *world) name(t testing.TB, total *lda.Accumulator, memory *lost.Memory, lostAt map[passing]bool, o *outcome) {
	var trails []areas.Trail
	total.Trails(func(t areas.Trail) { trails = append(trails, t) })
	f, err := lost.NewFinder(w.config, trails)
	if err != nil {
		t.Fatal(err)
	}
	memory.Offer(f, nil)
	names := f.Names(lost.Budget)
	for _, n := range names.Names {
		x := passing{n.Packet, n.Sent}
		if was, ok := lostAt[x]; !ok && !n.Repeated {
			o.wrong++
		} else if was {
			lostAt[x] = false
			o.named++
		}
	}
	total.TakeOut(names.Lost(w.config, trails))
}

func exponential(mean float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return 0.001 + mean*r.ExpFloat64() }
}

// slow draws delays of 5 ms on average, and of three seconds for a few packets.
func slow(share float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 {
		if r.Float64() < share {
			return 3
		}
		return 0.005 * r.ExpFloat64()
	}
}

// spells draws some 2 ms while nothing is lost, and 30 where half of the packets are.
func spells() func(*rand.Rand) float64 {
	n := 0
	return func(r *rand.Rand) float64 {
		if n++; n/700%2 == 0 {
			return 0.001 * (1 + r.Float64())
		}
		return 0.03*(1+r.Float64()/10) - float64(r.IntN(5)/2)
	}
}

// config is an eighth of lda.DefaultConfig: 12,500 packets a second fill it as 10⁵ fill that one.
func config(bits uint8) lda.Config {
	c := lda.DefaultConfig
	for i := range c.Banks {
		c.Banks[i].Rows /= 8
	}
	c.DigestBits = bits
	return c
}

// Lost packets are named, and no others, and without them means are exact. Each case states the least share that is
// named and the largest error of a mean. Deviations hold, also where losses come in spells of slow packets: sampled
// when the lost ones are taken out, which gives slow ones too much weight, one in three would miss.
func TestNames(t *testing.T) {
	if testing.Short() {
		t.Skip("statistics that one goroutine makes")
	}
	for _, c := range []struct {
		world
		least, most float64
	}{
		{world{config: config(32), rate: 1250, loss: 0.001}, 1, 1e-12},
		{world{config: config(32), rate: 1250, loss: 0.1}, 1, 1e-12},
		{world{config: config(32), rate: 12500, loss: 0.001}, 1, 1e-12},
		{world{config: config(32), rate: 12500, loss: 0.01}, 0.99, 5e-4},
		{world{config: config(32), rate: 12500, loss: 0.1}, 0.99, 5e-3},
		{world{config: config(32), rate: 12500, loss: 0.01, twice: 0.01}, 0.8, 1},
		{world{config: config(24), rate: 12500, loss: 0.01}, 0.7, 1},
		{world{config: config(32), rate: 2500, loss: 0.2, same: 0.2, delay: slow(0), seconds: 22}, 0.5, 1},
		{world{config: config(20), rate: 1250, loss: 0.01, twice: 0.01}, 0.5, 1},
		{world{config: config(32), rate: 12500, loss: 0.01, delay: slow(0.002), seconds: 22}, 0.9, 0.2},
		{world{config: config(32), rate: 2500, delay: spells(), seconds: 90}, 0.5, 1},
	} {
		w := c.world
		if w.delay == nil {
			w.delay, w.seconds = exponential(0.004), 12 // the first report waits for nine
		}
		o := w.run(t, 27, true)
		named := float64(o.named) / float64(o.lost)
		t.Logf("%d bits, %g/s, loss %g: %d lost, %.1f %% named, %d wrong, %d said; worst mean %.2g",
			c.config.DigestBits, c.rate, c.loss, o.lost, 100*named, o.wrong, o.said, o.worst)
		if o.lost == 0 || o.wrong > 0 || named < c.least || o.worst > c.most {
			t.Errorf("%d wrong; want at least %g named, and means within %g", o.wrong, c.least, c.most)
		}
		if due := 0.05 * o.reports; o.outside > due+3*math.Sqrt(due) {
			t.Errorf("%v of %v deviations are outside 95 %%", o.outside, o.reports)
		}
		if c.twice == 0 && c.least > 0.98 && math.Abs(float64(o.said-o.lost)) > 0.002*float64(o.lost) {
			t.Errorf("%d said to be lost of %d", o.said, o.lost)
		}
		if c.most < 1 && w.run(t, 27, false).worst < 2*o.worst { // the control
			t.Error("means are as good without names")
		}
	}
}
