package hoplag

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lds"
	"github.com/hoplag/hoplag/rli"
)

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
	if k := r.Counts(); k.Implausible > 0 {
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
func flowOf(k uint64) hashing.Flow { return hashing.Flow(hashing.NewSipHash(secretSeed).Word(k)) }

// TestCopiesHarmOneFlow: someone who knows nothing repeats a packet of a flow of
// his 50,000 times, and loses one of a thousand. Other flows are answered, right,
// and COLATE's epoch does not end; the attacker's own flow has no answer but by
// RLI, which needs none of its packets to be told apart.
func TestCopiesHarmOneFlow(t *testing.T) {
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
