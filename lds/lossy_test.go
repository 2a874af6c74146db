package lds

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/truth"
)

// Cells that lost packets are weighed, not thrown away: in one comparison of a second, with exponential delays
// of 18 ms, nearly all flows of 1,000 packets have an answer, and intervals hold for flows of all sizes.
func TestLossyCellsAreWeighed(t *testing.T) {
	skipShort(t)
	if x := (&content{took: took{packets: 10}, variance: 2500}).load(1, 5); math.Abs(x-20) > 1 {
		t.Errorf("a cell of 10 packets, as uncertain as 10 of others would make it, is as full as %.1f", x)
	}
	for _, test := range []struct{ loss, answered, median float64 }{{0.001, 0.99, 0.011}, {0.01, 0.99, 0.03}, {0.05, 0.95, 0.061}} {
		c := DefaultConfig
		c.Columns = 1750
		up, down := mustNew(t, c), mustNew(t, c)
		exponential := law(func(r *rand.Rand) (int, func() float64) {
			mean := 18e6 * (0.5 + r.Float64())
			return min(paretoPackets(r), 20_000), func() float64 { return mean * r.ExpFloat64() }
		})
		keys, packets, means := exponential.obey(1, []*Sketch{up}, []*Sketch{down}, 14_600, test.loss)
		sent := make([]float64, len(packets))
		for i, n := range packets {
			sent[i] = float64(n)
		}
		decoded := mustDecode(t, up, down, records(keys, sent))
		read := func(i int) (float64, estimate.Interval, bool) {
			r, err := Estimate(up, down, keys[i])
			return r.Mean, r.MeanInterval(0.95), err == nil
		}
		decode := func(i int) (float64, estimate.Interval, bool) {
			return decoded.Mean[i], decoded.MeanInterval(i, 0.95), decoded.Usable[i] > 0
		}
		for name, answer := range map[string]func(int) (float64, estimate.Interval, bool){"Estimate": read, "Decode": decode} {
			for _, class := range [][2]float64{{10, 99}, {100, 999}, {1000, math.Inf(1)}} {
				var errs []float64
				var flows, held, narrow float64
				for i, want := range means {
					if sent[i] < class[0] || sent[i] > class[1] || class[0] == 10 && i%4 > 0 { // these are most
						continue
					}
					flows++
					mean, within, ok := answer(i)
					if !ok {
						continue
					}
					errs = append(errs, math.Abs(mean/want-1))
					if within.Contains(want) {
						held++
					}
					if math.Abs(mean-want) < (within.High-within.Low)/20 {
						narrow++
					}
				}
				n, median := float64(len(errs)), at(0.5, errs)
				if least := 0.95 - 4*math.Sqrt(0.05*0.95/n); held < least*n {
					t.Errorf("loss %g, %s, %g packets: %.3f of %.0f in intervals", test.loss, name, class[0], held/n, n)
				}
				if class[0] == 1000 && (n < test.answered*flows || median > test.median) {
					t.Errorf("loss %g, %s: %.3f answered, median error %.4f", test.loss, name, n/flows, median)
				}
				if narrow >= 0.95*n { // the negative control
					t.Errorf("loss %g, %s, %g packets: a tenth of the intervals holds %.3f", test.loss, name, class[0], narrow/n)
				}
			}
		}
	}
}

// Where points compare once, and all that is sent for a while is lost, sums are off by the same in all cells, and
// intervals hold: 680 of 1,094 did before they allowed for that. The control takes each for lost by itself.
func TestBurstsAreLostTogether(t *testing.T) {
	c, answers, read, decoded, control := DefaultConfig, 0, 0, 0, 0
	c.Columns = 500
	for seed := range uint64(20) {
		r, up, down := rand.New(rand.NewPCG(seed, 8)), mustNew(t, c), mustNew(t, c)
		up.SetInterval(1, 0)
		burst, means, sent := r.Int64N(37e8), [60]estimate.Moments{}, [60]float64{}
		for range 20_000 {
			f, p, at := r.IntN(r.IntN(60)+1), hashing.Packet(r.Uint64()), r.Int64N(4e9)
			took := r.Int64N(1e6 << (f % 9))
			sent[f]++
			if up.Update(nth(f), p, at); at < burst || at > burst+3e8 {
				means[f].Add(float64(took))
				down.Update(nth(f), p, at+took)
			}
		}
		var flows []joint.FlowRecord
		for f, n := range sent {
			flows = append(flows, joint.FlowRecord{Flow: nth(f), Packets: n})
		}
		d, alone := mustDecode(t, up, down, flows), newPairs(up, down, nil)
		alone.together = 0
		for f := range flows {
			x, want := alone.at(c.at(0, nth(f), 0)), means[f].Mean()
			one, err := Estimate(up, down, nth(f))
			if err != nil || x.variance == 0 {
				continue
			}
			if answers++; !one.MeanInterval(0.95).Contains(want) {
				read++
			}
			if !d.MeanInterval(f, 0.95).Contains(want) {
				decoded++
			}
			if math.Abs(float64(alone.around.delay)+x.beyond/x.packets-want) > studentAt*math.Sqrt(x.variance)/x.packets {
				control++
			}
		}
	}
	if most := answers / 20; answers < 500 || read > most || decoded > most || control < 5*most {
		t.Errorf("of %d outside %d, decoded %d, of the control %d", answers, read, decoded, control)
	}
}

// A burst of losses after the only cut does not make the packets of its interval seem slower; and what is lost where no
// cell has settled since is not on its way. Otherwise 16 and 6 of Estimate's 60 intervals miss. More cuts make them narrower.
func TestBurstsAmongCuts(t *testing.T) {
	c := DefaultConfig
	c.Columns = 500
	before, cuts := 0.0, int64(math.MaxInt64)
	for _, test := range []struct{ intervals, burst int64 }{{40, 760e7}, {2, 405e7}, {8, 405e7}, {40, 405e7}, {160, 405e7}} {
		random, o, all := rand.New(rand.NewPCG(14, 8)), owing{}, []truth.Packet(nil)
		x, a := newTimeline(t, c, int(test.intervals), 8e9/test.intervals), mustAccumulate(t, c)
		for range 20_000 {
			f, now := random.IntN(random.IntN(60)+1), random.Int64N(8e9)
			p := truth.Packet{Flow: uint64(nth(f)), Sent: now, Lost: now > test.burst && now < test.burst+3e8}
			p.Received = now + random.Int64N(1e6<<(f%9))
			x.pass(nth(f), hashing.Packet(random.Uint64()), now, p.Received, p.Lost)
			all = append(all, p)
		}
		x.addAll(t, a)
		o.report(t, a, truth.Between(all, 0, 8e9, truth.ByFlow))
		if o.answers < 50 || min(o.read, o.decoded) < 0.95*o.answers {
			t.Errorf("%+v: of %v in intervals %v, %v decoded", test, o.answers, o.read, o.decoded)
		}
		wide := at(0.5, o.wide)
		if test.intervals > cuts && wide > before {
			t.Errorf("%+v: intervals are %g ns wide, with %d cuts %g", test, wide, cuts, before)
		}
		before, cuts = wide, test.intervals
	}
}

// Few flows in many columns have no neighbours, and the same packets in several rows. All cells together tell how far
// apart packets are, so that flows that lost nothing in rows that sample, and only there, have an interval that
// holds. Where many copies come, perhaps of the slow packets, flows have no interval. Where few come, cells without
// copies hold only fast packets and seem exact; intervals allow for what copies may have taken.
func TestFewFlowsHaveIntervals(t *testing.T) {
	const few = 1e8
	for _, twice := range []float64{math.Inf(1), 25e6, few} { // what takes longer comes twice, and nothing is lost
		in, bounded, most, without := 0, 0, 0, 0
		for seed := range uint64(3) {
			r, up, down := rand.New(rand.NewPCG(seed, 2)), mustNew(t, DefaultConfig), mustNew(t, DefaultConfig)
			tables := [2]*Table{newTable(t, DefaultTableConfig), newTable(t, DefaultTableConfig)}
			var truth [50]estimate.Moments
			for i := range 5000 {
				f, p, at, took := i%50, hashing.Packet(r.Uint64()), r.Int64N(5e9), 1e7*(1+r.ExpFloat64())
				if twice == few { // and all others take as long
					took = 1e7 + 1e8*float64(max(0, 2-r.IntN(50)))
				}
				up.Update(nth(f), p, at)
				tables[0].Update(nth(f), p, at)
				if math.IsInf(twice, 1) && f >= 10 && r.Float64() < 0.1 {
					continue
				}
				truth[f].Add(math.Trunc(took))
				for range 1 + int(min(1, took/twice)) {
					down.Update(nth(f), p, at+int64(took))
					tables[1].Update(nth(f), p, at+int64(took))
				}
			}
			for f := range truth {
				one, err := Estimate(up, down, nth(f))
				two, errTable := EstimateTable(tables[0], tables[1], nth(f))
				for r, err := range map[*Result]error{&one: err, &two: errTable} {
					most++
					if i := r.MeanInterval(0.999); err == nil && i.Bounded() {
						if bounded++; i.Low-1e-3 <= truth[f].Mean() && truth[f].Mean() <= i.High+1e-3 {
							in++
						}
						if r.Late = 0; r.MeanInterval(0.95).High+1e-3 < truth[f].Mean() {
							without++
						}
					}
				}
			}
		}
		if in < bounded-1 || twice == 25e6 == (bounded > most/2) || twice == few && without < bounded/2 { // the control
			t.Errorf("slower than %g twice: %d of %d in bounded intervals, %d miss without Late, of %d", twice, in, bounded, without, most)
		}
	}
}

// A queue that drops its tail loses packets while others wait long. That biases flows by at most 5 %, because cells that lost some
// are compared with others of the same time. The control, spans that lost none, makes delays too short.
func TestFullQueueIsNoBias(t *testing.T) {
	skipShort(t)
	const flows, rate, second, room = 3000, 50_000.0, 1e9, 20e6
	random := rand.New(rand.NewPCG(77, 1))
	a := mustAccumulate(t, DefaultConfig)
	up, down, after := mustNew(t, DefaultConfig), mustNew(t, DefaultConfig), mustNew(t, DefaultConfig)
	shares, sums, came := make([]float64, flows), make([]float64, flows), make([]float64, flows)
	for i, total := 0, 0.0; i < flows; i++ {
		total += min(2*math.Pow(1-random.Float64(), -1/1.1), 20000)
		shares[i] = total
	}
	queue, now, busy, until := 0.0, 0.0, 1.0, 0.0
	for end := 0.1 * second; end <= 10*second; end += 0.1 * second {
		for now < end {
			if now > until {
				busy, until = 0.6+0.8*random.Float64(), now+0.2*second*random.ExpFloat64()
			}
			step := random.ExpFloat64() * second / rate / busy
			now, queue = now+step, max(0, queue-step)
			i, _ := slices.BinarySearch(shares, random.Float64()*shares[flows-1])
			p := hashing.Packet(random.Uint64())
			if up.Update(nth(i), p, int64(now)); queue > room {
				continue
			}
			in := down
			if now+queue+1e5 >= end {
				in = after
			}
			in.Update(nth(i), p, int64(now+queue+1e5))
			sums[i], came[i] = sums[i]+queue+1e5, came[i]+1
			queue += second / rate
		}
		if err := a.Add(int64(end-0.1*second), int64(end), up, down); err != nil {
			t.Fatal(err)
		}
		up.Reset()
		down.Reset()
		down, after = after, down
	}
	var signed, exact []float64
	for i, n := range came {
		if r, err := a.Estimate(nth(i)); err == nil && n >= 100 {
			signed = append(signed, r.Mean*n/sums[i]-1)
			if x := &a.all[a.config.at(0, nth(i), 0)].exact; x.packets > 0 {
				exact = append(exact, x.beyond/x.packets*n/sums[i]-1)
			}
		}
	}
	bias, without := at(0.5, signed), at(0.5, exact)
	t.Logf("%d flows, bias %.3f, of exact spans %.3f", len(signed), bias, without)
	if math.Abs(bias) > 0.05 || without > -0.1 {
		t.Errorf("bias %.3f, of exact spans %.3f", bias, without)
	}
}

// Flows that are slow and lose more than others do are not told to be slower, although nothing tells which of
// the packets outstanding in their cells are lost and which on their way. In the control nothing is lost.
func TestSlowFlowsLoseMore(t *testing.T) {
	const flows, intervals, length = 40, 40, int64(1e8)
	for _, loss := range []float64{0.3, 0.05, 0} {
		c, random := DefaultConfig, rand.New(rand.NewPCG(1, 28))
		c.Columns = 3500
		x, a := newTimeline(t, c, intervals, length), mustAccumulate(t, c)
		var all []truth.Packet
		for now := int64(0); now < intervals*length; now += int64(random.ExpFloat64() * 2.5e5) {
			f, slow, took := random.IntN(flows), 0.0, 1e6*random.ExpFloat64()
			if f%4 == 0 {
				slow, took = loss, 1e8+2e7*random.ExpFloat64()
			}
			p := truth.Packet{Flow: uint64(nth(f)), Sent: now, Received: now + int64(took), Lost: random.Float64() < slow}
			x.pass(nth(f), hashing.Packet(random.Uint64()), now, p.Received, p.Lost)
			all = append(all, p)
		}
		x.addAll(t, a)
		o := owing{}
		o.report(t, a, truth.Between(all, 0, intervals*length, truth.ByFlow))
		if o.answers < 0.9*flows || min(o.read, o.decoded) < 0.95*o.answers {
			t.Errorf("loss %g: of %v in intervals %v, %v decoded", loss, o.answers, o.read, o.decoded)
		}
	}
}

// Slow packets may be so rare that cells near a flow's have none: those far off tell how far packets are apart.
func TestRareSlowPackets(t *testing.T) {
	up, down, random := mustNew(t, DefaultConfig), mustNew(t, DefaultConfig), rand.New(rand.NewPCG(1, 11))
	for i := range 100_000 {
		p, slow := hashing.Packet(random.Uint64()), max(0, 1-random.IntN(1000)) // one in 1,000 takes 800 ms
		up.Update(nth(i%10_000), p, 0)
		down.Update(nth(i%10_000), p, int64(slow)*8e8)
	}
	var near [mostNearby]uint32
	for f := range 100 {
		if got, want := newPairs(up, down, DefaultConfig.nearby(&near, nth(f))).single, 6.4e14; got < want/4 {
			t.Errorf("flow %d: packets are %.3g ms apart, want %.3g", f, math.Sqrt(got)/1e6, math.Sqrt(want)/1e6)
		}
	}
}
