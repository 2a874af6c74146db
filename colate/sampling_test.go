package colate

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/traffic"
)

// What was sampled gives each flow's mean, deviation, quantiles and loss, through
// stores, with a corrected clock and epochs that hold fewer samples than others.
func TestSampling(t *testing.T) {
	long(t)
	for name, change := range map[string]func(*Config){
		"all room": func(c *Config) { c.Samples = 100_000 },
		"no room":  func(c *Config) { c.Samples = 700 }, // of some 2,500
	} {
		s := scene{config: minutes(2000), seconds: 600, flows: []sceneFlow{{300, exponential(0.05, 0.02)}, {40, exponential(0.01, 0)}}}
		s.config.OneIn = 10
		change(&s.config)
		for range 30 {
			s.flows = append(s.flows, sceneFlow{3, exponential(0.001, 0)})
		}
		var means, deviations, quantiles score
		for seed := range uint64(10) {
			path, record, mean := s.play(t, seed)
			r, _, err := path.Estimate(t.Context(), record, 0, 4e12)
			if err != nil {
				t.Fatal(err)
			}
			means.add(r.MeanInterval(0.95), mean)
			deviations.add(r.DeviationInterval(0.95), 0.05e9)
			p99, within, ok := r.Quantile(0.99, 0.95)
			quantiles.add(within, 0.05e9*math.Log(100))
			if p99 /= 0.05e9 * math.Log(100); !ok || math.Abs(p99-1) > 0.3 {
				t.Errorf("%s: a p99 of %.2f of what it is", name, p99)
			}
			least := uint64(record.Packets / 12)
			if name == "no room" {
				least = uint64(record.Packets / 60)
			}
			if r.Sampled < least || math.Abs(r.Lost-0.02) > 5*math.Sqrt(0.02/float64(r.Sampled)) {
				t.Errorf("%s: %d sampled, %.4f lost", name, r.Sampled, r.Lost)
			}
		}
		means.want(t, name, 10)
		deviations.want(t, name+", deviations", 10)
		quantiles.want(t, name+", quantiles", 10)
	}
}

// Copies are not taken for packets that were on their way for long.
func TestCopiesAreNotSlow(t *testing.T) {
	a, w := asked{}, world{config: minutes(600), copies: 0.01}
	w.config.OneIn, w.config.Samples = 8, 10_000
	a.ask(t, w, slow(20, 20_000, 600, 1e9, 0)(rand.New(rand.NewPCG(3, 2))), 1)
	if a.alone.want(t, "copies", 20); !a.together.good() || median(a.widths) > 1 {
		t.Errorf("%+v", a)
	}
}

// Copies of one packet are not taken for others, leave the samples of other flows their room, and cost their own flow only these packets.
func TestCopiesAreNotSampled(t *testing.T) {
	c := minutes(2000)
	c.OneIn, c.Samples = 8, 2000
	up, _ := New(c)
	down, _ := New(c)
	rng := rand.New(rand.NewPCG(4, 3))
	var delays estimate.Moments // of flow 1
	for i := range int64(50_000) {
		for k, p := range []hashing.Packet{hashing.Packet(rng.Uint64()), 12345} {
			f := hashing.Flow(1 + k)
			if f == 1 && i%10 > 0 {
				continue
			}
			up.Update(f, p, i*1000)
			if i%1000 > 0 {
				delay := int64(1e6 * rng.ExpFloat64())
				down.Update(f, p, i*1000+delay)
				if f == 1 {
					delays.Add(float64(delay))
				}
			}
		}
	}
	r, err := Estimate(up, down, joint.FlowRecord{Flow: 1})
	if err != nil || r.Sampled < 300 || !r.MeanInterval(0.999).Contains(delays.Mean()) {
		t.Errorf("%d sampled, %v in %v, %v", r.Sampled, r.Mean, r.MeanInterval(0.999), err)
	}
	if r, err := Estimate(up, down, joint.FlowRecord{Flow: 2, Packets: 50_000}); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("copies: %v, %v", r.Mean, err)
	}
}

// Packets that take up to three periods are not lost, and up to twenty where the stores' options say so; where
// they do not, samples give no answer.
func TestSamplesOfLongDelays(t *testing.T) {
	const packets = 4000
	for most, delay := range map[int64]int64{3: 0, 20: 20 * 60e9, 21: 0} { // periods
		w := world{config: minutes(6000), delay: delay}
		w.config.OneIn, w.config.Samples = 16, 100_000
		rng, mean := rand.New(rand.NewPCG(3, 1)), 0.0
		var all []passage
		for range packets {
			p := passage{Flow: 1, Packet: hashing.Packet(rng.Uint64()), Sent: rng.Int64N(20 * w.config.Period)}
			p.At = p.Sent + rng.Int64N(most*w.config.Period)
			mean += float64(p.At-p.Sent) / packets
			all = append(all, p)
		}
		epochs, _ := w.cut(t, all)
		r, _, err := w.stored(t, epochs).Estimate(t.Context(), joint.FlowRecord{Flow: 1, Packets: packets}, 0, 1e13)
		in := r.MeanInterval(0.99)
		if errors.Is(err, estimate.ErrNoSamples) != (most == 21) || most != 21 && (r.Lost > 0 || r.Sampled < packets/20 || !in.Contains(mean)) {
			t.Errorf("delays up to %d periods: %v lost of %d, a mean of %v in %v, %v", most, r.Lost, r.Sampled, mean, in, err)
		}
	}
}

// A flow that is too small to follow has no samples of another's, and packets of fast and slow flows vary as equal parts of their means.
func TestSamplesOfOthers(t *testing.T) {
	flows := []joint.FlowRecord{{Flow: 0x14f65d5d81ed62fc, Packets: 1000}, {Flow: 0x527bf73dade96423, Packets: 1}, {Flow: 1, Packets: 1000}}
	s := sampling{config: DefaultConfig, least: 64}
	s.aim(flows)
	s.find(s.config.key(flows[1].Flow)).kept = []passed{{delay: 1e6}, {delay: 3e6}}
	s.find(s.config.key(flows[2].Flow)).kept = []passed{{delay: 1e9}, {delay: 3e9}}
	if m := s.means(flows, 0); m[0].Packets != 2 || m[1].Packets != 0 || math.Abs(m[0].Part-2.0/3) > 1e-9 || m[2].Part != m[0].Part {
		t.Errorf("%+v", m)
	}
}

// A packet that comes twice has one delay, and an epoch does not count for more because more of it was sampled:
// quantiles are those of all packets.
func TestUnevenSamples(t *testing.T) {
	c := cutAt(1e9)
	c.OneIn, c.Samples = 1, 300
	var stores [2]*Store
	for i, delay := range []int64{0, 1} {
		stores[i] = openStore(t, newMemory(), StoreOptions{})
		for epoch, packets := range []int64{100, 10_000} {
			r, _ := New(c)
			for k := range packets {
				at, p := int64(epoch)*1e9+k*50_000, hashing.Word(3, uint64(k+packets))
				r.Update(1, p, at+delay*(2+28*int64(epoch))*1e6)
				if i == 1 && k%4 == 0 {
					r.Update(1, p, at+100e6)
				}
			}
			if err := stores[i].Append(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	r, _, err := Path{Up: stores[0], Down: stores[1]}.Estimate(t.Context(), joint.FlowRecord{Flow: 1}, 0, 2e9)
	const mean = (100*2e6 + 1e4*30e6) / 10_100
	if _, in, ok := r.Quantile(0.2, 0.95); err != nil || !ok || !in.Contains(30e6) || !r.MeanInterval(0.95).Contains(mean) {
		t.Errorf("20 %% in %v, a mean of %v in %v, %v", in, r.Mean, r.MeanInterval(0.95), err)
	}
}

// A flow alone is measured exactly. Where samples and counters contradict each other, as
// where the sampled packets alone are slow, there is no answer.
func TestSamplesContradictCounters(t *testing.T) {
	for _, slow := range []int64{1e6, 50e6} {
		c := minutes(2000)
		c.OneIn, c.Samples = 16, 1000
		rng := rand.New(rand.NewPCG(8, 1))
		up, _ := New(c)
		down, _ := New(c)
		records := []joint.FlowRecord{{Flow: 1, Packets: 8000}}
		for i := range int64(records[0].Packets) {
			p, delay := hashing.Packet(rng.Uint64()), int64(1e6)
			if uint32(p>>32) < c.limit() {
				delay = slow
			}
			up.Update(1, p, i*1e6)
			down.Update(1, p, i*1e6+delay)
		}
		r, err := Estimate(up, down, records[0])
		d, _ := Decode(t.Context(), up, down, records, joint.Options{})
		in := r.MeanInterval(0.95)
		if contradict := slow > 1e6; contradict != errors.Is(err, estimate.ErrNoSamples) || contradict == (d.Usable[0] > 0) ||
			!contradict && (math.Abs(r.Mean-1e6) > 10 || in.High-in.Low > 20) {
			t.Errorf("sampled packets take %d ns: %v in %v, %v; decoded %v", slow, r.Mean, in, err, d)
		}
	}
}

// A Config with few counters relies on samples alone: it does not answer for a flow with the delays of others.
// A flow of which no slow packet was sampled may have as many as others, whether it is asked for together with
// them or alone. By its own samples a third of the intervals fail.
func TestFewCounters(t *testing.T) {
	for oneIn, least := range map[uint32]int{0: 0, 4: 100} {
		for _, single := range []bool{true, false} {
			a := asked{single: single}
			for seed := range uint64(1 + min(oneIn, 1)) { // without samples there is nothing to hold
				w := world{config: cutAt(1e9), loss: 0.05 * min(float64(oneIn), 1), seed: seed}
				w.config.Counters, w.config.OneIn, w.config.Samples, w.config.Shift = 21, oneIn, 2000*int(oneIn), 6
				a.ask(t, w, crowd(0.01, 0.02, 80)(rand.New(rand.NewPCG(seed, 9))), 1)
			}
			a.deviations.want(t, "deviations", least)
			if a.alone.want(t, "samples", least); oneIn == 0 && a.alone.all+a.together.all > 0 {
				t.Errorf("without samples %d answers, together %d", a.alone.all, a.together.all)
			}
		}
	}
}

// Flows that are slower than most have slow packets that are slower, too.
func TestSlowFlowsAmongOthers(t *testing.T) {
	a := asked{only: func(f truth) bool { return f.Flow%4 == 3 }}
	for seed := range uint64(8) {
		w, all := world{config: cutAt(1e9), seed: seed}, crowd(0.001, 0.03, 30)(rand.New(rand.NewPCG(seed, 9)))
		w.config.Counters, w.config.OneIn, w.config.Samples, w.config.Shift = 21, 8, 20_000, 6
		for i, p := range all {
			all[i].At += (p.At - p.Sent) * 9 * int64(p.Flow%4/3)
		}
		a.ask(t, w, all, 1)
	}
	a.deviations.want(t, "deviations", 50)
	// Where 5 of all samples were slow, chance may have left out as many as 5 more, however many the flow has.
	r := Result{Sampled: 291, samples: sampled{packets: 291, deviation: 2.7e6, freedom: 64, hidden: 1.4e15, rare: 33, others: 5}}
	if in := r.DeviationInterval(0.95); in.High < math.Sqrt(2*1.4e15) {
		t.Errorf("deviations up to %.3g with 5 slow samples", in.High)
	}
}

// Counters show slow packets that no sample shows, also in epochs of their own, and they may all be of one flow. Where all of a
// flow's counters lose some, other flows' samples show them. Without either, 131 of 300 deviations hold, and 83 of 200.
func TestSlowPacketsInCounters(t *testing.T) {
	for loss, pass := range map[float64]func(*rand.Rand) []passage{
		0: slow(60, 180_000, 6, 3000, 1), 1e-9: slow(5, 50_000, 6, 20_000, 5), 0.1: slow(40, 120_000, 120, 500, 5),
	} {
		a := asked{single: loss == 0.1}
		for seed := range uint64(5) {
			w := world{config: cutAt(1e9), seed: seed, loss: loss}
			if w.config.Shift, w.config.CountBits = 16, 8; a.single {
				w.config = minutes(3000)
			}
			w.config.OneIn, w.config.Samples = 64, 10_000
			a.ask(t, w, pass(rand.New(rand.NewPCG(seed, 9))), 1)
		}
		a.deviations.want(t, "deviations", 25)
		a.alone.want(t, "means", 25)
	}
}

// Flows that wait alike, each in seconds of its own, have no rare slow packets, although counters differ like that from
// one epoch to the next: intervals are at most twice as wide as normal errors need.
func TestSpellsAreNotRare(t *testing.T) {
	half, off := 0.0, 0.0
	for seed := range uint64(4) {
		w := world{config: cutAt(1e9), loss: 0.01, seed: seed}
		w.config.CountBits, w.config.DigestBits, w.config.Bits, w.config.Shift = 8, 20, 64, 16
		epochs, arrived := w.cut(t, inSpells(50, 1000, spell)(rand.New(rand.NewPCG(seed, 1))))
		list := traffic.Truths(arrived, 1)
		for i, a := 0, w.follow(t, epochs, recordsOf(list)); i < len(list); i++ {
			r := a.answer(i, false)
			in := r.MeanInterval(0.95)
			half, off = math.Hypot(half, (in.High-in.Low)/2), math.Hypot(off, r.Mean-list[i].Mean)
		}
	}
	if half > 2*1.96*off {
		t.Errorf("intervals of %.2f standard errors", half/off)
	}
}
