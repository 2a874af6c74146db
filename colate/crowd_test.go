package colate

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

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

// askCrowd asks for all flows, one by one and together, whose records are off by a
// factor, and counts answers, intervals that do not hold, and means below 0.
func askCrowd(t *testing.T, w world, all []passage, factor float64) (answers, outside [2]int, negative int) {
	t.Helper()
	epochs, arrived := w.cut(t, all)
	list, path := traffic.Truths(arrived, 1), w.stored(t, epochs)
	flows := recordsOf(list)
	for i := range flows {
		flows[i].Packets = math.Round(flows[i].Packets * factor)
	}
	alone, _, err := path.EstimateAll(t.Context(), flows, 0, 1e12)
	if err != nil {
		t.Fatal(err)
	}
	together, _, err := path.Decode(t.Context(), flows, 0, 1e12, joint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range list {
		for k, in := range []struct{ low, high, mean float64 }{
			{alone[i].MeanInterval(0.95).Low, alone[i].MeanInterval(0.95).High, alone[i].Mean},
			{together.MeanInterval(i, 0.95).Low, together.MeanInterval(i, 0.95).High, together.Mean[i]},
		} {
			if math.IsInf(in.high, 1) {
				continue
			}
			answers[k]++
			if f.Mean < in.low || f.Mean > in.high {
				outside[k]++
			}
			if in.mean < 0 {
				negative++
			}
		}
	}
	return answers, outside, negative
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
			a, o, negative := askCrowd(t, w, crowd(rand.New(rand.NewPCG(seed, 1)), c.delay, c.chance, c.factor), c.records)
			flows += 60
			for k := range a {
				answers[k] += a[k]
				outside[k] += o[k]
			}
			if negative > 0 {
				t.Errorf("%s: %d means are below 0", name, negative)
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

// Of flows that lose a fifth of their packets, those of a second, as one in 500 is, are
// seldom in a set of epochs that lost none: rises of counts tell of them. Without what these
// add intervals do not hold, which is the negative control.
func TestHiddenPackets(t *testing.T) {
	if testing.Short() {
		t.Skip("statistics of one goroutine, which take long")
	}
	w := world{config: cutAt(1e9), loss: 0.2}
	w.config.Counters, w.config.Shift = 16384, 6
	answers, outside, control := 0, 0, 0
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var all []passage
		for range 100_000 {
			p := passage{Flow: hashing.Flow(rng.IntN(50)), Packet: hashing.Packet(rng.Uint64()), Sent: int64(rng.Float64() * 10e9)}
			p.At = p.Sent + int64(5e6*rng.ExpFloat64())
			if rng.IntN(500) == 0 {
				p.At = p.Sent + 1e9
			}
			all = append(all, p)
		}
		w.seed = seed
		epochs, arrived := w.cut(t, all)
		list := traffic.Truths(arrived, 1)
		a := w.follow(t, epochs, recordsOf(list))
		for i, f := range list {
			r, err := a.ask(i)
			if err != nil {
				continue
			}
			answers++
			if in := r.MeanInterval(0.95); !in.Contains(f.Mean) {
				outside++
			}
			r.hidden = 0
			if in := r.MeanInterval(0.95); !in.Contains(f.Mean) {
				control++
			}
		}
	}
	most := 0.05*float64(answers) + shortfall(answers, 0.95)
	if float64(outside) > most || float64(control) <= most || answers < 50 {
		t.Errorf("of %d intervals %d do not hold, and %d without what is hidden", answers, outside, control)
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
