package areas

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/internal/truth"
)

// Where levels tell nothing of the packets on their way at an end, these are like those that stand for others: slower,
// where losses hide two in three slow ones. The error is as the variance says, give or take four deviations of a mean
// square. The controls treat all alike, and let those that stand for others vary as all do.
func TestUnknownAtAnEndAreLikeThoseThatStandForThem(t *testing.T) {
	const trials, number, slow, limit = 400, 400, 0.05, 4
	random, off, squares, variance, alike, even := rand.New(rand.NewPCG(8, 2)), 0.0, 0.0, 0.0, 0.0, 0.0
	for range trials {
		var e endAges
		var o OnWay
		ages := 0.0
		for range number {
			age, weight := 1.0, 1.1
			if random.Float64() < slow {
				age, weight = 1000, 3
			}
			if ages += age; weight*random.Float64() < 1 {
				e.bound(ageBounds{Packets: 1, Least: age, Most: age}, weight)
			}
		}
		e.levels(&o, number, slow*1000*1000, 1000, &Transit{scale: 1})
		off, squares, variance = off+o.Ages-ages, squares+sq(o.Ages-ages), variance+o.Variance
		alike += e.bounds.Least*number/e.bounds.Packets - ages
		rest := number - e.bounds.Packets
		even += rest * slow * 1000 * 1000 * (1 + rest*e.like.squares.n/sq(e.like.all.n))
	}
	error := limit * math.Sqrt(2./trials)
	if math.Abs(off) > limit*math.Sqrt(squares) || math.Abs(squares/variance-1) > error {
		t.Errorf("off by %v, squares %v, variance %v", off, squares, variance)
	}
	if -alike < limit*math.Sqrt(squares) || squares/even-1 < error {
		t.Errorf("all alike, off by %v, and variances %v", alike, even)
	}
}

// A packet that is slower than all seen lately, in a cell with others, is at a report's end as old as levels
// show it to be. The control assumes that none is older than the greatest delay seen by then.
func TestStragglerAtAnEnd(t *testing.T) {
	const cells, cuts, end, deviations = 500, 60, 10, 3
	random := rand.New(rand.NewPCG(8, 1))
	outside, capped := 0, 0
	for range 20 {
		var packets []truth.Packet
		for range 3 * cells {
			sent := random.Int64N(areaLength / 10)
			packets = append(packets, truth.Packet{
				Cell: random.IntN(cells), Flow: uint64(random.Uint32()), Sent: sent, Received: sent + areaLength*3/2 + random.Int64N(3*areaLength),
			})
		}
		slow := &packets[0]
		slow.Received = slow.Sent + 10*areaLength + random.Int64N(areaLength)
		a := New([]int{cells}, 64, 16)
		passAreas(a, cells, packets, cuts)
		got, err := a.Transit(0, end, nil)
		if err != nil {
			t.Fatal(err)
		}
		age := float64(end*areaLength - slow.Sent)
		if slow.Received <= end*areaLength {
			age = 0
		}
		error := deviations*math.Sqrt(owedVariance(&[2]OnWay{got.First, got.Last})) + 1e-6*age
		if math.Abs(got.Last.Ages-got.First.Ages-age) > error {
			outside++
		}
		if math.Abs(min(age, 6*areaLength)-age) > error {
			capped++
		}
	}
	if outside > 1 || capped < 10 {
		t.Errorf("%d of 20 are outside, %d if none is older than the others", outside, capped)
	}
}

// One packet in 2,000 is slow, and mostly not alone: where by chance those that were alone took as long as all,
// slow ones may be on their way all the same. The control takes a tenth of the deviation.
func TestRareSlowAtAnEnd(t *testing.T) {
	const cells, window, cuts, settling, deviations = 100, 10, 460, 60, 1.96
	n, outside, control := 0.0, 0.0, 0.0
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 1))
		packets := areaTraffic(random, cells, cuts, 3, 0.3, 0, 0)
		for i := range packets {
			if p := &packets[i]; random.IntN(2000) == 0 {
				p.Received = p.Sent + 20*areaLength
			}
		}
		a := New([]int{cells}, 64, 32)
		whenDue(a, pairsOf(cells, packets, cuts), window, settling, func(from int, got Transit, err error) {
			if err != nil || from < 5*window || from >= cuts-settling { // until some slow packets have come
				return
			}
			of := truth.Of(packets, int64(from)*areaLength, int64(from+window)*areaLength)
			off := math.Abs(got.First.Ages - got.Last.Ages - of.Delays + of.Way)
			half := deviations * math.Sqrt(owedVariance(&[2]OnWay{got.First, got.Last}))
			if n++; off > half {
				outside++
			}
			if off > half/10 {
				control++
			}
		})
	}
	if most := 0.05*n + 3*math.Sqrt(0.05*n); n < 200 || outside > most || control < most {
		t.Errorf("%v of %v are outside, %v a tenth as wide", outside, n, control)
	}
}

// A burst that is on its way at the beginning of a session, before any delay is known, has ages without bounds, and
// no age that is not a number.
func TestBurstBeforeDelays(t *testing.T) {
	a := New([]int{1}, 64, 32)
	a.Begin(0, true)
	pass(a, make([]CellPair, 1))
	pass(a, make([]CellPair, 1))
	pass(a, []CellPair{{SentSum: uint64(120 * (2*areaLength + areaLength/2)), SentTally: 7<<32 | 120}})
	pass(a, []CellPair{{ReceivedSum: uint64(3*areaLength + 1), ReceivedTally: 1<<32 | 1}})
	if ends := endsOf(a, 0, 4); math.IsNaN(ends[0].Least + ends[0].Most + ends[1].Least + ends[1].Most) {
		t.Errorf("ages %v", ends)
	}
}

func endsOf(a *Areas, from, to int) (ends [2]ageBounds) {
	a.Transit(from, to, nil)
	a.Spans(from, to, func(s Span) { ends = [2]ageBounds{plus(ends[0], s.Ends[0], 1), plus(ends[1], s.Ends[1], 1)} })
	return ends
}

// Cells that never settle have lost packets outstanding for ever, which are not on their way: at most those are that were sent since the
// greatest delay, and as many more as chance loses in a cell.
func TestLostLongAgoAreNotOnTheirWay(t *testing.T) {
	const cells, cuts, each, loss = 50, 200, 2, 0.3
	a, packets := New([]int{cells}, 64, 32), areaTraffic(rand.New(rand.NewPCG(3, 3)), cells, cuts, each, 1, 0, loss)
	passAreas(a, cells, packets, cuts)
	got, of := endsOf(a, cuts-10, cuts)[1], truth.Of(packets, 0, cuts*areaLength)
	most := cells * (each*(a.greatest/areaLength+1) + math.Sqrt(each*cuts*loss*(1-loss)))
	if got.OnWay > most || got.Most > most*(a.greatest+areaLength) || got.Most < of.Way-of.Delays || got.Packets < 2*most {
		t.Errorf("ages %v, want packets up to %v, and ages from %v", got, most, of.Way-of.Delays)
	}
}

// Packets that are on their way at an end add to areas, too. So the mean of those received is as far off as its error
// says, give or take four deviations of a mean square; the control adds up both as if they were independent.
func TestEndsVaryAlongWithAreas(t *testing.T) {
	const cells, window, cuts, settling = 150, 10, 1000, 10
	random, n, squares, variance, apart := rand.New(rand.NewPCG(1, 1)), 0.0, 0.0, 0.0, 0.0
	packets := areaTraffic(random, cells, cuts, 0.4, 0, 0, 0.03)
	for i := range packets {
		packets[i].Received = packets[i].Sent + 5*areaLength/2
	}
	whenDue(New([]int{cells}, 64, 32), pairsOf(cells, packets, cuts), window, settling, func(from int, got Transit, _ error) {
		of := truth.Of(packets, int64(from)*areaLength, int64(from+window)*areaLength)
		v := sq(got.Error*got.Received) + owedVariance(&[2]OnWay{got.First, got.Last})
		n, squares = n+1, squares+sq(got.Mean*got.Received+got.First.Ages-got.Last.Ages-of.Delays)
		variance, apart = variance+v, apart+v-2*got.along*got.First.Ages/max(1, got.First.Packets)
	})
	if error := 4 * math.Sqrt(2/n); squares > (1+error)*variance || squares < variance/3 || squares > apart/3 {
		t.Errorf("squares of %v errors %.3g, variance %.3g, or apart %.3g", n, squares, variance, apart)
	}
}
