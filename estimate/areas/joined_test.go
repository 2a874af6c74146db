package areas

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/internal/truth"
)

// copyOf20 lets one packet in 20 come twice, of those in the first part of each interval, and returns the copies.
func copyOf20(random *rand.Rand, pairs [][]CellPair, packets []truth.Packet, part int64) (copies []truth.Packet) {
	for _, p := range packets {
		if k := p.Received / areaLength; random.Int64N(20/part) == 0 && k < int64(len(pairs)) && p.Received%areaLength <= areaLength/part {
			c := &pairs[k][p.Cell]
			c.ReceivedSum += uint64(p.Received)
			c.ReceivedTally += p.Flow<<32 | 1
			copies = append(copies, p)
		}
	}
	return copies
}

// A few packets come twice, where packets take many intervals and few cells have others on their way: later
// reports, without a copy, are right all the same, from the start of a session on. The control counts every packet
// received as one that was sent, so that copies are missing from all that is on its way later.
func TestCopiesDoNotLinger(t *testing.T) {
	const cells, cuts, settling, deviations = 2000, 260, 90, 3.3
	windows, wrong, lingers := 0, 0, 0
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 21))
		packets := areaTraffic(random, cells, cuts, 3.0/cells, 8, 0, 0)
		pairs, copies := pairsOf(cells, packets, cuts), make([]float64, cuts+1)
		for _, p := range copyOf20(random, pairs, packets, 1) {
			copies[p.Received/areaLength]++
		}
		a, before := New([]int{cells}, 64, 32), 0.0
		a.Begin(0, true)
		whenDue(a, pairs, 1, settling, func(from int, got Transit, err error) {
			_, extra, _ := a.Losses(from + 1)
			of := truth.Of(packets, int64(from)*areaLength, int64(from+1)*areaLength)
			if before += copies[from]; copies[from] > 0 || extra > 0 || err != nil || of.Received == 0 {
				return
			}
			windows++
			owed := math.Sqrt(owedVariance(&[2]OnWay{got.First, got.Last}))
			way, error := got.Mean*got.Received, got.Error*got.Received
			delays := way + got.First.Ages - got.Last.Ages
			if error = deviations*math.Hypot(error, owed) + 1e-6*of.Way; math.Abs(delays-of.Delays) > error {
				wrong++
			}
			if before*areaLength > error {
				lingers++
			}
		})
	}
	if limit := windows / 100; wrong > limit || lingers < 10*limit {
		t.Errorf("%d of %d reports are wrong, want at most %d; %d if copies linger", wrong, windows, limit, lingers)
	}
}

// Copies of fast packets came in the interval in which they show, to within 1/√12 of it, though spans last for as long as one
// slow packet took, and which is not expected of copies. In bursts all are off by the same, by more than four errors of one.
func TestCopiesOfFastPackets(t *testing.T) {
	const cells, cuts, from, to = 1000, 100, 40, 50
	for _, part := range []int64{1, 20} {
		random, a := rand.New(rand.NewPCG(3, 9)), New([]int{cells}, 64, 32)
		packets := areaTraffic(random, cells, cuts, 0.1, 0.1, 0, 0)
		packets[0].Received += areaLength * 30 / part
		pairs := pairsOf(cells, packets, cuts)
		came := append(copyOf20(random, pairs, packets, part), packets...)
		for k := range pairs {
			pass(a, pairs[k])
		}
		got, err := a.Transit(from, to, nil)
		want, most := truth.Of(came, from*areaLength, to*areaLength).PerPacket(), 3*math.Sqrt(got.Joined/12)*areaLength/got.Received
		if off := math.Abs(got.Mean - want); err != nil || off > 2*got.Error || part == 1 && (off > most || got.Error > 9) {
			t.Errorf("one in %d: a mean of %.0f ± %.0f, want %.0f to within %.0f: %v", part, got.Mean, got.Error, want, most, err)
		}
	}
}

// Of packets that were on their way at the beginning more came than would be now that all are faster. They did not
// join, and the greatest delay, which is forgotten slowly, is not forgotten at once.
func TestFasterThanAtTheBeginning(t *testing.T) {
	const cells, begins, faster, cuts = 256, 10, 210, 300
	random := rand.New(rand.NewPCG(3, 9))
	packets := areaTraffic(random, cells, cuts, 5.0/cells, 0, 0, 0)
	for i := range packets {
		p := &packets[i]
		if p.Received = p.Sent + random.Int64N(8*areaLength); p.Sent > faster*areaLength {
			p.Received = p.Sent + random.Int64N(areaLength)
		}
	}
	a := New([]int{cells}, 64, 32)
	a.Begin(begins*areaLength, true)
	for k, pairs := range pairsOf(cells, packets, cuts)[begins:] {
		for i, c := range pairs {
			a.Cut(i, c)
		}
		if a.Next(int64(begins+k+1) * areaLength); k%10 == 9 && k > 30 {
			a.Transit(a.Cuts()-30, a.Cuts()-20, nil)
			a.Settle(a.Cuts() - 20)
		}
	}
	if least := 7.0 * areaLength; a.greatest < least {
		t.Errorf("a greatest delay of %v, want at least %v", a.greatest, least)
	}
}

// Copies come in cells that always have packets on their way, where they do not show, and in others, where they
// do: those that show tell how many hide. The control assumes that none does, and is off by a tenth.
func TestCopiesThatHide(t *testing.T) {
	const dense, cells, cuts, window, settling = 100, 2000, 300, 10, 25
	random := rand.New(rand.NewPCG(3, 9))
	packets := areaTraffic(random, dense+cells, cuts, 0.4, 0, 0, 0)
	for i := range packets {
		p := &packets[i]
		if p.Received = p.Sent + 5*areaLength + random.Int64N(areaLength); random.IntN(8) > 0 {
			p.Cell = random.IntN(dense)
		}
	}
	pairs := pairsOf(dense+cells, packets, cuts)
	came := append(copyOf20(random, pairs, packets, 1), packets...)
	a, windows, wrong, control := New([]int{dense, cells}, 64, 32), 0, 0, 0
	for k := range pairs {
		pass(a, pairs[k])
		from := k + 1 - window - settling
		if from < 3*window || from%window != 0 {
			continue
		}
		got, err := a.Transit(from, from+window, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := &a.pool(from-a.before, from+window-a.before).groups[0]
		want := truth.Of(came, int64(from)*areaLength, int64(from+window)*areaLength).PerPacket()
		error := max(2*math.Sqrt(r.variance)/r.received, want/10)
		windows++
		if math.Abs(got.Mean-want) > 2*got.Error || math.Abs(r.area/r.received-want) > error {
			wrong++
		}
		if math.Abs((r.area-r.joined.hidden)/r.received-want) > want/10 {
			control++
		}
		a.Settle(from + window)
	}
	if 10*wrong > windows || 2*control < windows {
		t.Errorf("%d of %d wrong, %d if none hides", wrong, windows, control)
	}
}
