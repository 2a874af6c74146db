package queue

import (
	"math"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// Packets of one flow stay in order, those of different flows need not, and
// numbers count the dropped. Packets that come out at one time come out in the
// order in which they went in.
func TestMultipathOrder(t *testing.T) {
	fast, slow := LinkConfig{Rate: 10e9, Propagation: 100}, LinkConfig{Rate: 10e9, Propagation: 40000}
	out, _ := drive(must(NewMultipath(1, fast, slow))(t), tracked(5000, 9), 0)
	paths, lastOf := map[hashing.Flow]uint8{}, map[hashing.Flow]uint64{}
	used, overtaken := [2]int{}, 0
	for i, p := range out {
		if path, ok := paths[p.Flow]; ok && path != p.Path {
			t.Fatalf("flow %x took two paths", p.Flow)
		}
		if last, ok := lastOf[p.Flow]; ok && p.Seq < last {
			t.Fatalf("packet %d of flow %x overtook packet %d", last, p.Flow, p.Seq)
		}
		if i > 0 && p.Seq < out[i-1].Seq {
			overtaken++
		}
		paths[p.Flow], lastOf[p.Flow] = p.Path, p.Seq
		used[p.Path]++
	}
	if used[0] < 500 || used[1] < 500 || overtaken < 100 {
		t.Errorf("paths used %v, %d packets overtaken: the test shows too little", used, overtaken)
	}

	link := LinkConfig{Rate: 8e9, Queue: QueueConfig{Packets: 1}}
	m := must(NewMultipath(1, link, link, link, link))(t)
	var want []uint64
	for i := range uint64(17) {
		if m.Send(&Packet{Bytes: 100, Flow: hashing.Flow(i)}) == Passed {
			want = append(want, i)
		}
	}
	if fate := m.Send(&Packet{Time: -1, Bytes: 100, Flow: 99}); fate != Refused || len(want) != 4 {
		t.Errorf("a packet before one on another path is %v; %v are on their way over 4 paths", fate, want)
	}
	var p Packet
	for _, seq := range want {
		if !m.Next(math.MaxInt64, &p) || p.Seq != seq {
			t.Errorf("packet %d, want %d", p.Seq, seq)
		}
	}
}
