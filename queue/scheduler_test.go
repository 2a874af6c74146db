package queue

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

var lossyLink = LinkConfig{
	Rate: 3e9, Propagation: 1000, Seed: 9,
	Queue: QueueConfig{Packets: 60, RED: REDConfig{Min: 10, Max: 40, Weight: 0.05, Probability: 0.1, Typical: 500}},
	Loss:  LossConfig{Probability: 0.02, Burst: 3},
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// strict returns a Scheduler that is lossy in both classes.
func strict(t testing.TB) *Scheduler {
	t.Helper()
	queues := [Classes]QueueConfig{lossyLink.Queue, {Packets: 40}}
	return must(NewScheduler(SchedulerConfig{Rate: 3e9, Queues: queues, Loss: lossyLink.Loss}))(t)
}

// tracked returns packets that can be told apart when they come out.
func tracked(n int, seed uint64) []Packet {
	packets := bursty(n, seed)
	random := generator(seed, 2)
	for i := range packets {
		packets[i].Tag = uint8(i)
		packets[i].Fate = Refused // not read
		packets[i].ID = hashing.Packet(i + 1)
		packets[i].Flow = hashing.Flow(random.Uint64() % 20)
	}
	return packets
}

// drive sends packets and collects what comes out, having looked for it before
// every n-th packet; 0: only at the end.
func drive(s *Scheduler, packets []Packet, every int) (out []Packet, fates []Fate) {
	var p Packet
	for i := range packets {
		for every > 0 && i%every == 0 && s.Next(packets[i].Time, &p) {
			out = append(out, p)
		}
		fates = append(fates, s.Send(&packets[i]))
	}
	for s.Next(math.MaxInt64, &p) {
		out = append(out, p)
	}
	return out, fates
}

// Every packet that goes in comes out once, or was turned away; those that are
// delivered come out in order of time, after they went in; and counts are of these.
func TestConservation(t *testing.T) {
	packets, s := tracked(20000, 4), strict(t)
	out, fates := drive(s, packets, 0)
	inside, byFate, want := map[uint64]Packet{}, map[Fate]int{}, [Classes]Counts{}
	for i, fate := range fates {
		if fate == Passed {
			inside[uint64(packets[i].ID)] = packets[i]
		} else {
			want[packets[i].Class].add(fate, packets[i].Bytes)
		}
	}
	last := int64(math.MinInt64)
	for _, p := range out {
		in, ok := inside[uint64(p.ID)]
		if !ok {
			t.Fatalf("packet %d came out twice, or never went in", p.ID)
		}
		delete(inside, uint64(p.ID))
		if p.Sent != in.Sent || p.Flow != in.Flow || p.Bytes != in.Bytes || p.Class != in.Class || p.Tag != in.Tag || p.Fate == Refused {
			t.Fatalf("%+v went in, %+v came out", in, p)
		}
		byFate[p.Fate]++
		want[p.Class].add(p.Fate, p.Bytes)
		if p.Fate == Passed && (p.Time < last || p.Time < p.Sent) {
			t.Fatalf("packet sent at %d out at %d, one before it at %d", p.Sent, p.Time, last)
		}
		last = max(last, p.Time)
	}
	if len(inside) != 0 {
		t.Errorf("%d packets never came out", len(inside))
	}
	if byFate[Passed] < 1000 || byFate[Lost] == 0 || byFate[Passed]+byFate[Lost] == len(packets) {
		t.Errorf("fates %v of %d packets show too little", byFate, len(packets))
	}
	for c := range Classes {
		if got := s.Counts(c); got != want[c] {
			t.Errorf("class %d: %+v, want %+v", c, got, want[c])
		}
	}
}

// Next returns packets that come out at exactly the time asked for, and none
// that come out later.
func TestNextIsInclusive(t *testing.T) {
	s := must(NewScheduler(SchedulerConfig{Rate: 8e9, Propagation: 50}))(t)
	for range 2 { // of 100 ns each
		s.Send(&Packet{Bytes: 100})
	}
	var p Packet
	n := 0
	for s.Next(249, &p) {
		n++
	}
	if n != 1 || !s.Next(250, &p) || p.Time != 250 || s.Next(math.MaxInt64, &p) {
		t.Errorf("%d packets before 250, the next at %d", n, p.Time)
	}
}

// The output depends neither on when Next is called nor on the run.
func TestDeterminism(t *testing.T) {
	packets := tracked(5000, 6)
	for _, every := range []int{0, 1, 7} {
		want, wantFates := drive(strict(t), packets, 0)
		got, gotFates := drive(strict(t), packets, every)
		sortByID(want)
		sortByID(got)
		if !slices.Equal(gotFates, wantFates) || !slices.Equal(got, want) {
			t.Errorf("looking every %d: fates or packets are others", every)
		}
	}
}

func sortByID(packets []Packet) {
	slices.SortFunc(packets, func(a, b Packet) int { return cmp.Compare(a.ID, b.ID) })
}
