package areas

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/internal/truth"
)

// Where levels tell nothing of the packets on their way at an end, these are like those that stand for others.
// After a burst of losses these are slow: half of 20, but none of 100 fast ones. The control takes all alike.
func TestUnknownAtAnEndAreLikeThoseThatStandForThem(t *testing.T) {
	var e endAges
	var o OnWay
	e.bound(ageBounds{Packets: 100, Least: 1, Most: 1}, 1)
	for range 10 {
		e.bound(ageBounds{Packets: 1, Least: 1000, Most: 1000}, 2)
	}
	e.levels(&o, 120, 0, 1000, &Transit{scale: 1})
	const want, control = 20*1000 + 1, 10*1000 + 1 + 10*(20*1000+1)/120
	if error := 1e-9 * want; math.Abs(o.Ages-want) > error || math.Abs(control-want) < error {
		t.Errorf("ages are %v, want %v; %v if all are alike", o.Ages, float64(want), float64(control))
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
	const cells, window, cuts, settling, deviations = 200, 10, 460, 60, 1.96
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
	a.Begin(0)
	a.UnderWay()
	for k := range int64(4) {
		var c CellPair
		if k == 2 {
			c = CellPair{SentSum: uint64(120 * (2*areaLength + areaLength/2)), SentTally: 7<<32 | 120}
		}
		if k == 3 {
			c = CellPair{ReceivedSum: uint64(3*areaLength + 1), ReceivedTally: 1<<32 | 1}
		}
		pass(a, []CellPair{c})
	}
	a.Transit(0, 4, nil)
	a.Spans(0, 4, func(s Span) {
		for _, b := range []ageBounds{s.Began, s.Ended} {
			if math.IsNaN(b.Least) || math.IsNaN(b.Most) {
				t.Errorf("ages from %v to %v", b.Least, b.Most)
			}
		}
	})
}
