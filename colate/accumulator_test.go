package colate

import (
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/traffic"
)

// records are those of flows of 10 packets.
func records(flows ...hashing.Flow) []joint.FlowRecord {
	var list []joint.FlowRecord
	for _, f := range flows {
		list = append(list, joint.FlowRecord{Flow: f, Packets: 10})
	}
	return list
}

// recordsOf returns the records of these flows.
func recordsOf(list []truth) []joint.FlowRecord {
	var all []joint.FlowRecord
	for _, f := range list {
		all = append(all, joint.FlowRecord{Flow: f.Flow, Packets: float64(f.Packets)})
	}
	return all
}

// A world is what happens to traffic between two points.
type world struct {
	config Config
	loss   float64
	offset int64 // of the second point's clock
	seed   uint64
	delay  int64   // that its stores are told
	copies float64 // of packets, at the second point
}

// cut lets both points record, and returns their epochs by start, and the packets that arrived.
func (w world) cut(t testing.TB, all []passage) (epochs map[int64]*[2]*Recorder, arrived []passage) {
	rng := rand.New(rand.NewPCG(w.seed, 9))
	epochs, arrived = map[int64]*[2]*Recorder{}, make([]passage, 0, len(all))
	add := func(point int, p passage, at int64) {
		start := at / w.config.Period
		if epochs[start] == nil {
			epochs[start] = new([2]*Recorder)
			for i := range epochs[start] {
				epochs[start][i], _ = New(w.config)
			}
		}
		epochs[start][point].Update(p.Flow, p.Packet, at)
	}
	for _, p := range all {
		add(0, p, p.Sent)
		if rng.Float64() >= w.loss && !p.Lost {
			add(1, p, p.At+w.offset)
			for w.copies > 0 && rng.Float64() < w.copies {
				add(1, p, p.At+w.offset)
			}
			arrived = append(arrived, p)
		}
	}
	return epochs, arrived
}

// stored keeps epochs in two stores.
func (w world) stored(t testing.TB, epochs map[int64]*[2]*Recorder) Path {
	t.Helper()
	var stores [2]*Store
	for i := range stores {
		stores[i] = openStore(t, newMemory(), StoreOptions{segmentBytes: 100_000, Delay: w.delay})
		for _, start := range slices.Sorted(maps.Keys(epochs)) {
			if err := stores[i].Append(epochs[start][i]); err != nil && !errors.Is(err, ErrOverloaded) {
				t.Fatal(err)
			}
		}
	}
	return Path{Up: stores[0], Down: stores[1]}
}

// follow adds all epochs, in the order of time.
func (w world) follow(t testing.TB, epochs map[int64]*[2]*Recorder, flows []joint.FlowRecord) *accumulator {
	t.Helper()
	a := newAccumulator(w.config, len(flows))
	if err := a.aim(flows); err != nil {
		t.Fatal(err)
	}
	a.addAll(t, epochs)
	return a
}

// addAll adds epochs in the order of time.
func (c *comparison) addAll(t testing.TB, epochs map[int64]*[2]*Recorder) {
	t.Helper()
	for _, start := range slices.Sorted(maps.Keys(epochs)) {
		up, down, s, err := pair(epochs[start][0], epochs[start][1])
		if err != nil {
			t.Fatal(err)
		}
		c.add(up, down, s)
	}
}

// held scores the intervals of those flows that have an answer. None may be wider than a multiple of the mean.
func (a *accumulator) held(t testing.TB, list []truth, offset, widest float64) (s score) {
	t.Helper()
	for i, f := range list {
		r := a.answer(i, false)
		if in := r.MeanInterval(0.95); r.Err == nil && in.High-in.Low > widest*f.Mean {
			s.add(estimate.Interval{}, 1)
		} else if r.Err == nil {
			s.add(in, f.Mean+offset)
		}
	}
	return s
}

// Intervals hold for as many flows as they say, of every size, with loss, sampled records and an offset of the clocks,
// and in one epoch as in many. Believing every counter, whether it lost a packet or not, is the negative control.
func TestIntervalCoverage(t *testing.T) {
	long(t)
	all, rng := traffic.Flows(1, 10_000), rand.New(rand.NewPCG(5, 5))
	for name, w := range map[string]struct {
		world
		doubt float64
		blind bool
	}{
		"one epoch":              {world: world{config: testConfig}},
		"cut":                    {world: world{config: cutAt(4e6)}},
		"cut, 1 % lost":          {world: world{config: cutAt(4e6), loss: 0.01}},
		"cut, 5 % lost":          {world: world{config: cutAt(2e6), loss: 0.05}},
		"cut, lost, offset":      {world: world{config: cutAt(4e6), loss: 0.01, offset: 300_000}},
		"cut, lost, 1:10 record": {world: world{config: cutAt(4e6), loss: 0.01}, doubt: 3},
		"every counter believed": {world: world{config: cutAt(4e6), loss: 0.01}, blind: true},
	} {
		w.seed = 3
		epochs, arrived := w.cut(t, all)
		for _, least := range []uint64{2, 50} {
			if w.blind && least > 2 {
				continue // of large flows, wide intervals hold something
			}
			list := traffic.Truths(arrived, least)
			list = list[:min(len(list), 250)]
			flows := recordsOf(list)
			for i := range flows {
				flows[i].Doubt = w.doubt * math.Sqrt(flows[i].Packets)
				flows[i].Packets = max(flows[i].Packets+flows[i].Doubt*rng.NormFloat64(), 0)
			}
			if w.blind {
				for _, pair := range epochs {
					believe(pair)
				}
			}
			s := w.follow(t, epochs, flows).held(t, list, float64(w.offset), 200)
			if s.good() == w.blind || s.all < 5 {
				t.Errorf("%s, flows of %d packets or more: %+v", name, least, s)
			}
		}
	}
}

func cutAt(period int64) Config {
	c := testConfig
	c.Period = period
	return c
}

// believe makes the counts and digests of a pair agree, as if nothing had been lost.
func believe(pair *[2]*Recorder) {
	low := uint64(1)<<pair[0].config.lowBits() - 1
	for i := range pair[0].words {
		pair[0].words[i] = pair[0].words[i]&^low | pair[1].words[i]&low
	}
}

// The areas of a set of epochs are the time that its packets spent on their way, whatever crossed its cuts, and without loss they
// are known for nearly every epoch. Within one cell, packet by packet, no packet of a set was lost or arrived in another set.
func TestAreas(t *testing.T) {
	c := Config{Counters: 4, PerFlow: 2, Bits: 64, CountBits: 8, DigestBits: 24, Period: 1}
	rng := rand.New(rand.NewPCG(8, 8))
	for _, loss := range []float64{0, 0.02} {
		settled, epochs := 0, 0
		for range 400 {
			pair := newComparison(c, 1, room)
			table := pair.table
			type packet struct {
				in, out int64
				lost    bool
			}
			var packets []packet
			var up, down [60]uint64 // by epoch
			for range 75 {
				p := packet{in: rng.Int64N(50_000), lost: rng.Float64() < loss}
				p.out = p.in + int64(300*rng.ExpFloat64())
				packets = append(packets, p)
				low := rng.Uint64()>>40<<8 + 1 // digest and count
				if up[p.in/1000] += uint64(p.in)<<32 + low; !p.lost {
					down[p.out/1000] += uint64(p.out)<<32 + low
				}
			}
			for e := range int64(room - 1) {
				table.put(0, up[e], down[e])
				pair.end(span{e * 1000, e*1000 + 1000}, 1, 1, true)
			}
			var s sight
			table.read(0, &s)
			want, got, crossed := [room]float64{}, [room]float64{}, [room]float64{}
			for _, p := range packets {
				in, out := p.in/1000, p.out/1000
				if in < room-1 && s.settled>>in&1 != 0 && !p.lost {
					want[s.set[in]] += float64(p.out - p.in)
					if out >= room-1 || s.settled>>out&1 == 0 || s.set[in] != s.set[out] {
						t.Fatalf("loss %v: a packet is sent in set %d, and comes in another", loss, s.set[in])
					}
					if in != out {
						crossed[s.set[in]]++ // may carry from its digest to the time
					}
				}
			}
			for e := range room - 1 {
				got[s.set[e]] += s.areas[e]
				if e < 20 {
					epochs++
					settled += int(s.settled >> e & 1)
				}
			}
			for e := range got {
				if math.Abs(got[e]-want[e]) > crossed[e] {
					t.Fatalf("loss %v: an area of %v, want %v", loss, got[e], want[e])
				}
			}
		}
		if part := float64(settled) / float64(epochs); part < 0.7 || loss == 0 && part < 0.99 {
			t.Errorf("loss %v: areas are known of %.3f of the epochs", loss, part)
		}
	}
}

// A flow of most of the packets, whose counts wrap many times in each epoch, neither ends an epoch nor spoils
// others; its own mean is right where its record can be checked, and otherwise refused.
func TestElephant(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	all := traffic.Flows(4, 6000)
	n := len(all)
	for range n {
		at := all[rng.IntN(n)].Sent
		all = append(all, passage{Flow: 1, Packet: hashing.Packet(rng.Uint64()), Sent: at, At: at + 900_000})
	}
	c := cutAt(4e6)
	c.CountBits = 12
	w := world{config: c, loss: 0.002}
	epochs, arrived := w.cut(t, all)
	list := traffic.Truths(arrived, 50)
	w.follow(t, epochs, recordsOf(list)).held(t, list, 0, math.Inf(1)).want(t, "beside an elephant", len(list)*9/10)
	narrow := w
	narrow.config.CountBits = 4
	epochs, _ = narrow.cut(t, all)
	r := narrow.follow(t, epochs, []joint.FlowRecord{{Flow: 1, Packets: float64(n)}}).answer(0, false)
	if !errors.Is(r.Err, estimate.ErrNoSamples) {
		t.Errorf("an elephant that 4 bits cannot count: %v", r.Err)
	}
}

func TestEstimateErrors(t *testing.T) {
	up, _ := recorded(t, testConfig, traffic.Flows(6, 100))
	other := testConfig
	other.Identity++
	foreign, _ := New(other)
	foreign.Update(1, 2, 3)
	if _, err := Estimate(up, foreign, records(1)[0]); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("another identity: %v", err)
	}
	later, _ := New(cutAt(1000))
	later.Update(1, 2, 5000)
	if _, err := Estimate(up, later, records(1)[0]); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("another time: %v", err)
	}
	empty, _ := New(testConfig)
	if _, err := Estimate(up, empty, records(1)[0]); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("nothing at the second point: %v", err)
	}
	sparse, _ := New(testConfig)
	unlike, _ := New(testConfig)
	for i := range uint64(10) {
		sparse.Update(1, hashing.Packet(hashing.Mix(i, 1)), 3)
		unlike.Update(1, hashing.Packet(hashing.Mix(i, 2)), 3)
	}
	if r, err := Estimate(sparse, unlike, records(1)[0]); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("other packets at the second point: %v, %v", r.MeanInterval(0.95), err)
	}
	for name, flows := range map[string][]joint.FlowRecord{"none": nil, "negative": {{Packets: -1}}, "NaN": {{Packets: math.NaN()}}} {
		if err := newAccumulator(testConfig, len(flows)).aim(flows); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("flows, %s: %v", name, err)
		}
	}
	if _, err := Decode(t.Context(), up, foreign, records(1), joint.Options{}); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("decoding another identity: %v", err)
	}
}

// An answer about one flow allocates nothing after the first, whether its packets were sampled or not.
func TestEstimateAllocations(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector empties pools")
	}
	c := testConfig
	c.OneIn, c.Samples = 4, 100_000
	all := traffic.Flows(6, 500)
	up, down := recorded(t, c, all)
	for _, least := range []uint64{2, 200} {
		list := traffic.Truths(all, least)
		f := list[len(list)-1]
		record := joint.FlowRecord{Flow: f.Flow, Packets: float64(f.Packets)}
		if r, err := Estimate(up, down, record); err != nil || (r.Sampled > 0) != (least > 100) {
			t.Fatalf("%d packets: %+v, %v", f.Packets, r.Delay, err)
		}
		if n := testing.AllocsPerRun(50, func() { Estimate(up, down, record) }); n != 0 {
			t.Errorf("%d packets: %v allocations", f.Packets, n)
		}
	}
}

// A flow that shares all of its few counters with another cannot be told from a larger flow by them. With its
// record in doubt the interval holds that; without one, at most one of two hundred small flows has an answer.
func TestSharedByChance(t *testing.T) {
	for _, c := range []struct{ counters, perFlow, flows, least, shape, known float64 }{
		{2000, 2, 400, 150, 2, 1}, {9000, 4, 400, 150, 2, 1}, {51, 8, 3000, 1, 0.8, 0}, {51, 2, 3000, 1, 0.8, 0},
	} {
		answered, asked, missed := 0, 0, 0
		for seed := range uint64(3) {
			rng := rand.New(rand.NewPCG(seed, 7))
			var all []passage
			for f := range uint64(c.flows) {
				for range int(min(c.least*math.Pow(rng.Float64(), -1/c.shape), 30_000)) {
					p := passage{Flow: hashing.Flow(hashing.Mix(f, seed)), Packet: hashing.Packet(rng.Uint64()), Sent: rng.Int64N(8e9)}
					p.At = p.Sent + int64(1e8*rng.ExpFloat64())
					all = append(all, p)
				}
			}
			w := world{config: cutSeconds(int(c.counters))}
			w.config.PerFlow = int(c.perFlow)
			epochs, arrived := w.cut(t, all)
			list := traffic.Truths(arrived, 1)
			flows := recordsOf(list)
			for i := range flows {
				flows[i].Packets *= c.known
				flows[i].Doubt = flows[i].Packets
			}
			answers, _, err := w.stored(t, epochs).EstimateAll(t.Context(), flows, 0, 1e12)
			for i, r := range answers {
				if asked++; err != nil || r.Err == nil && (c.known > 0 || list[i].Packets < 100) {
					answered++
				}
				if in := r.MeanInterval(0.999); c.known > 0 && (in.Low > list[i].Mean+600 || in.High < list[i].Mean-600) {
					missed++
				}
			}
		}
		t.Logf("%+v: %d of %d answered, %d missed", c, answered, asked, missed)
		if 200*missed > answered || c.known == 0 && 200*answered > asked {
			t.Error("too many")
		}
	}
}

// Sums of a flow that was alone for a table of epochs, in which no other cell tells what is usual, go on when others come.
func TestAloneAtFirst(t *testing.T) {
	w, rng := world{config: cutAt(1e9)}, rand.New(rand.NewPCG(1, 2))
	w.config.Counters = 100_000
	all := slow(1, 1000, 50, 1<<30, 0)(rng)
	for _, p := range slow(300, 40_000, 18, 1<<30, 0)(rng) {
		all = append(all, passage{Flow: p.Flow + 1, Packet: p.Packet, Sent: p.Sent + 32e9, At: p.At + 32.1e9})
	}
	epochs, _ := w.cut(t, all)
	r := w.follow(t, epochs, []joint.FlowRecord{{Packets: 1000}}).answer(0, false)
	if i := r.MeanInterval(0.95); r.Err != nil || i.Low > 5e6 || i.High < 5e6 || i.High > 25e6 { // from 55 to 69 ms once
		t.Errorf("the mean is within %v: %v", i, r.Err)
	}
}
