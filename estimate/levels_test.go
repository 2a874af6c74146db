package estimate_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hoplag/hoplag/estimate"
)

// A passage is one packet's way through a cell: in intervals of its own at
// the two points.
type passage struct {
	id             uint32
	sent, received int64 // received is lost where the packet never came
	copies         int   // that were received
}

const lost = math.MaxInt64

// A cellPath is traffic of one cell, cut by the clock every interval.
type cellPath struct {
	rate     float64 // packets a second
	delay    float64 // mean, in seconds: half of it constant, half exponential
	interval float64
	loss     float64
	twice    float64 // share of packets received twice
	offset   int64   // of the receiving clock
}

// passages draws the packets of a span of seconds, in the order of sending.
func (c cellPath) passages(r *rand.Rand, span float64) []passage {
	var all []passage
	for t := r.ExpFloat64() / c.rate; t < span; t += r.ExpFloat64() / c.rate {
		p := passage{id: r.Uint32(), sent: int64(t * 1e9), received: lost, copies: 1}
		if r.Float64() >= c.loss {
			p.received = p.sent + int64(c.delay*(0.5+0.5*r.ExpFloat64())*1e9) + c.offset
		}
		if r.Float64() < c.twice {
			p.copies = 2
		}
		all = append(all, p)
	}
	return all
}

// An intervalCell is what one interval of a cell holds, packet by packet.
type intervalCell struct{ sent, received []passage }

// cut deals the packets into intervals by the two points' clocks.
func (c cellPath) cut(all []passage, span float64) []intervalCell {
	cells := make([]intervalCell, int(span/c.interval)+20)
	at := func(t int64) int { return min(max(int(float64(t)/1e9/c.interval), 0), len(cells)-1) }
	for _, p := range all {
		cells[at(p.sent)].sent = append(cells[at(p.sent)].sent, p)
		for range p.copies {
			if p.received != lost {
				cells[at(p.received)].received = append(cells[at(p.received)].received, p)
			}
		}
	}
	return cells
}

// pair adds up an interval as a synopsis does, with digests of the given bits.
func (c intervalCell) pair(digestBits uint) estimate.CellPair {
	var pair estimate.CellPair
	mask := uint32(1<<digestBits - 1)
	for _, p := range c.sent {
		pair.SentSum += uint64(p.sent)
		pair.SentTally += uint64(p.id&mask)<<32 | 1
	}
	for _, p := range c.received {
		pair.ReceivedSum += uint64(p.received)
		pair.ReceivedTally += uint64(p.id&mask)<<32 | 1
	}
	return pair
}

// follow returns the groups of a cell, and Lost at the end.
func follow(cells []intervalCell, sumBits, digestBits uint8) ([]estimate.Group, int32) {
	l := estimate.NewLevels(1, sumBits, digestBits)
	var groups []estimate.Group
	for _, cell := range cells {
		if g, ok := l.Cut(0, cell.pair(uint(digestBits))); ok {
			groups = append(groups, g)
		}
		l.Next()
	}
	return groups, l.Lost(0, 5)
}

var cellPaths = map[string]cellPath{
	"quiet":            {rate: 20, delay: 5e-3, interval: 0.1},
	"busy":             {rate: 2000, delay: 5e-3, interval: 0.1},
	"long delay":       {rate: 20, delay: 0.3, interval: 0.1},
	"quiet, 1 %":       {rate: 20, delay: 5e-3, interval: 0.1, loss: 0.01},
	"200/s, 1 %":       {rate: 200, delay: 5e-3, interval: 0.1, loss: 0.01},
	"200/s, 30 %":      {rate: 200, delay: 0.5e-3, interval: 0.01, loss: 0.3},
	"busy, 1 %":        {rate: 2000, delay: 5e-3, interval: 0.1, loss: 0.01},
	"long delay, 10 %": {rate: 5, delay: 0.3, interval: 0.1, loss: 0.1},
	"duplicates":       {rate: 50, delay: 5e-3, interval: 0.1, twice: 0.02},
	"everything":       {rate: 100, delay: 2e-3, interval: 0.05, loss: 0.02, twice: 0.01, offset: 300e6},
	"a clock behind":   {rate: 50, delay: 2e-3, interval: 0.05, loss: 0.02, offset: -70e6},
}

// Every group is what slowLevels finds among sets of packets, with the sum of
// their true delays.
func TestLevelsAgainstSets(t *testing.T) {
	for name, path := range cellPaths {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				r := rand.New(rand.NewPCG(seed, 1))
				span := min(20, 1000/path.rate)
				cells := path.cut(path.passages(r, span), span)
				groups, _ := follow(cells, 64, 32)
				if diff := cmp.Diff(slowLevels(t, cells), groups); diff != "" {
					t.Fatalf("seed %d (-sets +levels):\n%s", seed, diff)
				}
			}
		})
	}
}

// Without loss every packet is in a group in the end, and the sum of all
// groups is the sum of all delays, however many packets cross the cuts.
func TestLevelsWithoutLoss(t *testing.T) {
	for _, path := range []cellPath{cellPaths["quiet"], cellPaths["busy"], cellPaths["long delay"]} {
		all := path.passages(rand.New(rand.NewPCG(1, 2)), 20)
		var want, got int64
		for _, p := range all {
			want += p.received - p.sent
		}
		groups, lost := follow(path.cut(all, 20), 40, 16)
		packets := 0
		for _, g := range groups {
			got += g.Sum
			packets += int(g.Packets)
		}
		if got != want || packets != len(all) || lost != 0 {
			t.Errorf("%+v: %d ns of %d packets, %d lost; want %d of %d", path, got, packets, lost, want, len(all))
		}
	}
}

// With losses, most packets are still in groups where a cell is often empty,
// those lost are counted, and the mean is near.
func TestLevelsUnderLoss(t *testing.T) {
	path := cellPaths["quiet, 1 %"]
	var delays, packets, received, missing, counted float64
	var truth float64
	for seed := range uint64(100) {
		all := path.passages(rand.New(rand.NewPCG(seed, 3)), 20)
		groups, lost := follow(path.cut(all, 20), 40, 32)
		counted += float64(lost)
		for _, g := range groups {
			delays += float64(g.Sum)
			packets += float64(g.Packets)
		}
		for _, p := range all {
			if p.received == math.MaxInt64 {
				missing++
			} else {
				received++
				truth += float64(p.received - p.sent)
			}
		}
	}
	if share := packets / received; share < 0.95 {
		t.Errorf("%.3f of the packets are in groups", share)
	}
	// Half of the delay is exponential, so a packet's deviation is half of the
	// mean; five standard errors of the packets that are in no group.
	slack := 5 * 0.5 * math.Sqrt(received-packets) / received
	if e := delays/packets/(truth/received) - 1; math.Abs(e) > slack {
		t.Errorf("mean off by %.4f, want at most %.4f", e, slack)
	}
	if counted != missing {
		t.Errorf("%.0f lost, want %.0f", counted, missing)
	}
}

// With a digest of 4 bits chance makes levels equal whose packets are not:
// what TestLevelsAgainstSets would reject.
func TestLevelsNeedDigest(t *testing.T) {
	path := cellPaths["busy, 1 %"]
	cells := path.cut(path.passages(rand.New(rand.NewPCG(1, 1)), 20), 20)
	groups, _ := follow(cells, 64, 4)
	wrong := 0
	for _, g := range groups {
		if mean := float64(g.Sum) / float64(g.Packets); mean < 2.5e6 || mean > 50e6 {
			wrong++
		}
	}
	if wrong == 0 {
		t.Error("all groups are sound without a digest: the test of sets proves nothing")
	}
}

// A gap ends all groups, and what was outstanding belongs to none.
func TestLevelsGap(t *testing.T) {
	l := estimate.NewLevels(1, 40, 32)
	cut := func(pair estimate.CellPair) (estimate.Group, bool) {
		g, ok := l.Cut(0, pair)
		l.Next()
		return g, ok
	}
	if _, ok := cut(estimate.CellPair{SentSum: 100, SentTally: 7<<32 | 1}); ok {
		t.Error("a packet on its way is in a group")
	}
	l.Gap()
	if got := l.Lost(0, 5); got != 1 {
		t.Errorf("%d lost over a gap, want 1", got)
	}
	if g, ok := cut(estimate.CellPair{ReceivedSum: 900, ReceivedTally: 7<<32 | 1}); ok {
		t.Errorf("a packet of before the gap is in %+v", g)
	}
	g, ok := cut(estimate.CellPair{SentSum: 1000, SentTally: 9<<32 | 1, ReceivedSum: 1010, ReceivedTally: 9<<32 | 1})
	want := estimate.Group{Sum: 10, Packets: 1, Sent: 1000, From: 2, To: 3}
	if !ok || g != want {
		t.Errorf("%+v, %t; want %+v", g, ok, want)
	}
	l.Reset()
	if l.Cuts() != 0 || l.Lost(0, 5) != 0 || l.Outstanding(0) != 0 {
		t.Error("Reset left something behind")
	}
}

// What is outstanding for long enough is overdue, though others pass, until it
// comes; what is outstanding at each cut, but never the same, is not.
func TestLevelsOverdue(t *testing.T) {
	l := estimate.NewLevels(2, 40, 32)
	for k := range uint64(12) {
		if k == 0 {
			l.Cut(0, estimate.CellPair{SentTally: 7<<32 | 1}) // waits
		} else {
			l.Cut(0, estimate.CellPair{SentTally: k<<32 | 1, ReceivedTally: k<<32 | 1})
		}
		pair := estimate.CellPair{SentTally: (k+1)<<32 | 1}
		if k > 0 {
			pair.ReceivedTally = k<<32 | 1
		}
		l.Cut(1, pair) // the one sent in the interval before is received
		l.Next()
		if n, ok := l.Overdue(0, 5); ok != (k >= 5) || n != map[bool]int32{true: 1}[ok] {
			t.Errorf("after interval %d: %d, %t", k, n, ok)
		}
		if n, ok := l.Overdue(1, 5); ok || l.Outstanding(1) != 1 || l.Level(1) != (k+1)<<32|1 {
			t.Errorf("after interval %d: %d overdue, %t, level %x", k, n, ok, l.Level(1))
		}
	}
	l.Cut(0, estimate.CellPair{ReceivedTally: 7<<32 | 1})
	l.Next()
	if n, ok := l.Overdue(0, 5); ok && n != 0 {
		t.Errorf("%d overdue of none", n)
	}
	if l.Level(0) != 0 {
		t.Errorf("level %x", l.Level(0))
	}
}

// One packet alone in a group tells when it was sent and how long it took,
// though sums wrap and it crossed a cut.
func TestLevelsSingle(t *testing.T) {
	const wrap = 1 << 40
	l := estimate.NewLevels(1, 40, 16)
	l.Cut(0, estimate.CellPair{SentSum: wrap - 5, SentTally: 0xabcd<<32 | 1})
	l.Next()
	g, ok := l.Cut(0, estimate.CellPair{ReceivedSum: 20, ReceivedTally: 0xabcd<<32 | 1})
	if want := (estimate.Group{Sum: 25, Packets: 1, Sent: wrap - 5, From: 0, To: 2}); !ok || g != want {
		t.Errorf("%+v, %t; want %+v", g, ok, want)
	}
}

func TestLevelsAllocateNothing(t *testing.T) {
	path := cellPaths["everything"]
	cells := path.cut(path.passages(rand.New(rand.NewPCG(1, 1)), 20), 20)
	l := estimate.NewLevels(1, 40, 32)
	if n := testing.AllocsPerRun(10, func() {
		for _, c := range cells {
			l.Cut(0, estimate.CellPair{SentTally: uint64(len(c.sent)), ReceivedTally: uint64(len(c.received))})
			l.Next()
		}
		l.Gap()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestLevelsPanicOnWidths(t *testing.T) {
	for _, bits := range [][2]uint8{{0, 16}, {65, 16}, {40, 33}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("sums of %d bits and digests of %d are taken", bits[0], bits[1])
				}
			}()
			estimate.NewLevels(1, bits[0], bits[1])
		}()
	}
}

func TestLevelsMemorySize(t *testing.T) {
	if got := estimate.NewLevels(1000, 40, 16).MemorySize(); got < 1000*100 || got > 1000*256 {
		t.Errorf("%d bytes of 1,000 cells, want 100 to 256 a cell", got)
	}
}

func BenchmarkLevelsCut(b *testing.B) {
	const cells = 1 << 14
	l := estimate.NewLevels(cells, 40, 16)
	r := rand.New(rand.NewPCG(1, 1))
	pairs := make([]estimate.CellPair, cells)
	for i := range pairs {
		pairs[i] = estimate.CellPair{SentTally: r.Uint64() | 1, ReceivedTally: r.Uint64() | 1}
	}
	for n := 0; b.Loop(); n++ {
		l.Cut(n%cells, pairs[(n*7)%cells])
	}
}
