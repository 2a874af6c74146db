package colate

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/traffic"
)

// crowd is 60 flows of 50 to 1,000 packets over six periods of a second. Their mean delays are some parts of a
// period; some packets of each, by chance, take longer by a factor.
func crowd(delay, chance, factor float64) func(*rand.Rand) []passage {
	return func(rng *rand.Rand) (all []passage) {
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
}

// slow has packets of 5 ms over some seconds, one in n of which takes as many seconds.
func slow(flows, packets int, seconds float64, one int, takes int64) func(*rand.Rand) []passage {
	return func(rng *rand.Rand) (all []passage) {
		for range packets {
			p := passage{Flow: hashing.Flow(rng.IntN(flows)), Packet: hashing.Packet(rng.Uint64()), Sent: int64(rng.Float64() * seconds * 1e9)}
			if p.At = p.Sent + int64(5e6*rng.ExpFloat64()); rng.IntN(one) == 0 {
				p.At = p.Sent + takes*1e9
			}
			all = append(all, p)
		}
		return all
	}
}

func but(change func(p *passage), pass func(*rand.Rand) []passage) func(*rand.Rand) []passage {
	return func(rng *rand.Rand) []passage {
		all := pass(rng)
		for i := range all {
			change(&all[i])
		}
		return all
	}
}

// inSpells has flows of equally many packets over 20 s, which wait alike in each second.
func inSpells(flows, packets int, wait func(flow, second uint64) float64) func(*rand.Rand) []passage {
	return func(rng *rand.Rand) (all []passage) {
		first := rng.IntN(1e6)
		for i := range flows * packets {
			f := uint64(first + i/packets)
			p := passage{Flow: hashing.Flow(hashing.Word(5, f)), Packet: hashing.Packet(rng.Uint64()), Sent: rng.Int64N(20e9)}
			p.At = p.Sent + int64(wait(f, uint64(p.Sent/1e9)))
			all = append(all, p)
		}
		return all
	}
}

// minute is packets of 3 ms over a minute, some of which come late.
func minute(late func(at int64) int64) func(*rand.Rand) []passage {
	return func(rng *rand.Rand) (all []passage) {
		for range 20_000 {
			p := passage{Flow: hashing.Flow(rng.IntN(40)), Packet: hashing.Packet(rng.Uint64()), Sent: rng.Int64N(60e9)}
			p.At = late(p.Sent + int64(3e6*rng.ExpFloat64()))
			all = append(all, p)
		}
		return all
	}
}

// stops lets none come in 6 s of 20: they wait for the rest.
func stops(at int64) int64 { return max(at, at/20e9*20e9+6e9) }

// stalled has packets of 1 ms, except for those sent in 0.3 s, which come together in the sixth second.
func stalled(rng *rand.Rand) []passage {
	all := slow(300, 5000, 12, 1e9, 0)(rng)
	for i := range all {
		p := &all[i]
		if p.At = p.Sent + 1e6; p.Sent > 48e8 && p.Sent < 51e8 {
			p.At = 51e8 + (p.Sent-48e8)/20
		}
	}
	return all
}

// lags is later by a tenth of the time that has passed.
func lags(at int64) int64 { return at + at/10 }

// spell is 2 ms, or 40 in one second of five.
func spell(of, second uint64) float64 { return 2e6 + 38e6*float64(hashing.Word(of, second)%5/4) }

func always(flow, _ uint64) float64 { return 5e6 + float64(hashing.Word(3, flow)%512) }

// A jam is traffic through a queue that loses only what finds its buffer full, so that what is lost is lost when delays are longest:
// bursts of more than the link takes, now and then. Flow 1 has half of the packets, flows 2 to 11 a twentieth each, the others are small.
type jam struct {
	buffer         float64 // s
	load, burst    float64 // while there is no burst, and while there is one
	lasting, apart float64 // s, of a burst, and between them
}

// jams lose some 1 to 12 %.
var jams = []jam{
	{buffer: 0.02, load: 0.7, burst: 1.3, lasting: 0.1, apart: 1},
	{buffer: 0.02, load: 0.7, burst: 2, lasting: 0.05, apart: 0.5},
	{buffer: 0.005, load: 0.9, burst: 1.5, lasting: 0.1, apart: 0.2},
}

// pass returns what is sent.
func (j jam) pass(rng *rand.Rand) (sent []passage) {
	seed := rng.Uint64()
	queue, now, until := 0.0, 0.0, 0.0
	next, bursting := j.apart*rng.ExpFloat64(), false
	const usual, seconds = 10_000, 8 // packets a second
	sent = make([]passage, 0, 2*usual*seconds)
	service := j.load / usual // s a packet
	for now < seconds {
		rate := float64(usual)
		if bursting {
			rate *= j.burst / j.load
		}
		gap := rng.ExpFloat64() / rate
		now += gap
		queue = max(queue-gap, 0)
		if !bursting && now > next {
			bursting, until = true, now+j.lasting*(0.5+rng.Float64())
		} else if bursting && now > until {
			bursting, next = false, now+j.apart*rng.ExpFloat64()
		}
		flow := hashing.Flow(0)
		switch x := rng.Float64(); {
		case x < 0.4:
			flow = 1
		case x < 0.8:
			flow = 2 + hashing.Flow(rng.IntN(10))
		default:
			flow = 12 + hashing.Flow(300*rng.Float64()*rng.Float64())
		}
		p := passage{Flow: hashing.Flow(hashing.Mix(uint64(flow)*77, seed)), Packet: hashing.Packet(rng.Uint64()), Sent: int64(now * 1e9)}
		if queue > j.buffer {
			p.Lost = true
		} else {
			queue += service
			p.At = p.Sent + int64(queue*1e9)
		}
		sent = append(sent, p)
	}
	return sent
}

// An asked counts what a path says of all flows, one by one and together: answers, intervals that do not hold, and means below 0.
type asked struct {
	only                      func(truth) bool // these count, if not all
	single                    bool             // flows are asked for one at a time
	widths                    []float64        // of intervals one by one, over the mean
	from, to                  int64            // the window; 0 is no end
	flows, negative           int
	alone, together, unhidden score
	deviations                score
	off                       []float64 // relative errors of means, together
}

// ask asks for all flows, whose records are off by a factor, and adds what comes.
func (a *asked) ask(t *testing.T, w world, all []passage, factor float64) {
	t.Helper()
	epochs, arrived := w.cut(t, all)
	to := cmp.Or(a.to, 1e12)
	list := traffic.Truths(slices.DeleteFunc(arrived, func(p passage) bool { return p.At < a.from || p.At > to }), 1)
	path, flows := w.stored(t, epochs), recordsOf(list)
	for i := range flows {
		flows[i].Packets = math.Round(flows[i].Packets * factor)
	}
	alone, err := make([]Result, len(flows)), error(nil)
	for i := 0; i < len(flows) && a.single; i++ {
		alone[i], _, alone[i].Err = path.Estimate(t.Context(), flows[i], a.from, to)
	}
	if !a.single {
		alone, _, err = path.EstimateAll(t.Context(), flows, a.from, to)
	}
	if err != nil {
		t.Fatal(err)
	}
	together, _, err := path.Decode(t.Context(), flows, a.from, to, joint.Options{})
	if errors.Is(err, estimate.ErrNoSamples) {
		together.Mean, together.Usable = make([]float64, len(flows)), make([]uint16, len(flows))
	} else if err != nil {
		t.Fatal(err)
	}
	a.flows += len(flows)
	for i, f := range list {
		if a.only != nil && !a.only(f) {
			continue
		}
		r := alone[i]
		if r.Err == nil {
			in := r.MeanInterval(0.95)
			a.widths = append(a.widths, (in.High-in.Low)/f.Mean)
			if a.alone.add(in, f.Mean); r.StdDev > 0 {
				a.deviations.add(r.DeviationInterval(0.95), f.Deviation)
			}
			r.hidden = 0
			a.unhidden.add(r.MeanInterval(0.95), f.Mean)
		}
		if in := together.MeanInterval(i, 0.95); !math.IsInf(in.High, 1) {
			a.together.add(in, f.Mean)
			a.off = append(a.off, estimate.RelativeError(together.Mean[i], f.Mean))
		}
		if min(r.Mean, together.Mean[i]) < 0 {
			a.negative++
		}
	}
}

// Intervals of a crowd hold, whatever its packets do:
//   - Records of half or twice the packets are refused, or the counters' own numbers taken.
//   - Delays that wrap a counter's sum are refused.
//   - Samples find packets that take longer than a period, in a later epoch.
//   - Slow packets are seldom in a set of epochs that lost none, where a fifth of all are lost,
//     and never where they take longer than a table: rises of counts tell of them. Without
//     what these add intervals do not hold, which is the negative control.
//   - Packets that wait alike, in spells of their own or of all, are no more of a sample than
//     the spells are. What always waits alike is still known in units only.
//   - Where none come for some epochs, those that were sent have waited, before the window, too.
//   - Samples tell of a lag that grows, and so do counters of few flows.
//   - Where delays are alike but for one packet in a hundred, counters do not tell whose that was.
//   - Where none are sent every other second, those that come then are slow.
//   - In a window that begins after a stall, intervals are as narrow as if there had been none. Where a tenth is
//     lost, means are off by half as much again as 600 exponential delays, at most.
//   - In a jam what is lost is lost when delays are longest: the epochs that a flow's counters
//     cannot tell of are the worst ones. Deviations hold, too.
func TestCrowds(t *testing.T) {
	long(t)
	pauses := func(p *passage) { p.At, p.Sent = p.At+p.Sent/1e9*1e9, p.Sent+p.Sent/1e9*1e9 }
	alike := func(p *passage) { p.Lost, p.At = false, p.Sent+1e7+15e8*int64(1-min(p.Packet%100, 1)) }
	for name, c := range map[string]struct {
		pass          func(*rand.Rand) []passage
		loss, records float64
		bits          uint8
		oneIn         uint32
		refused       int // flows of 60 at least
		hides         bool
	}{
		"good records":          {crowd(0.002, 0, 1), 0, 1, 64, 0, 0, false},
		"halved":                {crowd(0.002, 0, 1), 0, 0.5, 64, 0, 15, false},
		"doubled":               {crowd(0.002, 0, 1), 0, 2, 64, 0, 30, false},
		"sums that wrap":        {crowd(0.1, 0, 1), 0, 1, 44, 0, 1, false},
		"rare, 1 % lost":        {crowd(0.005, 0.01, 100), 0.01, 1, 64, 16, 0, false},
		"one in 500, 1 % lost":  {crowd(0.005, 0.002, 600), 0.01, 1, 64, 0, 0, false},
		"one in 500, 20 % lost": {crowd(0.005, 0.002, 200), 0.2, 1, 64, 0, 0, false},
		"rare, 30 % lost":       {crowd(0.0002, 0.005, 3000), 0.3, 1, 64, 3, 0, false},
		"slow, 5 % lost":        {crowd(0.005, 0.02, 200), 0.05, 1, 64, 0, 0, false},
		"slower than a period":  {crowd(0.03, 0.01, 100), 0, 1, 64, 8, 0, false},
		"hidden by losses":      {slow(50, 100_000, 10, 500, 1), 0.2, 1, 64, 0, 0, true},
		"30 periods":            {slow(20, 20_000, 60, 100, 30), 0.01, 1, 64, 0, 0, true},
		"30 periods, alone":     {slow(1, 1000, 60, 100, 30), 0, 1, 64, 0, 0, true},
		"30 periods, or 0.3":    {but(func(p *passage) { p.At = max(p.At, p.Sent+3e8) }, slow(100, 30_000, 60, 33, 30)), 0, 1, 64, 0, 0, false},
		"every other second":    {but(pauses, slow(10, 40_000, 20, 50, 1)), 0.05, 1, 64, 0, 0, false},
		"alike but for few":     {but(alike, jams[0].pass), 0, 1, 64, 0, 0, false},
		"spells":                {inSpells(50, 1000, func(_, second uint64) float64 { return spell(7, second) }), 0.01, 1, 64, 0, 0, false},
		"own spells":            {inSpells(50, 1000, spell), 0.01, 1, 64, 0, 0, false},
		"none come for 6 s":     {minute(stops), 0, 1, 64, 0, 0, false},
		"none come, sampled":    {minute(stops), 0, 1, 64, 16, 0, false},
		"lag":                   {minute(lags), 0, 1, 64, 0, 0, false},
		"lag, sampled":          {minute(lags), 0, 1, 64, 16, 0, false},
		"retries, sampled":      {crowd(0.001, 0.001, 100), 0, 1, 64, 16, 0, false},
		"jam 0":                 {jams[0].pass, 0, 1, 64, 0, 0, false},
		"jam 1":                 {jams[1].pass, 0, 1, 64, 50, 0, false},
		"jam 2":                 {jams[2].pass, 0, 1, 64, 50, 0, false},
		"many flows, rare slow": {slow(300, 60_000, 10, 500, 1), 0, 1, 64, 0, 0, false},
		"always alike":          {inSpells(10, 10, always), 0, 1, 64, 0, 0, false},
		"after a stall":         {stalled, 0, 1, 64, 0, 0, false},
		"a tenth lost":          {slow(60, 36_000, 3, 1e9, 0), 0.1, 1, 64, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world{config: cutAt(1e9), loss: c.loss}
			w.config.CountBits, w.config.DigestBits, w.config.Bits, w.config.Shift = 8, 20, c.bits, 16
			w.config.OneIn, w.config.Samples = c.oneIn, int(c.oneIn)*1000
			if c.hides {
				w.config.Counters, w.config.CountBits, w.config.Shift = 16384, 14, 6
			}
			from := map[string]int64{"none come for 6 s": 26e9, "none come, sampled": 26e9, "after a stall": 6e9} // as a backlog comes
			a := asked{from: from[name]}
			if name == "30 periods, or 0.3" {
				a.from, a.to = 30e9, 50e9-1
			}
			for seed := uint64(0); seed < 2 || seed < 3 && c.hides || a.flows < 60 && !c.hides; seed++ {
				w.seed = seed
				a.ask(t, w, c.pass(rand.New(rand.NewPCG(seed, 1))), c.records)
			}
			least := 0
			if c.refused == 0 {
				least = a.flows / 3
			}
			a.alone.want(t, name+", one by one", least)
			a.together.want(t, name+", together", least)
			a.deviations.want(t, name+", deviations", 0)
			if max(a.alone.all, a.together.all) > a.flows-c.refused*a.flows/60 || a.negative > 0 || c.hides && a.unhidden.good() {
				t.Errorf("%s: %+v, want %d of 60 refused at least", name, a, c.refused)
			}
			// Units add a third of what intervals allow for, at most: one in 1,600 is outside.
			if name == "always alike" && a.together.held < a.together.all-1 {
				t.Errorf("%s: %+v hold", name, a.together)
			}
			if m := median(a.off); name == "good records" && m > 0.1 || name == "a tenth lost" && m > 1.5*0.6745/math.Sqrt(600) {
				t.Errorf("%s: median error %.3f", name, m)
			}
			if name == "after a stall" && median(a.widths) > 0.5 {
				t.Errorf("%s: intervals of %.2f of the mean", name, median(a.widths))
			}
		})
	}
}

// few has 20 flows whose sizes and mean delays differ widely.
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

// Where flows are few, one that shares a counter with another is in no absent flow's. Intervals of the largest
// flows hold, too, whether their packets are on record or read from the counters, and none is refused.
func TestFewFlows(t *testing.T) {
	long(t)
	w := world{config: cutAt(30e9), seed: 1}
	w.config.PerFlow = 16
	w.config.Counters, w.config.CountBits, w.config.DigestBits, w.config.Bits, w.config.Shift = 2000, 14, 20, 64, 12
	var s [2]score
	for seed := range uint64(20) {
		epochs, arrived := w.cut(t, few(rand.New(rand.NewPCG(seed, 2))))
		list := traffic.Truths(arrived, 1)
		slices.SortFunc(list, func(a, b truth) int { return cmp.Compare(b.Packets, a.Packets) })
		path, flows := w.stored(t, epochs), recordsOf(list)
		for k := range s {
			answers, _, err := path.EstimateAll(t.Context(), flows, 0, 1e12)
			if err != nil {
				t.Fatal(err)
			}
			for i, a := range answers[:5] {
				if a.Err == nil {
					s[k].add(a.MeanInterval(0.95), list[i].Mean)
				}
			}
			for i := range flows {
				flows[i].Packets = 0
			}
		}
	}
	s[0].want(t, "large flows on record", 100)
	s[1].want(t, "large flows", 100)
}

// A flow that alone has packets which take longer than the table of its epochs, or several of them where a
// fifth of all are lost, is distinguished by its own counters, and not by what all have in common. All of its
// counters count alike, although those without a slow packet look more certain.
func TestOneBeyondTheTable(t *testing.T) {
	for one, c := range map[int]struct {
		takes int64
		loss  float64
		hides bool
	}{30: {30e9, 0.01, true}, 3: {3e9, 0.2, false}, 31: {2e9, 0.2, false}} {
		a := asked{only: func(f truth) bool { return f.Flow == 0 }}
		for seed := range uint64(4) {
			all := slow(20, 20_000, 60, 1e9, 0)(rand.New(rand.NewPCG(seed, 1)))
			for i := range all {
				if p := &all[i]; p.Flow == 0 && i%one == 0 {
					p.At = p.Sent + c.takes
				}
			}
			w := world{config: cutAt(1e9), loss: c.loss, seed: seed}
			w.config.Counters, w.config.Shift = 16384, 6
			a.ask(t, w, all, 1)
		}
		if a.alone.want(t, "alone", 3); !a.together.good() || c.hides && a.unhidden.good() {
			t.Errorf("one in %d: together %+v hold, without what is hidden %+v", one, a.together, a.unhidden)
		}
	}
}

// Counters that always have packets on their way settle when these are fast: intervals hold, or there is no answer.
func TestManyOnTheWay(t *testing.T) {
	a := asked{}
	for seed := range uint64(4) {
		w, rng := world{config: cutAt(1e7), seed: seed}, rand.New(rand.NewPCG(seed, 5))
		w.config.Counters, w.config.PerFlow = 20, 4
		var all []passage
		for i := range 10_000 {
			p := passage{Flow: hashing.Flow(rng.Uint64N(10) + 10*seed), Packet: hashing.Packet(rng.Uint64()), Sent: int64(i) * 1e6}
			p.At = p.Sent + int64(37e6*math.Exp(1.5*rng.NormFloat64()-1))
			all = append(all, p)
		}
		a.ask(t, w, all, 1)
	}
	a.alone.want(t, "alone", 3)
	a.together.want(t, "together", 10)
}

// The sums of an elephant's counters wrap as a whole, so that they look small, where as many of its packets are on
// their way all the time. Its samples answer, one by one and together; without any there is no answer.
func TestSumsThatWrapAsAWhole(t *testing.T) {
	for _, oneIn := range []uint32{0, 16} {
		a := asked{}
		for seed := range uint64(4) {
			w, rng := world{config: cutAt(60e9), seed: seed}, rand.New(rand.NewPCG(seed, 11))
			w.config.Counters, w.config.Shift, w.config.CountBits, w.config.DigestBits = 4000, 9, 14, 20
			w.config.OneIn, w.config.Samples = oneIn, 2000*int(oneIn)
			turn := math.Ldexp(w.config.unit(), int(w.config.sumBits())) * float64(w.config.PerFlow)
			var all []passage
			for range 15_000 {
				p := passage{Flow: 1, Packet: hashing.Packet(rng.Uint64()), Sent: rng.Int64N(180e9)}
				p.At = p.Sent + int64(turn/5000*rng.ExpFloat64())
				all = append(all, p)
			}
			a.ask(t, w, all, 1)
		}
		least := 4 * int(min(oneIn, 1))
		if a.alone.want(t, "alone", least); !a.together.good() || a.together.all < least {
			t.Errorf("together: %+v", a.together)
		}
	}
}
