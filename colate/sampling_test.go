package colate

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// What was sampled gives each flow's mean, deviation, quantiles and loss, through
// stores, with a corrected clock and epochs that hold fewer samples than others.
func TestSampling(t *testing.T) {
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
		hits, deviations, quantiles := 0, 0, 0
		const seeds = 10
		for seed := range uint64(seeds) {
			path, packets, mean := s.play(t, seed)
			r, _, err := path.Estimate(t.Context(), joint.FlowRecord{Flow: s.first(seed), Packets: packets}, 0, 4e12)
			if err != nil {
				t.Fatal(err)
			}
			if r.MeanInterval(0.95).Contains(mean) {
				hits++
			}
			if r.DeviationInterval(0.95).Contains(0.05e9) {
				deviations++
			}
			p99, within, ok := r.Quantile(0.99, 0.95)
			if want := 0.05e9 * math.Log(100); ok && within.Contains(want) && math.Abs(p99/want-1) < 0.3 {
				quantiles++
			}
			least := uint64(packets / 12)
			if name == "no room" {
				least = uint64(packets / 60)
			}
			if r.Sampled < least || math.Abs(r.Lost-0.02) > 5*math.Sqrt(0.02/float64(r.Sampled)) {
				t.Errorf("%s: %d sampled, %.4f lost", name, r.Sampled, r.Lost)
			}
		}
		if least := 0.95*seeds - shortfall(seeds, 0.95); float64(min(hits, deviations, quantiles)) < least {
			t.Errorf("%s: of %d means %d, of deviations %d, of quantiles %d hold", name, seeds, hits, deviations, quantiles)
		}
	}
}

// Two points sample the same packets, whatever their order; shards that are
// merged have what one recorder has; and what is encoded is what was sampled.
func TestSamplesAlike(t *testing.T) {
	c := minutes(300)
	c.OneIn, c.Samples = 4, 500
	rng := rand.New(rand.NewPCG(3, 3))
	whole, _ := New(c)
	shards := [2]*Recorder{}
	for i := range shards {
		shards[i], _ = New(c)
	}
	batch, _ := New(c)
	for i := range 10_000 {
		f, p, at := hashing.Flow(rng.Uint64()), hashing.Packet(rng.Uint64()), int64(i)*1e6
		whole.Update(f, p, at)
		shards[i%2].Update(f, p, at)
		batch.UpdateBatch([]hashing.Flow{f}, []hashing.Packet{p}, at)
	}
	if err := shards[0].Merge(shards[1]); err != nil {
		t.Fatal(err)
	}
	data := encoded(t, whole)
	if string(data) != string(encoded(t, shards[0])) || string(data) != string(encoded(t, batch)) || len(whole.samples) < 250 {
		t.Errorf("%d samples of one, %d of two", len(whole.samples), len(shards[0].samples))
	}
	back := new(Recorder)
	if err := back.UnmarshalBinary(data); err != nil || back.limit != whole.limit || len(back.samples) != len(whole.samples) {
		t.Fatalf("%v, %d samples", err, len(back.samples))
	}
	for at := range data {
		changed := append([]byte(nil), data...)
		changed[at] ^= 4
		if err := new(Recorder).UnmarshalBinary(changed); !errors.Is(err, estimate.ErrEncoding) {
			t.Fatalf("byte %d changed: %v", at, err)
		}
	}
	whole.Reset()
	if len(whole.samples) != 0 || whole.limit != c.limit() {
		t.Error("samples after Reset")
	}
	if n := testing.AllocsPerRun(100, func() { whole.Update(1, hashing.Packet(rng.Uint64()), 5) }); n > 0 {
		t.Errorf("%v allocations a packet", n)
	}
	c.Samples = 0
	if _, err := New(c); !errors.Is(err, estimate.ErrConfig) {
		t.Errorf("samples without room: %v", err)
	}
}

// Copies of one packet are not taken for others, leave the samples of other flows
// their room, and cost their own flow these packets only.
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
