package colate

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/traffic"
)

// crowd is 60 flows of 50 to 1,000 packets over six periods of a second. Their mean
// delays are some parts of a period; a packet of each is longer by a factor, at a chance.
func crowd(rng *rand.Rand, delay, chance, factor float64) (all []passage) {
	for i := range 60 {
		f, mean := hashing.Flow(hashing.Word(9, uint64(i))), delay*1e9*math.Exp(rng.NormFloat64()/2)
		for range 50 << rng.IntN(5) {
			p := passage{Flow: f, Packet: hashing.Packet(rng.Uint64()), Sent: int64(rng.Float64() * 6e9)}
			later := mean * rng.ExpFloat64()
			if rng.Float64() < chance {
				later *= factor
			}
			p.At = p.Sent + int64(later)
			all = append(all, p)
		}
	}
	return all
}

// An asked is what a path says of all flows, one by one and together: how many answers there
// are, intervals that do not hold, and means below 0.
type asked struct {
	list             []truth
	alone            []Result
	answers, outside [2]int
	negative         int
}

// ask asks for all flows, whose records are off by a factor.
func (w world) ask(t *testing.T, all []passage, factor float64) (a asked) {
	t.Helper()
	epochs, arrived := w.cut(t, all)
	a.list = traffic.Truths(arrived, 1)
	path, flows := w.stored(t, epochs), recordsOf(a.list)
	for i := range flows {
		flows[i].Packets = math.Round(flows[i].Packets * factor)
	}
	var err error
	if a.alone, _, err = path.EstimateAll(t.Context(), flows, 0, 1e12); err != nil {
		t.Fatal(err)
	}
	together, _, err := path.Decode(t.Context(), flows, 0, 1e12, joint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range a.list {
		for k, in := range []estimate.Interval{a.alone[i].MeanInterval(0.95), together.MeanInterval(i, 0.95)} {
			if math.IsInf(in.High, 1) {
				continue
			}
			a.answers[k]++
			if !in.Contains(f.Mean) {
				a.outside[k]++
			}
			if [2]float64{a.alone[i].Mean, together.Mean[i]}[k] < 0 {
				a.negative++
			}
		}
	}
	return a
}

// Of a crowd, records of half or twice the packets are refused, or the counters' own
// numbers are taken; delays that wrap a counter's sum are refused; and samples that miss
// slow packets, taking these for lost, leave the answer to the counters.
func TestCrowds(t *testing.T) {
	if testing.Short() {
		t.Skip("statistics of one goroutine, which take long")
	}
	for name, c := range map[string]struct {
		delay, chance, factor, loss, records float64
		bits                                 uint8
		oneIn                                uint32
		refused                              int // at least, of 60
	}{
		"good records":          {0.002, 0, 1, 0, 1, 64, 0, 0},
		"halved":                {0.002, 0, 1, 0, 0.5, 64, 0, 15},
		"doubled":               {0.002, 0, 1, 0, 2, 64, 0, 30},
		"sums that wrap":        {0.1, 0, 1, 0, 1, 44, 0, 1},
		"rare packets, slow":    {0.005, 0.01, 100, 0, 1, 64, 0, 0},
		"rare, sampled":         {0.005, 0.01, 100, 0, 1, 64, 16, 0},
		"rare, 1 % lost":        {0.005, 0.01, 100, 0.01, 1, 64, 16, 0},
		"one in 500, 1 % lost":  {0.005, 0.002, 600, 0.01, 1, 64, 0, 0},
		"one in 500, 20 % lost": {0.005, 0.002, 200, 0.2, 1, 64, 0, 0},
		"slow, 5 % lost":        {0.005, 0.02, 200, 0.05, 1, 64, 0, 0},
		"slower than a period":  {0.03, 0.01, 100, 0, 1, 64, 8, 0},
	} {
		w := world{config: cutAt(1e9), seed: 1, loss: c.loss}
		w.config.CountBits, w.config.DigestBits, w.config.Bits, w.config.Shift = 8, 20, c.bits, 16
		w.config.OneIn, w.config.Samples = c.oneIn, int(c.oneIn)*1000
		var answers, outside [2]int
		flows := 0
		for seed := range uint64(3) {
			a := w.ask(t, crowd(rand.New(rand.NewPCG(seed, 1)), c.delay, c.chance, c.factor), c.records)
			flows += 60
			for k := range answers {
				answers[k] += a.answers[k]
				outside[k] += a.outside[k]
			}
			if a.negative > 0 {
				t.Errorf("%s: %d means are below 0", name, a.negative)
			}
		}
		t.Logf("%s: of %d flows %v answers, %v outside", name, flows, answers, outside)
		for k, n := range answers {
			if float64(outside[k]) > 0.05*float64(n)+shortfall(n, 0.95) || n > flows-3*c.refused {
				t.Errorf("%s: of %d answers %d outside", name, n, outside[k])
			}
		}
	}
}

// Slow packets are seldom in a set of epochs that lost none, where a fifth of all are lost, and
// never where they take longer than a table: rises of counts tell of them. Without what these
// add intervals do not hold, which is the negative control.
func TestHiddenPackets(t *testing.T) {
	if testing.Short() {
		t.Skip("statistics of one goroutine, which take long")
	}
	for name, c := range map[string]struct {
		loss, seconds, slow float64
		flows, packets, one int // packet in so many is slow
	}{
		"losses":     {0.2, 10, 1, 50, 100_000, 500},
		"30 periods": {0.01, 60, 30, 20, 20_000, 100},
		"flow alone": {0, 60, 30, 1, 1000, 100},
	} {
		w := world{config: cutAt(1e9), loss: c.loss}
		w.config.Counters, w.config.Shift = 16384, 6
		answers, outside, control := [2]int{}, [2]int{}, 0
		for seed := range uint64(4) {
			rng := rand.New(rand.NewPCG(seed, 3))
			var all []passage
			for range c.packets {
				p := passage{Flow: hashing.Flow(rng.IntN(c.flows)), Packet: hashing.Packet(rng.Uint64()), Sent: int64(rng.Float64() * c.seconds * 1e9)}
				p.At = p.Sent + int64(5e6*rng.ExpFloat64())
				if rng.IntN(c.one) == 0 {
					p.At = p.Sent + int64(c.slow*1e9)
				}
				all = append(all, p)
			}
			w.seed = seed
			a := w.ask(t, all, 1)
			for i, f := range a.list {
				a.alone[i].hidden = 0
				if in := a.alone[i].MeanInterval(0.95); !in.Contains(f.Mean) {
					control++
				}
			}
			for k := range answers {
				answers[k] += a.answers[k]
				outside[k] += a.outside[k]
			}
		}
		t.Logf("%s: of %v intervals %v do not hold, and %d without what is hidden", name, answers, outside, control)
		for k, n := range answers {
			most := 0.05*float64(n) + shortfall(n, 0.95)
			if float64(outside[k]) > most || float64(control) <= most || 3*n < 4*c.flows {
				t.Errorf("%s: of %d intervals %d do not hold, and %d without what is hidden", name, n, outside[k], control)
			}
		}
	}
}

// Packets of a flow that wait alike, in spells of their own or of all or always, are no more
// of a sample than the spells are. And what waits exactly alike is still known in units only.
func TestWaitingAlike(t *testing.T) {
	if testing.Short() {
		t.Skip("statistics of one goroutine, which take long")
	}
	for name, c := range map[string]struct {
		flows, packets int
		wait           func(flow, second int) float64
	}{
		"own spells": {50, 1000, func(flow, second int) float64 {
			return 2e6 + 38e6*float64(hashing.Word(uint64(flow), uint64(second))%5/4)
		}},
		"spells": {50, 1000, func(_, second int) float64 { return 2e6 + 38e6*float64(hashing.Word(7, uint64(second))%5/4) }},
		"always": {1, 10, func(flow, _ int) float64 { return 5e6 + float64(hashing.Word(3, uint64(flow))%512) }},
	} {
		w := world{config: cutAt(1e9), loss: 0.01, seed: 1}
		w.config.Counters, w.config.Shift = 2000, 9
		var answers, outside [2]int
		for seed := range 150 / c.flows {
			rng := rand.New(rand.NewPCG(uint64(seed), 3))
			var all []passage
			for f := range c.flows * c.packets {
				f = f/c.packets + seed*c.flows
				p := passage{Flow: hashing.Flow(hashing.Word(5, uint64(f))), Packet: hashing.Packet(rng.Uint64()), Sent: rng.Int64N(20e9)}
				p.At = p.Sent + int64(c.wait(f, int(p.Sent/1e9)))
				all = append(all, p)
			}
			a := w.ask(t, all, 1)
			for k := range answers {
				answers[k] += a.answers[k]
				outside[k] += a.outside[k]
			}
		}
		t.Logf("%s: %v answers, %v outside", name, answers, outside)
		for k, n := range answers {
			if float64(outside[k]) > 0.05*float64(n)+shortfall(n, 0.95) || n < 100 {
				t.Errorf("%s: of %d answers %d outside", name, n, outside[k])
			}
		}
	}
}

// few is 20 flows of very different sizes, and of mean delays as different.
func few(rng *rand.Rand) (all []passage) {
	for range 20 {
		f, mean := hashing.Flow(hashing.Word(9, rng.Uint64())), 20e6*math.Exp(rng.NormFloat64())
		for range int(min(500*math.Pow(rng.Float64(), -1/0.8), 50_000)) {
			p := passage{Flow: f, Packet: hashing.Packet(rng.Uint64()), Sent: int64(rng.Float64() * 300e9)}
			p.At = p.Sent + int64(mean*rng.ExpFloat64())
			all = append(all, p)
		}
	}
	return all
}

// Where flows are few, one that shares a counter is in none of the absent flows'. Intervals
// hold of the largest flows, too, whose packets are on record or read from the counters,
// and none is refused.
func TestFewFlows(t *testing.T) {
	if testing.Short() {
		t.Skip("statistics of one goroutine, which take long")
	}
	w := world{config: cutAt(30e9), seed: 1}
	w.config.PerFlow = 16
	w.config.Counters, w.config.CountBits, w.config.DigestBits, w.config.Bits, w.config.Shift = 2000, 14, 20, 64, 12
	for _, known := range []float64{1, 0} {
		outside, refused, asked := 0, 0, 0
		for seed := range uint64(40) {
			epochs, arrived := w.cut(t, few(rand.New(rand.NewPCG(seed, 2))))
			list := traffic.Truths(arrived, 1)
			slices.SortFunc(list, func(a, b truth) int { return cmp.Compare(b.Packets, a.Packets) })
			flows := recordsOf(list)
			for i := range flows {
				flows[i].Packets *= known
			}
			answers, _, err := w.stored(t, epochs).EstimateAll(t.Context(), flows, 0, 1e12)
			if err != nil {
				t.Fatal(err)
			}
			for i, a := range answers[:5] {
				asked++
				switch in := a.MeanInterval(0.95); {
				case a.Err != nil:
					refused++
				case list[i].Mean < in.Low || list[i].Mean > in.High:
					outside++
				}
			}
		}
		if refused > 0 || float64(outside) > 0.05*float64(asked)+shortfall(asked, 0.95) {
			t.Errorf("known %v: of %d large flows %d refused, %d outside", known, asked, refused, outside)
		}
	}
}
