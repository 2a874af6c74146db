package colate

import (
	"errors"
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// without records traffic of which some packets, by number, pass only the
// first point, and adds others that pass only the second.
func without(t *testing.T, c Config, all []passage, lost map[int]bool, added ...passage) *query {
	t.Helper()
	up, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	down, _ := New(c)
	for i, p := range all {
		up.Update(p.flow, p.packet, p.sent)
		if !lost[i] {
			down.Update(p.flow, p.packet, p.at)
		}
	}
	for _, p := range added {
		down.Update(p.flow, p.packet, p.at)
	}
	return newQuery(t, up.Current(), down.Current())
}

// vectorOf is the vector that a packet goes to.
func vectorOf(p hashing.Packet, vectors int) int {
	return min(hashing.LeadingZeros(uint64(p)), vectors-1)
}

// in returns the number of the nth packet that goes to vector k.
func in(all []passage, k, vectors, nth int) int {
	for i, p := range all {
		if vectorOf(p.packet, vectors) == k {
			if nth == 0 {
				return i
			}
			nth--
		}
	}
	panic("no such packet")
}

func TestLoss(t *testing.T) {
	all := traffic(21, 2000)
	f := truths(all, 500)[0]
	c := plainConfig
	c.Vectors = 4

	// Each vector's loss takes that vector away, and no other.
	for k := range c.Vectors {
		q := without(t, c, all, map[int]bool{in(all, k, c.Vectors, 0): true})
		up, down := q.gather(f.flow)
		want := 0
		if k == 0 {
			want = 1
		}
		if got := MostSampled(up, down); got != want {
			t.Errorf("vector %d lost a packet: the paper's rule takes %d, want %d", k, got, want)
		}
		r, err := Estimate(up, down, f.packets)
		if err != nil || r.Share != 1-c.Share(k) || !r.Interval.Contains(f.mean) {
			t.Errorf("vector %d lost a packet: %+v, %v; the mean is %v", k, r, err, f.mean)
		}
	}

	// A packet lost and a foreign one in its place deceive the paper's rule,
	// and not the digests.
	foreign := passage{flow: 99, packet: hashing.Packet(3 << 62), at: all[0].at}
	q := without(t, c, all, map[int]bool{in(all, 0, c.Vectors, 0): true}, foreign)
	up, down := q.gather(f.flow)
	if got := MostSampled(up, down); got != 0 {
		t.Errorf("the paper's rule takes vector %d, want 0", got)
	}
	if r, err := Estimate(up, down, f.packets); err != nil || r.Share != 0.5 {
		t.Errorf("%+v, %v; want the half of the packets that is not in vector 0", r, err)
	}

	// Losses everywhere leave nothing to be believed, but where counters count.
	lost := map[int]bool{}
	for k := range c.Vectors {
		lost[in(all, k, c.Vectors, 5)] = true
	}
	q = without(t, c, all, lost)
	up, down = q.gather(f.flow)
	if _, err := Estimate(up, down, f.packets); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("losses in every vector: %v, want ErrNoSamples", err)
	}
}

// One vector of counters that count survives losses, counter by counter: the
// intervals still hold for as many flows as they say. Believing all counters
// is the negative control.
func TestLossByCount(t *testing.T) {
	all := traffic(22, 15_000)
	lost := map[int]bool{}
	for i := range all {
		all[i].sent += 120e9 // so that a time stamp left over is not small
		all[i].at += 120e9
		lost[i] = hashing.Mix(uint64(i), 5)>>54 == 0 // one in 1,024
	}
	for name, count := range map[string]uint8{"counted": 16, "blind": 0} {
		c := countedConfig
		c.CountBits = count
		q := without(t, c, all, lost)
		if count == 0 {
			// Make the totals agree, as if nothing had been lost.
			q.upEpochs[0].vectors = q.downEpochs[0].vectors
		}
		hits, n := 0, 0
		for _, f := range truths(all, 20) {
			if n == 500 {
				break
			}
			up, down := q.gather(f.flow)
			r, err := Estimate(up, down, f.packets)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			n++
			if r.Interval.Contains(f.mean) && width(r.Interval) < 100*f.mean {
				hits++
			}
		}
		t.Logf("%s: %d of %d intervals hold and are of use", name, hits, n)
		if good := float64(hits) >= Confidence*float64(n)-shortfall(n, Confidence); good != (count > 0) {
			t.Errorf("%s: %d of %d intervals hold and are of use", name, hits, n)
		}
	}
}

// Joint, too, believes no vector that disagrees, and no counter that counted
// otherwise at the other point; what it believes is the delays of the packets
// that are there.
func TestJointLoss(t *testing.T) {
	all := traffic(23, 1000)
	vectors, counted := plainConfig, countedConfig
	vectors.Vectors, counted.Vectors = 4, 3
	for name, c := range map[string]Config{"vectors": vectors, "counted": counted} {
		lost := map[int]bool{in(all, 1, c.Vectors, 0): true}
		if c.CountBits > 0 {
			for i := range all {
				lost[i] = i%100 == 0
			}
		}
		q := without(t, c, all, lost)
		sums, counts, unusable := make([]float64, c.Counters), make([]float64, c.Counters), make([]bool, c.Counters)
		for i, p := range all {
			at := position(c.Identity, p.flow, choice(p.packet, uint64(c.PerFlow)), uint64(c.Counters))
			switch {
			case c.CountBits == 0 && vectorOf(p.packet, c.Vectors) == 1:
			case lost[i]:
				unusable[at] = true
			default:
				sums[at] += float64(p.at - p.sent)
				counts[at]++
			}
		}
		records := []joint.FlowRecord{{Flow: all[0].flow, Packets: 3}, {Flow: all[1].flow, Packets: 7}}
		p, err := jointProblem(q.upEpochs, q.downEpochs, records)
		if err != nil {
			t.Fatal(err)
		}
		wantShare := 1.0
		if c.CountBits == 0 {
			wantShare -= c.Share(1)
		}
		if p.Rates[0] != wantShare || p.Packets[0] != 3 || p.Packets[1] != 7 {
			t.Errorf("%s: share %v of %v packets, want %v", name, p.Rates, p.Packets, wantShare)
		}
		for i := range sums {
			if p.Unusable != nil && p.Unusable[i] != unusable[i] {
				t.Fatalf("%s: counter %d unusable: %v", name, i, p.Unusable[i])
			}
			if !unusable[i] && (p.Sum[i] != sums[i] || p.Count != nil && p.Count[i] != counts[i]) {
				t.Fatalf("%s: counter %d holds %v, want %v of %v packets", name, i, p.Sum[i], sums[i], counts[i])
			}
		}
		if (p.Unusable != nil) != (c.CountBits > 0) {
			t.Errorf("%s: counters are marked: %v", name, p.Unusable != nil)
		}
		for i, cell := range p.Cells {
			if want := position(c.Identity, records[i/c.PerFlow].Flow, uint64(i%c.PerFlow), uint64(c.Counters)); uint64(cell) != want {
				t.Fatalf("%s: cell %d of a flow is %d, want %d", name, i, cell, want)
			}
		}
	}
}

// Three points, each of which sends to both others: six links. The paper keeps
// one vector at each point for all of them; but then the vectors of two points
// hold other packets too, each with its whole time stamp.
func TestTriangle(t *testing.T) {
	type link struct{ from, to int }
	var links []link
	for from := range 3 {
		for to := range 3 {
			if from != to {
				links = append(links, link{from, to})
			}
		}
	}
	shared := make([]*Recorder, 3)
	for i := range shared {
		shared[i], _ = New(paperConfig)
	}
	var ofLink, ofPoint []float64
	flows := make([][]truth, len(links))
	ends := make([]*query, len(links))
	for l, link := range links {
		all := traffic(30+uint64(l), 1500)
		flows[l] = truths(all, 100)
		for i := range all {
			all[i].sent += 120e9
			all[i].at += 120e9
		}
		up, down := recorded(t, paperConfig, all)
		ends[l] = newQuery(t, up.Current(), down.Current())
		for _, p := range all {
			shared[link.from].Update(p.flow, p.packet, p.sent)
			shared[link.to].Update(p.flow, p.packet, p.at)
		}
	}
	for l, link := range links {
		both := newQuery(t, shared[link.from].Current(), shared[link.to].Current())
		for _, f := range flows[l] {
			r := ends[l].estimate(f)
			if !r.Interval.Contains(f.mean) {
				continue // one in twenty may; coverage is tested elsewhere
			}
			ofLink = append(ofLink, estimate.RelativeError(r.Mean, f.mean))
			up, down := both.gather(f.flow)
			mean, err := Theorem2(up, down, f.packets)
			if err != nil {
				t.Fatal(err)
			}
			ofPoint = append(ofPoint, estimate.RelativeError(mean, f.mean))
			if _, err := Estimate(up, down, f.packets); !errors.Is(err, estimate.ErrNoSamples) {
				t.Fatalf("Estimate from shared vectors: %v, want ErrNoSamples", err)
			}
		}
	}
	total := 0
	for _, list := range flows {
		total += len(list)
	}
	if float64(len(ofLink)) < Confidence*float64(total)-shortfall(total, Confidence) {
		t.Errorf("%d of %d intervals hold", len(ofLink), total)
	}
	perLink, perPoint := median(ofLink), median(ofPoint)
	t.Logf("median error over six links: %.3f with a recorder at each end of a link, %.0f with one at each point", perLink, perPoint)
	if !(perLink < 0.3) || !(perPoint > 100) || math.IsNaN(perPoint) {
		t.Errorf("not as described")
	}
}
