package queue

import (
	"math"
	"testing"
)

// shuffled returns a stream that went over two paths of different length.
func shuffled(t testing.TB, loss LossConfig) []Packet {
	near := LinkConfig{Rate: 10e9, Propagation: 100, Loss: loss, Seed: 1}
	far := LinkConfig{Rate: 2e9, Propagation: 20000, Loss: loss, Seed: 2}
	out, _ := drive(must(NewMultipath(AtRandom, 1, near, far))(t), tracked(5000, 12), 0)
	kept := out[:0]
	for _, p := range out {
		if p.Fate == Passed {
			kept = append(kept, p)
		}
	}
	return kept
}

func inversions(packets []Packet) (n int) {
	for i := 1; i < len(packets); i++ {
		if packets[i].Seq < packets[i-1].Seq {
			n++
		}
	}
	return n
}

// With room and patience enough, order is restored and every packet leaves the
// moment the last of those up to it has come.
func TestResequencerRestoresOrder(t *testing.T) {
	in := shuffled(t, LossConfig{})
	if inversions(in) < 500 {
		t.Fatalf("only %d inversions: the test shows nothing", inversions(in))
	}
	r := must(NewResequencer(ResequencerConfig{Window: 1000, Timeout: 1e9}))(t)
	out, _ := drive(r, in, 4)
	if len(out) != len(in) {
		t.Fatalf("%d packets of %d came out", len(out), len(in))
	}
	arrived := make([]int64, len(in))
	for _, p := range in {
		arrived[p.Seq] = p.Time
	}
	latest := int64(0)
	for i, p := range out {
		latest = max(latest, arrived[i])
		if p.Seq != uint64(i) || p.Time != latest {
			t.Fatalf("packet %d out at %d, want %d at %d", p.Seq, p.Time, i, latest)
		}
	}
}

// Whatever is lost and however little it can hold, what comes out is in order,
// complete but for the late, and held no longer than the timeouts allow.
func TestResequencerWithLoss(t *testing.T) {
	in := shuffled(t, LossConfig{Probability: 0.02})
	for _, c := range []ResequencerConfig{
		{Window: 1000, Timeout: 1e6}, {Window: 1000, Timeout: 15000}, {Window: 1000, Timeout: 0},
		{Window: 16, Timeout: 1e6}, {Window: 5, Timeout: 10000}, {Window: 1, Timeout: 1e6},
	} {
		r := must(NewResequencer(c))(t)
		out, fates := drive(r, in, 0)
		late := 0
		for _, f := range fates {
			if f == Late {
				late++
			}
		}
		if inversions(out) != 0 || len(out)+late != len(in) || r.Counts().Packets[Late] != uint64(late) {
			t.Errorf("%+v: %d in, %d out with %d inversions, %d late", c, len(in), len(out), inversions(out), late)
		}
		arrived := map[uint64]int64{}
		for _, p := range in {
			arrived[p.Seq] = p.Time
		}
		for _, p := range out {
			// The head of what is held waits one timeout; each gap before a
			// packet may cost another, and a window has no more gaps than places.
			if wait := p.Time - arrived[p.Seq]; wait < 0 || wait > int64(c.Window)*c.Timeout {
				t.Fatalf("%+v: packet %d waited %d ns", c, p.Seq, wait)
			}
		}
		if patient := c.Window == 1000 && c.Timeout == 1e6; patient != (late == 0) {
			t.Errorf("%+v: %d late", c, late)
		}
	}
}

// One missing packet, by hand.
func TestResequencerTimeout(t *testing.T) {
	r := must(NewResequencer(ResequencerConfig{Window: 8, Timeout: 100}))(t)
	send := func(seq uint64, at int64, want Fate) {
		t.Helper()
		if fate := r.Send(&Packet{Seq: seq, Time: at, Bytes: 1, Fate: Lost}); fate != want { // its Fate is not read
			t.Errorf("packet %d at %d is %v, want %v", seq, at, fate, want)
		}
	}
	send(0, 10, Passed)
	send(2, 20, Passed) // held from here
	send(2, 25, Late)   // a duplicate
	send(4, 50, Passed)
	send(1, 120, Late) // the wait ends now, before this packet
	send(3, 140, Passed)
	send(20, 150, Passed) // beyond the window: pushes it to 13
	send(12, 160, Late)
	var p Packet
	for _, want := range []struct {
		seq uint64
		at  int64
	}{{0, 10}, {2, 120}, {3, 140}, {4, 140}, {20, 250}} {
		if !r.Next(math.MaxInt64, &p) || p.Seq != want.seq || p.Time != want.at || p.Fate != Passed {
			t.Errorf("packet %d, %v, out at %d, want %d at %d", p.Seq, p.Fate, p.Time, want.seq, want.at)
		}
	}
	if r.Next(math.MaxInt64, &p) {
		t.Errorf("packet %d came out beyond the last", p.Seq)
	}
	if got := r.Counts().Packets; got[Passed] != 5 || got[Late] != 3 {
		t.Errorf("counts %v, want 5 passed and 3 late", got)
	}
}

// The wait begins again when a packet is released.
func TestResequencerWaitsAnew(t *testing.T) {
	r := must(NewResequencer(ResequencerConfig{Window: 8, Timeout: 100}))(t)
	for _, p := range []Packet{{Seq: 0, Time: 10}, {Seq: 2, Time: 20}, {Seq: 4, Time: 30}, {Seq: 1, Time: 60}} {
		r.Send(&p)
	}
	var p Packet
	for _, want := range []struct {
		seq uint64
		at  int64
	}{{0, 10}, {1, 60}, {2, 60}, {4, 160}} {
		if !r.Next(math.MaxInt64, &p) || p.Seq != want.seq || p.Time != want.at {
			t.Errorf("packet %d out at %d, want %d at %d", p.Seq, p.Time, want.seq, want.at)
		}
	}
}
