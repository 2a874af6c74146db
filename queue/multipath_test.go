package queue

import (
	"math"
	"testing"
)

// Packets that come out at one time come out in the order they went in, and
// numbers count the dropped.
func TestMultipathNumbers(t *testing.T) {
	link := LinkConfig{Rate: 8e9, Queue: QueueConfig{Packets: 2}}
	m := must(NewMultipath(RoundRobin, 1, link, link, link, link))(t)
	for i := range 13 {
		want := Passed
		if i >= 8 && i < 12 {
			want = Full
		}
		at := int64(i / 12 * 1000)
		if fate := m.Send(&Packet{Time: at, Bytes: 100}); fate != want {
			t.Errorf("packet %d is %v, want %v", i, fate, want)
		}
	}
	if fate := m.Send(&Packet{Time: 999, Bytes: 100}); fate != Refused {
		t.Errorf("a packet before one on another path is %v", fate)
	}
	var p Packet
	for _, want := range []uint64{0, 1, 2, 3, 4, 5, 6, 7, 12} {
		if !m.Next(math.MaxInt64, &p) || p.Seq != want {
			t.Errorf("packet %d, want %d", p.Seq, want)
		}
	}
}

func TestMultipathTies(t *testing.T) {
	var links []LinkConfig
	for range 17 {
		links = append(links, LinkConfig{Rate: 8e9})
	}
	m := must(NewMultipath(RoundRobin, 1, links...))(t)
	for range 5 * len(links) {
		m.Send(&Packet{Bytes: 100})
	}
	var p Packet
	for want := range uint64(5 * len(links)) {
		if !m.Next(math.MaxInt64, &p) || p.Seq != want {
			t.Fatalf("packet %d, want %d", p.Seq, want)
		}
	}
}

func TestSpreads(t *testing.T) {
	fast, slow := LinkConfig{Rate: 10e9, Propagation: 100}, LinkConfig{Rate: 10e9, Propagation: 40000}
	packets := tracked(5000, 9)
	for spread, wantReordered := range map[Spread]bool{ByFlow: false, RoundRobin: true, AtRandom: true} {
		out, _ := drive(must(NewMultipath(spread, 1, fast, slow))(t), packets, 0)
		paths := map[uint64]uint8{}
		lastOf := map[uint64]uint64{}
		reordered, used := false, [2]int{}
		for _, p := range out {
			f := uint64(p.Flow)
			if path, ok := paths[f]; spread == ByFlow && ok && path != p.Path {
				t.Fatalf("flow %x took two paths", f)
			}
			paths[f] = p.Path
			used[p.Path]++
			if last, ok := lastOf[f]; ok && p.Seq < last {
				reordered = true
			}
			lastOf[f] = p.Seq
			if spread == RoundRobin && uint64(p.Path) != p.Seq%2 {
				t.Fatalf("packet %d took path %d", p.Seq, p.Path)
			}
		}
		if reordered != wantReordered || used[0] < 500 || used[1] < 500 {
			t.Errorf("spread %d: reordered within flows %v, paths used %v", spread, reordered, used)
		}
	}
}
