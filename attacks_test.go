package hoplag

import (
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

// keysOf is what whoever knows a seed knows of its digests: the keys that the
// factors of their first product have added.
func keysOf(seed, constant uint64) (x, y uint64) {
	hi, lo := bits.Mul64(seed^0x6a09e667f3bcc909, constant) // but for a few seeds
	return hi ^ lo, hi
}

// crafted are different packets of 40 bytes that a known seed gives one digest:
// their first factor is zero.
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

// Whoever sees the traffic sends packets again behind the first point: their
// cells are not usable any more, and the others stay right.
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
	// Of half as many packets as there are, the cells of the deepest bank are
	// left; of a hundred times as many, nothing, and nothing is said.
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

// Whoever knows the seed of Digest aims packets at one cell, and drops one of
// them: they are missing from the mean. The cell is overfull, which tells.
func TestSeedAimsAtOneCell(t *testing.T) {
	const seed, honest, slow = 77, 100_000, 5000
	sip := hashing.SipHashFromKey(secretKey)
	measure := func(digest func([]byte) hashing.Packet) lda.Result {
		up, down := must(lda.New(lda.DefaultConfig)), must(lda.New(lda.DefaultConfig))
		for i := range honest {
			p, now := digest(fmt.Appendf(nil, "honest packet %d", i)), int64(i)*1000
			up.Update(p, now)
			down.Update(p, now+50_000)
		}
		for i, b := range crafted(seed, slow) {
			up.Update(digest(b), int64(i)*1000)
			if i > 0 {
				down.Update(digest(b), int64(i)*1000+1_000_000)
			}
		}
		r, err := lda.Estimate(up, down)
		must0(t, err)
		return r
	}
	if r := measure(func(b []byte) hashing.Packet { return hashing.Digest(seed, b) }); r.Mean > 51_000 || r.Repeats.Packets < slow*9/10 {
		t.Errorf("seed known: mean %v, %+v: the attack is none", r.Mean, r.Repeats)
	}
	want := (honest*50_000.0 + slow*1_000_000) / (honest + slow)
	if r := measure(sip.Packet); math.Abs(r.Mean-want) > 0.1*want || r.Repeats.Cells > 0 {
		t.Errorf("key not known: mean %v, want %v, %+v", r.Mean, want, r.Repeats)
	}
}

// Whoever holds a key aims packets at one cell, too, but by trial, some 2,200 a
// packet. It is overfull in the same way.
func TestKeyAimsAtOneCell(t *testing.T) {
	const honest, slow = 100_000, 1000
	sip := hashing.SipHashFromKey(secretKey)
	up, down := must(lda.New(lda.DefaultConfig)), must(lda.New(lda.DefaultConfig))
	for i := range uint64(honest) {
		p, now := hashing.Packet(sip.Word(i)), int64(i)*1000
		up.Update(p, now)
		down.Update(p, now+50_000)
	}
	trials, aimed := uint64(1<<32), 0
	for ; aimed < slow; trials++ {
		p := hashing.Packet(sip.Word(trials))
		if uint64(p)%2048 != 7 || bits.LeadingZeros64(uint64(p)) >= 4 {
			continue
		}
		up.Update(p, int64(aimed)*1000)
		if aimed > 0 {
			down.Update(p, int64(aimed)*1000+1_000_000)
		}
		aimed++
	}
	r, err := lda.Estimate(up, down)
	if err != nil || r.Mean > 50_100 || r.Repeats.Cells != 1 || r.Repeats.Packets < slow {
		t.Errorf("mean %v, %+v, %v", r.Mean, r.Repeats, err)
	}
	want := (honest*50_000.0 + slow*1_000_000) / (honest + slow)
	if i := r.MeanInterval(0.98); !i.Contains(want) {
		t.Errorf("mean %v in %v, want %v", r.Mean, i, want)
	}
	t.Logf("%d trials, %+v, mean %.0f in %.0f of %v, %v", trials-1<<32, r.Repeats, r.Mean, r.MeanInterval(0.98), want, err)
}

// Whoever knows the seed of Tuple.Flow writes addresses down that pass for
// another's flow: synopses by flow then mix the two. A key keeps them apart.
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

// A flood of flows takes the room for records, whoever sends it: flows of many
// packets keep theirs, all packets are in the total, and what has no record is
// counted.
func TestFloodOfFlows(t *testing.T) {
	wrong := ""
	for range 3 { // records are given up at random, and seldom is it this one
		if wrong = floodWrong(); wrong == "" {
			return
		}
	}
	t.Error(wrong)
}

// floodWrong says what is wrong after a flood.
func floodWrong() string {
	c := rli.DefaultConfig
	c.Method, c.Buffer, c.Flows = rli.Left, 0, 1000
	r := must(rli.NewReceiver(c))
	r.Reference(rli.ReferencePacket{}, 500)
	key := hashing.SipHashFromKey(secretKey)
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
	flows := 0
	for range r.All() {
		flows++
	}
	got, err := r.Estimate(hashing.Flow(key.Word(0)))
	total, totalErr := r.Total()
	if err != nil || got.N != 1000 || totalErr != nil || total.N != 100_000 || flows != 1000 || r.Counts().Shed == 0 ||
		r.Counts().Evicted == 0 {
		return fmt.Sprintf("%+v, %v; total %+v, %v; %d flows, %+v", got, err, total, totalErr, flows, r.Counts())
	}
	return ""
}

// A passing is a packet of a flow at two points; one that only one of them saw
// has no time at the other.
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

// byLDS, byCOLATE and byRLI measure what passed, and answer for any flow.
func byLDS(t *testing.T, all []passing) func(hashing.Flow) answer {
	t.Helper()
	up, down := must(lds.New(lds.DefaultConfig)), must(lds.New(lds.DefaultConfig))
	for _, p := range all {
		if p.sent != never {
			up.Update(p.flow, p.packet, p.sent)
		}
		if p.received != never {
			down.Update(p.flow, p.packet, p.received)
		}
	}
	return func(f hashing.Flow) answer {
		r, err := lds.Estimate(up, down, f)
		return answer{r.Mean, r.MeanInterval(0.98), err}
	}
}

func byCOLATE(t *testing.T, all []passing) func(hashing.Flow) answer {
	t.Helper()
	c := colate.DefaultConfig
	c.Counters, c.Shift = 45_533, 0
	up, down := must(colate.New(c)), must(colate.New(c))
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
	if up.Due(20e9) || down.Due(20e9) {
		t.Error("the epoch is over before its time")
	}
	return func(f hashing.Flow) answer {
		r, err := colate.Estimate(up, down, joint.FlowRecord{Flow: f, Packets: packets[f]})
		return answer{r.Mean, r.MeanInterval(0.98), err}
	}
}

func byRLI(t *testing.T, all []passing) func(hashing.Flow) answer {
	t.Helper()
	c := rli.DefaultConfig
	c.Method, c.Buffer = rli.Left, 0
	r := must(rli.NewReceiver(c))
	byArrival := slices.Clone(all)
	slices.SortStableFunc(byArrival, func(a, b passing) int { return int(a.received - b.received) })
	sequence := uint64(0)
	for _, p := range byArrival {
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
}

var byFlow = map[string]func(*testing.T, []passing) func(hashing.Flow) answer{"LDS": byLDS, "COLATE": byCOLATE, "RLI": byRLI}

const (
	usual   = 50_000    // ns: the delay of honest packets
	slow    = 1_000_000 // of the attacker's
	victims = 500
)

// honest is 100 packets of each of 500 flows, in half a second.
func honest(flow func(k uint64) hashing.Flow) []passing {
	rng := rand.New(rand.NewPCG(12, 9))
	var all []passing
	for i := range uint64(100 * victims) {
		now := int64(i) * 10_000
		all = append(all, passing{flow(i % victims), hashing.Packet(rng.Uint64()), now, now + usual})
	}
	return all
}

// attack is so many packets of the attacker, a while later, when the queue is
// long.
func attack(n int, packet func(i int) (hashing.Flow, hashing.Packet)) []passing {
	var all []passing
	for i := range n {
		f, p := packet(i)
		now := int64(1e9) + int64(i)*10_000
		all = append(all, passing{f, p, now, now + slow})
	}
	return all
}

// others counts the honest flows but the first that have an answer, and those
// whose interval excludes the truth.
func others(t *testing.T, estimates func(hashing.Flow) answer, flow func(k uint64) hashing.Flow) (answered, wrong int) {
	t.Helper()
	for k := range uint64(victims - 1) {
		a := estimates(flow(k + 1))
		if a.err != nil {
			if !errors.Is(a.err, estimate.ErrNoSamples) {
				t.Errorf("flow %d: %v", k+1, a.err)
			}
			continue
		}
		answered++
		if a.interval.Low > usual*1.0001 || a.interval.High < usual*0.9999 {
			wrong++
		}
	}
	return answered, wrong
}

// flowOf names the honest flows, under a key that nobody knows.
func flowOf(k uint64) hashing.Flow { return hashing.Flow(hashing.SipHashFromKey(secretKey).Word(k)) }

// TestCopiesHarmOneFlow: someone who knows nothing repeats a packet of a flow of
// his 50,000 times, and loses one of a thousand. Other flows are answered, right,
// and COLATE's epoch does not end; the attacker's own flow has no answer but by
// RLI, which needs none of its packets to be told apart.
func TestCopiesHarmOneFlow(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, for long under the race detector")
	}
	own := flowOf(1 << 40)
	for name, by := range byFlow {
		copies := attack(50_000, func(int) (hashing.Flow, hashing.Packet) { return own, 12345 })
		for i := 0; i < len(copies); i += 1000 {
			copies[i].received = never
		}
		estimates := by(t, append(honest(flowOf), copies...))
		if answered, wrong := others(t, estimates, flowOf); answered < victims-1 || wrong > 0 {
			t.Errorf("%s: %d of %d other flows answered, %d wrong", name, answered, victims-1, wrong)
		}
		if a := estimates(own); name != "RLI" && !errors.Is(a.err, estimate.ErrNoSamples) || name == "RLI" && (a.err != nil || a.mean != slow) {
			t.Errorf("%s: the attacker's flow: %+v", name, a)
		}
	}
}

// TestReplayedFlow: whoever sees the traffic sends ten packets of a flow again
// behind the first point. The cells that they are in do not count any more; the
// flow is answered right by what is left, or not at all, and all others are.
func TestReplayedFlow(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, for long under the race detector")
	}
	victim := flowOf(0)
	for name, by := range byFlow {
		all := honest(flowOf)
		for i := range 10 {
			all = append(all, passing{victim, all[victims*i].packet, never, 1e9 + int64(i)})
		}
		estimates := by(t, all)
		if answered, wrong := others(t, estimates, flowOf); answered < victims-1 || wrong > 0 {
			t.Errorf("%s: %d of %d other flows answered, %d wrong", name, answered, victims-1, wrong)
		}
		if a := estimates(victim); a.err == nil && !a.interval.Contains(usual) || a.err != nil && !errors.Is(a.err, estimate.ErrNoSamples) {
			t.Errorf("%s: the victim: %+v", name, a)
		}
	}
}

// TestForgedFlowMixes: whoever makes packets that pass for another's flow, as
// TestSeedPassesForAFlow does, adds his delays to its own, whatever measures:
// 100 packets of 1 ms beside 100 of 50 µs make a mean of 525. Others stay right.
func TestForgedFlowMixes(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, for long under the race detector")
	}
	for name, by := range byFlow {
		for forged, want := range map[uint64]float64{0: (usual + slow) / 2, 1 << 40: usual} {
			all := append(honest(flowOf), attack(100, func(i int) (hashing.Flow, hashing.Packet) {
				return flowOf(forged), hashing.Word(5, uint64(i))
			})...)
			estimates := by(t, all)
			// COLATE's flows share counters: 2 of 100 intervals may miss.
			if answered, wrong := others(t, estimates, flowOf); answered < victims-1 || wrong > victims*4/100 {
				t.Errorf("%s: %d of %d other flows answered, %d wrong", name, answered, victims-1, wrong)
			}
			if a := estimates(flowOf(0)); a.err != nil || math.Abs(a.mean-want) > 0.05*want {
				t.Errorf("%s: the victim: %+v, want %v", name, a, want)
			}
		}
	}
}
