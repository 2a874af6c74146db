package colate

import (
	"errors"
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/traffic"
)

const attacker = hashing.Flow(0xa77ac4e5)

// attacked is traffic beside a flow that an attacker composed: packets of 50 ms, some of which are copies of one.
func attacked(t *testing.T, packets, copies int) (up, down *Recorder) {
	t.Helper()
	all := traffic.Flows(4, 2000)
	end := all[len(all)-1].Sent
	for i := range packets {
		p := hashing.Word(77, uint64(max(i-copies, 0)))
		all = append(all, passage{Flow: attacker, Packet: p, Sent: end + int64(i), At: end + int64(i) + 50e6})
	}
	c := testConfig
	c.CountBits = 10 // the delays of a counter add up to a second
	return recorded(t, c, all)
}

// TestCopiesAreRefused: copies of one packet are all in one of their flow's counters, which is left out as that of an
// elephant. The others do not stand for them: a flow has no answer if more than about a quarter of it repeats.
func TestCopiesAreRefused(t *testing.T) {
	const packets = 400
	for _, copies := range []int{200, 300, 400} {
		up, down := attacked(t, packets, copies)
		if r, err := Estimate(up, down, joint.FlowRecord{Flow: attacker, Packets: packets}); !errors.Is(err, estimate.ErrNoSamples) {
			t.Errorf("%d of %d repeat: %v, %v", copies, packets, r.Delay, err)
		}
	}
	up, down := attacked(t, packets, 1)
	r, err := Estimate(up, down, joint.FlowRecord{Flow: attacker, Packets: packets})
	if r.Mean < 45e6 || r.Mean > 55e6 || err != nil { // 20 counters of 20 packets: five deviations
		t.Errorf("none repeats: %v, %v", r.Delay, err)
	}
}

// TestKeyAimsAtCounters: whoever holds the key that flows are hashed with finds flows that share a counter with
// another, in some trials each, and packets that fall in it. As many packets as the flow itself has contradict its
// record, and leave it without an answer. Flows that anyone may name change its mean by less than its interval.
func TestKeyAimsAtCounters(t *testing.T) {
	const packets, slow = 200, 2_000_000
	key := hashing.SipHashFromKey([16]byte{7, 2})
	victim := hashing.Flow(key.Word(0))
	c := testConfig
	theirs := map[uint32]bool{}
	for j := range c.PerFlow {
		theirs[c.place(victim, j)] = true
	}
	trials := uint64(0)
	aim := func() (hashing.Flow, hashing.Packet) {
		for {
			trials++
			f, p := hashing.Flow(key.Word(trials)), hashing.Packet(key.Word(trials|1<<63))
			if theirs[c.place(f, int(hashing.Row(uint64(p), uint64(c.PerFlow))))] {
				return f, p
			}
		}
	}
	measure := func(attack func() (hashing.Flow, hashing.Packet)) (Result, error) {
		all := traffic.Flows(5, 2000)
		for i := range packets {
			now := int64(i) * 1000
			all = append(all, passage{Flow: victim, Packet: hashing.Packet(key.Word(uint64(i) | 1<<62)), Sent: now, At: now + 100_000})
			f, p := attack()
			all = append(all, passage{Flow: f, Packet: p, Sent: now, At: now + slow})
		}
		up, down := recorded(t, c, all)
		return Estimate(up, down, joint.FlowRecord{Flow: victim, Packets: packets})
	}
	if aimed, err := measure(aim); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("aimed at: %v, %v", aimed.Delay, err)
	}
	if trials > 40*packets*uint64(c.Counters/c.PerFlow) {
		t.Errorf("%d trials", trials)
	}
	named := uint64(0)
	free, err := measure(func() (hashing.Flow, hashing.Packet) {
		named++
		return hashing.Flow(hashing.Word(3, named)), hashing.Word(4, named)
	})
	if i := free.MeanInterval(0.99); err != nil || !i.Contains(100_000) {
		t.Errorf("not aimed at: %v in %v", free.Mean, i)
	}
}

// TestEpochsAtTheEndOfTime: packets whose times are next to what 64 bits can hold,
// as of broken clocks, make an epoch that can be encoded and kept.
func TestEpochsAtTheEndOfTime(t *testing.T) {
	for _, period := range []int64{1, 3, 1e9, maxPeriod} {
		for _, at := range []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, math.MaxInt64 - 1, math.MaxInt64} {
			c := testConfig
			c.Period = period
			r, _ := New(c)
			r.Update(1, 2, at)
			start, end, ok := r.Span()
			data, err := r.MarshalBinary()
			if err != nil || !ok || start%period != 0 || end-start != period || start > end {
				t.Errorf("%d, period %d: from %d to %d, %v", at, period, start, end, err)
			}
			if err := new(Recorder).UnmarshalBinary(data); err != nil {
				t.Errorf("%d, period %d: %v", at, period, err)
			}
		}
	}
}
