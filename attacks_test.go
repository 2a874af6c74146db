package hoplag

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lds"
	"github.com/hoplag/hoplag/rli"
)

// A secret as a seed and as a key.
var secretKey = [16]byte([]byte("\xc9\x1e\x7b\x53\xa4\x08\xd6\x2f\x91\x3a\xee\x65\x0b\xf7\x48\xdc"))

// The attacks of SECURITY.md, by what the attacker knows.

// keysOf returns what someone who knows a seed can compute of its digests: the keys added to the factors of their first product.
func keysOf(seed, constant uint64) (x, y uint64) {
	hi, lo := bits.Mul64(seed^0x6a09e667f3bcc909, constant) // except for a few seeds
	return hi ^ lo, hi
}

// crafted are different packets of 40 bytes that a known seed gives one digest: their first factor is zero.
func crafted(seed uint64, n int) [][]byte {
	x, _ := keysOf(seed, 0xbb67ae8584caa73b+2*40)
	packets := make([][]byte, n)
	for i := range packets {
		packets[i] = make([]byte, 40)
		binary.LittleEndian.PutUint64(packets[i], x)
		binary.LittleEndian.PutUint64(packets[i][8:], uint64(i))
	}
	return packets
}

// Whoever sees the traffic sends packets again behind the first point: their cells become unusable, and all others stay right.
func TestReplayedPackets(t *testing.T) {
	const packets, replayed = 200_000, 300
	up, down := must(lda.New(lda.DefaultConfig)), must(lda.New(lda.DefaultConfig))
	rng := rand.New(rand.NewPCG(12, 6))
	mean := 0.0
	for i := range packets {
		p, now, delay := hashing.Packet(rng.Uint64()), int64(i)*1000, 40_000+rng.Int64N(20_000)
		up.Update(p, now)
		down.Update(p, now+delay)
		mean += float64(delay) / packets
		if i%(packets/replayed) == 0 {
			down.Update(p, now+1e9)
		}
	}
	r, err := lda.Estimate(up, down)
	if err != nil || r.Extra < replayed || r.Extra > replayed+1 || !r.MeanInterval(0.9999).Contains(mean) ||
		math.Abs(r.StdDev-20_000/math.Sqrt(12)) > 800 {
		t.Errorf("%+v, %v, mean %v", r, err, mean)
	}
	// With half as many packets as there are, the cells of the deepest bank are left; with a hundred times as
	// many none are, and there is no answer.
	flood := func(packets int) (lda.Result, error) {
		for i := range packets {
			down.Update(hashing.Packet(rng.Uint64()), int64(i))
		}
		return lda.Estimate(up, down)
	}
	if r, err := flood(packets / 2); err == nil && !r.MeanInterval(0.9999).Contains(mean) {
		t.Errorf("flooded: %+v, mean %v", r, mean)
	}
	if r, err := flood(100 * packets); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("flooded for good: %+v, %v", r, err)
	}
}

// aim measures 100,000 packets that take 50 µs, and slow ones that take 1 ms, the first of which is lost.
func aim(t *testing.T, packet func(i int) hashing.Packet, slow []hashing.Packet) (r lda.Result, mean float64) {
	t.Helper()
	const honest = 100_000
	up, down := must(lda.New(lda.DefaultConfig)), must(lda.New(lda.DefaultConfig))
	for i := range honest {
		up.Update(packet(i), int64(i)*1000)
		down.Update(packet(i), int64(i)*1000+50_000)
	}
	for i, p := range slow {
		up.Update(p, int64(i)*1000)
		if i > 0 {
			down.Update(p, int64(i)*1000+1_000_000)
		}
	}
	r, err := lda.Estimate(up, down)
	must0(t, err)
	n := float64(len(slow))
	return r, (honest*50_000 + n*1_000_000) / (honest + n)
}

// Whoever knows the seed of Digest aims packets at one cell, and drops one of
// them: they are missing from the mean. The cell is overfull, which tells.
func TestSeedAimsAtOneCell(t *testing.T) {
	const seed = 77
	sip := hashing.SipHashFromKey(secretKey)
	measure := func(digest func([]byte) hashing.Packet) (lda.Result, float64) {
		var slow []hashing.Packet
		for _, b := range crafted(seed, 5000) {
			slow = append(slow, digest(b))
		}
		return aim(t, func(i int) hashing.Packet { return digest(fmt.Appendf(nil, "honest packet %d", i)) }, slow)
	}
	digest := func(b []byte) hashing.Packet { return hashing.Digest(seed, b) }
	if r, _ := measure(digest); r.Mean > 51_000 || r.Repeats < 4500 {
		t.Errorf("seed known: mean %v, %+v: the attack is none", r.Mean, r.Repeats)
	}
	if r, want := measure(sip.Packet); math.Abs(r.Mean-want) > 0.1*want || r.Repeats > 0 {
		t.Errorf("key not known: mean %v, want %v, %+v", r.Mean, want, r.Repeats)
	}
}

// Whoever holds a key aims packets at one cell, too, but by trial, some 2,200 a packet. It is overfull in the same way.
func TestKeyAimsAtOneCell(t *testing.T) {
	sip := hashing.SipHashFromKey(secretKey)
	var slow []hashing.Packet
	trials := uint64(1 << 32)
	for ; len(slow) < 1000; trials++ {
		if p := sip.Word(trials); p%2048 == 7 && bits.LeadingZeros64(p) < 4 {
			slow = append(slow, hashing.Packet(p))
		}
	}
	r, want := aim(t, func(i int) hashing.Packet { return hashing.Packet(sip.Word(uint64(i))) }, slow)
	if r.Mean > 50_100 || r.Repeats < 1000 || !r.MeanInterval(0.98).Contains(want) {
		t.Errorf("mean %v in %v, want %v; %+v", r.Mean, r.MeanInterval(0.98), want, r.Repeats)
	}
}

// Whoever knows the seed of Tuple.Flow can find addresses that pass for another's flow: synopses of flows then
// mix the two. A key keeps them apart.
func TestSeedPassesForAFlow(t *testing.T) {
	const seed = 77
	x, y := keysOf(seed, 0xa54ff53a5f1d36f1)
	le := binary.LittleEndian
	rng := rand.New(rand.NewPCG(12, 8))
	var victim, forged hashing.Tuple
	for { // a quarter of all addresses will do
		victim = hashing.Tuple{Proto: 6, SrcPort: 1, DstPort: 443}
		a, b := rng.Uint64(), rng.Uint64()
		le.PutUint64(victim.Src[:8], a)
		le.PutUint64(victim.Src[8:], b)
		if a^x < 1<<63 && (b^y)%2 == 0 {
			forged = victim
			le.PutUint64(forged.Src[:8], 2*(a^x)^x)
			le.PutUint64(forged.Src[8:], (b^y)/2^y)
			break
		}
	}
	if victim == forged || victim.Flow(seed) != forged.Flow(seed) {
		t.Errorf("%x and %x are flows %x and %x: the attack is none", victim.Src, forged.Src, victim.Flow(seed), forged.Flow(seed))
	}
	if sip := hashing.SipHashFromKey(secretKey); sip.Flow(&victim) == sip.Flow(&forged) || victim.Flow(seed+1) == forged.Flow(seed+1) {
		t.Error("without the seed they are one flow, too")
	}
}

// A flood of flows takes the room for records, whoever sends it: flows of many packets keep theirs, all packets are in the
// total, and what has no record is counted. Records are given up at random, so one flood in three may take this one's.
func TestFloodOfFlows(t *testing.T) {
	c := rli.DefaultConfig
	c.Method, c.Buffer, c.Flows = rli.Left, 0, 1000
	key := hashing.SipHashFromKey(secretKey)
	kept := false
	for range 3 {
		r := must(rli.NewReceiver(c))
		r.Reference(rli.ReferencePacket{}, 500)
		for i := range uint64(100_000) {
			flow := key.Word(i)
			if i%100 == 0 {
				flow = key.Word(0)
			}
			r.Update(hashing.Flow(flow), 100, 500+int64(i))
			if i%100 == 99 {
				r.Reference(rli.ReferencePacket{Sequence: 1 + i/100, Sent: int64(i)}, 500+int64(i))
			}
		}
		total, err := r.Total()
		if k := r.Counts(); err != nil || total.N != 100_000 || k.Shed == 0 || k.Evicted == 0 {
			t.Errorf("total %+v, %v; %+v", total, err, k)
		}
		got, err := r.Estimate(hashing.Flow(key.Word(0)))
		kept = kept || err == nil && got.N == 1000
	}
	if !kept {
		t.Error("a flow of 1,000 packets has no record")
	}
}

// A passing is a packet of a flow at two points; one that only one of them saw has no time at the other.
type passing struct {
	flow           hashing.Flow
	packet         hashing.Packet
	sent, received int64
}

const never = math.MinInt64

// answer is what a synopsis says of a flow.
type answer struct {
	mean     float64
	interval estimate.Interval
	err      error
}

// An updater is a synopsis of flows.
type updater interface {
	Update(hashing.Flow, hashing.Packet, int64)
}

// passBoth shows two synopses what passed, and returns how many packets of each flow were sent.
func passBoth(up, down updater, all []passing) map[hashing.Flow]float64 {
	packets := map[hashing.Flow]float64{}
	for _, p := range all {
		if p.sent != never {
			up.Update(p.flow, p.packet, p.sent)
			packets[p.flow]++
		}
		if p.received != never {
			down.Update(p.flow, p.packet, p.received)
		}
	}
	return packets
}

// byFlow are the synopses that answer for a flow.
var byFlow = map[string]func(t *testing.T, all []passing) func(hashing.Flow) answer{
	"LDS": func(t *testing.T, all []passing) func(hashing.Flow) answer {
		up, down := must(lds.New(lds.DefaultConfig)), must(lds.New(lds.DefaultConfig))
		passBoth(up, down, all)
		return func(f hashing.Flow) answer {
			r, err := lds.Estimate(up, down, f)
			return answer{r.Mean, r.MeanInterval(0.98), err}
		}
	},
	"COLATE": func(t *testing.T, all []passing) func(hashing.Flow) answer {
		c := colate.DefaultConfig
		c.Counters, c.Shift = 45_533, 0
		up, down := must(colate.New(c)), must(colate.New(c))
		packets := passBoth(up, down, all)
		if up.Due(20e9) || down.Due(20e9) {
			t.Error("the epoch is over before its time")
		}
		var flows []joint.FlowRecord
		for f, n := range packets {
			flows = append(flows, joint.FlowRecord{Flow: f, Packets: n})
		}
		var stores [2]*colate.Store // all flows together take as long as one
		for i, r := range []*colate.Recorder{up, down} {
			stores[i] = must(colate.OpenStore(t.TempDir(), colate.StoreOptions{}))
			defer stores[i].Close()
			stores[i].Append(r) // which may warn that much is in each counter
		}
		told, _, err := colate.Path{Up: stores[0], Down: stores[1]}.EstimateAll(t.Context(), flows, 0, 20e9)
		must0(t, err)
		return func(f hashing.Flow) answer {
			r := told[slices.IndexFunc(flows, func(x joint.FlowRecord) bool { return x.Flow == f })]
			return answer{r.Mean, r.MeanInterval(0.98), r.Err}
		}
	},
	"RLI": func(t *testing.T, all []passing) func(hashing.Flow) answer {
		c := rli.DefaultConfig
		c.Method, c.Buffer = rli.Left, 0
		r := must(rli.NewReceiver(c))
		sequence := uint64(0)
		for _, p := range slices.SortedStableFunc(slices.Values(all), func(a, b passing) int { return cmp.Compare(a.received, b.received) }) {
			if p.received == never {
				continue
			}
			if p.sent != never {
				r.Reference(rli.ReferencePacket{Sequence: sequence, Sent: p.sent}, p.received)
				sequence++
			}
			r.Update(p.flow, 100, p.received)
		}
		if k := r.Counts(); k.Refused > 0 {
			t.Errorf("%+v", k)
		}
		return func(f hashing.Flow) answer {
			got, err := r.Estimate(f)
			return answer{got.Mean, got.MeanInterval(0.98), err}
		}
	},
}

const (
	usual   = 50_000    // ns: the delay of honest packets
	slow    = 1_000_000 // of the attacker's
	victims = 500
)

// attack sends the attacker's slow packets after 100 packets of each of 500 flows, while the queue is long, and changes what
// passed. Each synopsis must answer for all flows but the first, wrongly for at most a given number, and check sees each answer.
func attack(t *testing.T, n int, packet func(i int) (hashing.Flow, hashing.Packet), change func([]passing) []passing,
	mayBeWrong int, check func(name string, ask func(hashing.Flow) answer)) {
	t.Helper()
	if testing.Short() {
		t.Skip("one goroutine, for long under the race detector")
	}
	rng := rand.New(rand.NewPCG(12, 9))
	var all []passing
	for i := range uint64(100 * victims) {
		now := int64(i) * 10_000
		all = append(all, passing{flowOf(i % victims), hashing.Packet(rng.Uint64()), now, now + usual})
	}
	for i := range n {
		f, p := packet(i)
		now := int64(1e9) + int64(i)*10_000
		all = append(all, passing{f, p, now, now + slow})
	}
	all = change(all)
	for name, by := range byFlow {
		ask := by(t, all)
		wrong := 0
		for k := range uint64(victims - 1) {
			switch a := ask(flowOf(k + 1)); {
			case a.err != nil:
				t.Errorf("%s, flow %d: %v", name, k+1, a.err)
			case a.interval.Low > usual*1.0001 || a.interval.High < usual*0.9999:
				wrong++
			}
		}
		if wrong > mayBeWrong {
			t.Errorf("%s: %d of %d other flows wrong", name, wrong, victims-1)
		}
		check(name, ask)
	}
}

// flowOf names the honest flows, under a key that nobody knows.
func flowOf(k uint64) hashing.Flow { return hashing.Flow(hashing.SipHashFromKey(secretKey).Word(k)) }

// TestCopiesHarmOneFlow: someone who knows nothing repeats a packet of one flow 50,000 times, and loses
// one of a thousand. Other flows have right answers, and COLATE's epoch does not end. The attacker's own flow
// has an answer by RLI alone, which need not tell its packets apart.
func TestCopiesHarmOneFlow(t *testing.T) {
	own := flowOf(1 << 40)
	lose := func(all []passing) []passing {
		for i := 100 * victims; i < len(all); i += 1000 {
			all[i].received = never
		}
		return all
	}
	copied := func(int) (hashing.Flow, hashing.Packet) { return own, 12345 }
	attack(t, 50_000, copied, lose, 0, func(name string, ask func(hashing.Flow) answer) {
		a := ask(own)
		if name == "RLI" && (a.err != nil || a.mean != slow) || name != "RLI" && !errors.Is(a.err, estimate.ErrNoSamples) {
			t.Errorf("%s: the attacker's flow: %+v", name, a)
		}
	})
}

// TestReplayedFlow: whoever sees the traffic sends ten packets of a flow again behind the first point. Their
// cells no longer count; the flow gets a right answer from what is left, or none, and all others are right.
func TestReplayedFlow(t *testing.T) {
	replay := func(all []passing) []passing {
		for i := range 10 {
			all = append(all, passing{flowOf(0), all[victims*i].packet, never, 1e9 + int64(i)})
		}
		return all
	}
	attack(t, 0, nil, replay, 0, func(name string, ask func(hashing.Flow) answer) {
		if a := ask(flowOf(0)); a.err == nil && !a.interval.Contains(usual) || a.err != nil && !errors.Is(a.err, estimate.ErrNoSamples) {
			t.Errorf("%s: the victim: %+v", name, a)
		}
	})
}

// TestForgedFlowMixes: whoever makes packets that pass for those of another flow, as TestSeedPassesForAFlow does, adds
// their delays to that flow's, whichever synopsis measures it: 100 packets of 1 ms beside 100 of 50 µs make a mean of 525. Others
// stay right, but COLATE's flows share counters: 2 of 100 intervals may miss.
func TestForgedFlowMixes(t *testing.T) {
	same := func(all []passing) []passing { return all }
	for forged, want := range map[uint64]float64{0: (usual + slow) / 2, 1 << 40: usual} {
		packet := func(i int) (hashing.Flow, hashing.Packet) { return flowOf(forged), hashing.Word(5, uint64(i)) }
		attack(t, 100, packet, same, victims*4/100, func(name string, ask func(hashing.Flow) answer) {
			if a := ask(flowOf(0)); a.err != nil || math.Abs(a.mean-want) > 0.05*want {
				t.Errorf("%s: the victim: %+v, want %v", name, a, want)
			}
		})
	}
}

func TestFormat(t *testing.T) {
	for ns, want := range map[float64]string{
		0: "0.000 ns", 1: "1.000 ns", 999.94: "999.9 ns", 999.96: "1.000 µs", 12345: "12.35 µs", -39137000: "-39.14 ms",
		1e9: "1.000 s", 99.9996e9: "100.0 s", 3.6e12: "3600 s", math.Inf(1): "∞", math.Inf(-1): "-∞",
	} {
		if got := Format(ns); got != want {
			t.Errorf("%v ns is %s, want %s", ns, got, want)
		}
	}
}
