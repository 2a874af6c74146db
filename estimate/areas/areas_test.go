package areas

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/truth"
)

const areaLength = 1000 // of an interval

// pairsOf returns what passes cells, interval by interval. Flows serve as digests.
func pairsOf(cells int, packets []truth.Packet, cuts int) [][]CellPair {
	pairs := make([][]CellPair, cuts)
	for k := range pairs {
		pairs[k] = make([]CellPair, cells)
	}
	for _, p := range packets {
		tally := p.Flow<<32 | 1
		if k := p.Sent / areaLength; p.Sent >= 0 && k < int64(cuts) {
			c := &pairs[k][p.Cell]
			c.SentSum += uint64(p.Sent)
			c.SentTally += tally
		}
		if k := p.Received / areaLength; !p.Lost && k < int64(cuts) {
			c := &pairs[k][p.Cell]
			c.ReceivedSum += uint64(p.Received)
			c.ReceivedTally += tally
		}
	}
	return pairs
}

// pass gives cells what passes them in an interval.
func pass(a *Areas, pairs []CellPair) {
	for i, c := range pairs {
		a.Cut(i, c)
	}
	a.Next(int64(a.Cuts()+1) * areaLength)
}

// whenDue passes intervals and calls visit for each report of so many, once it is due or has waited for so long.
func whenDue(a *Areas, pairs [][]CellPair, window, most int, visit func(from int, got Transit, err error)) {
	next := 0
	for k := range pairs {
		pass(a, pairs[k])
		for ; k+1-next-window >= min(a.Settling(most), most); next += window {
			got, err := a.Transit(next, next+window, nil)
			visit(next, got, err)
			a.Settle(next + window)
		}
	}
}

// passAreas gives cells what passes them, up to a number of cuts.
func passAreas(a *Areas, cells int, packets []truth.Packet, cuts int) {
	a.Begin(0, false)
	for _, pairs := range pairsOf(cells, packets, cuts) {
		pass(a, pairs)
	}
}

// areaTraffic draws packets for cells: delays is a mean in intervals, slow the share of packets that take ten times as long.
func areaTraffic(random *rand.Rand, cells, cuts int, each, delay, slow, loss float64) (packets []truth.Packet) {
	rate := each * float64(cells) / areaLength
	for now := random.ExpFloat64() / rate; now < float64(cuts)*areaLength; now += random.ExpFloat64() / rate {
		p := truth.Packet{Cell: random.IntN(cells), Flow: uint64(random.Uint32()), Sent: int64(now), Lost: random.Float64() < loss}
		if !p.Lost {
			d := delay * areaLength * random.ExpFloat64()
			if random.Float64() < slow {
				d *= 10
			}
			p.Received = p.Sent + 1 + int64(d)
		}
		packets = append(packets, p)
	}
	return packets
}

// Without loss the areas are exact in every window, whatever the delay, with sums of any width that holds what a cell has in an interval.
func TestAreasAreExact(t *testing.T) {
	for _, c := range []struct {
		each, delay, slow float64
		bits              uint8
	}{{5, 0.01, 0, 64}, {5, 1, 0, 64}, {0.2, 3, 0.02, 64}, {3, 0.3, 0.05, 64}, {0.02, 30, 0, 64}, {3, 0.3, 0, 24}, {0.05, 2, 0, 32}} {
		const cells, cuts, window = 50, 60, 7
		random := rand.New(rand.NewPCG(1, uint64(100*c.delay)))
		packets := areaTraffic(random, cells, cuts, c.each, c.delay, c.slow, 0)
		a := New([]int{cells}, c.bits, 32)
		passAreas(a, cells, packets, cuts)
		for from := 0; from+window <= cuts; from += window {
			want := truth.Of(packets, int64(from)*areaLength, int64(from+window)*areaLength)
			got, err := a.Transit(from, from+window, nil)
			wrong := got.Received != float64(want.Received) || math.Abs(got.Mean*got.Received-want.Way) > 1e-6*want.Way
			if want.Received > 0 && (err != nil || wrong) {
				t.Errorf("%+v, from cut %d: %v for %v packets, want %+v; %v", c, from, got.Mean*got.Received, got.Received, want, err)
			}
			a.Settle(from + window)
		}
	}
}

// With losses, the mean is inside its interval about as often as it says, and has no bias beyond its error. If
// lost packets were left to age, or cells that lost some were left out with what they hold, this would fail.
// Spans that lost nothing are a choice of the short ones, and those near to others that lost nothing: weighed
// by their chance they stand for all, and all alike, the control where most spans lose some, they do not.
func TestAreasUnderLoss(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, for long under the race detector")
	}
	const cuts, window, settling = 400, 10, 60
	const limit = 3.5 // standard errors: by chance one case in a thousand exceeds it
	for _, c := range []struct{ each, delay, slow, loss float64 }{
		{3, 0.05, 0, 0.05}, {0.5, 1, 0.01, 0.01}, {0.05, 3, 0, 0.05}, {1, 0.2, 0.02, 0.1},
		{0.4, 2, 0, 0.05}, {0.3, 2, 0, 0.2}, {6, 0.22, 0, 0.01}, {0.09, 3, -1, 0.2},
	} {
		// Few cells, most with packets on their way that take about equally long, and reports as early as possible.
		cells, few, wait := 200, c.each > 3, settling
		switch {
		case few:
			cells = 32
		case c.slow < 0:
			wait = 5
		}
		random := rand.New(rand.NewPCG(2, uint64(1000*c.loss)))
		packets := areaTraffic(random, cells, cuts, c.each, c.delay, c.slow, c.loss)
		for i := range packets {
			if p := &packets[i]; few && !p.Lost {
				p.Received = p.Sent + areaLength/5 + p.Sent%(areaLength/20)
			} else if c.slow < 0 {
				p.Received = p.Sent + 3*areaLength
			}
		}
		a := New([]int{cells}, 64, 32)
		var all [3]int // windows, misses, misses of the control
		var bias, plain, rate estimate.Moments
		for from := 40; from+window+settling <= cuts; from += window {
			passAreas(a, cells, packets, from+window+wait)
			if from > 100 {
				a.Settle(from - 60)
			}
			of := truth.Of(packets, int64(from)*areaLength, int64(from+window)*areaLength)
			got, err := a.Transit(from, from+window, nil)
			if err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
			want, half := of.PerPacket(), 3*got.Error
			all[0]++
			if math.Abs(got.Mean-want) > half+1e-9*want {
				all[1]++
			}
			aged := c.loss * c.each * float64(cells*window) * window / 2 * areaLength / float64(of.Received)
			if math.Abs(got.Mean+aged-want) > half {
				all[2]++
			}
			bias.Add(got.Mean/want - 1)
			rate.Add(a.losses.rate(len(a.ends) - 1 - wait))
			r := &a.window.groups[0]
			plain.Add((r.area-r.by*r.stands.all.a)/r.exact/want - 1)
		}
		n, error := float64(all[0]), bias.StdDev()/math.Sqrt(float64(all[0]))
		// Errors by few slow packets are skew. Losses are known before receptions; on their own they would make twice as much seem lost.
		if math.Abs(bias.Mean()) > limit*error && c.slow <= 0 || math.Abs(rate.Mean()-c.loss) > 0.05 && wait < settling {
			t.Errorf("%+v: a bias of %+.4f ± %.4f, and %.2f of those sent last seem lost", c, bias.Mean(), error, rate.Mean())
		}
		if math.Abs(plain.Mean()) < limit*error && c.delay == 2 {
			t.Errorf("%+v: the control has no bias: %+.4f ± %.4f", c, plain.Mean(), error)
		}
		if limit := 0.01*n + 3*math.Sqrt(0.01*n) + 1; float64(all[1]) > limit {
			t.Errorf("%+v: %d of %d outside three standard errors, want at most %.0f", c, all[1], all[0], limit)
		}
		if 2*all[2] < all[0] && c.delay < 1 {
			t.Errorf("%+v: the control, in which lost packets age on, is outside %d of %d times only", c, all[2], all[0])
		}
	}
}

// What is lost is counted once, whenever it is known, and what comes late is taken back.
func TestAreasLosses(t *testing.T) {
	const cells, cuts = 100, 300
	random := rand.New(rand.NewPCG(3, 4))
	packets := areaTraffic(random, cells, cuts-100, 1, 0.3, 0, 0.02)
	wantLost := 0
	for i := range packets {
		if p := &packets[i]; p.Lost {
			wantLost++
		} else if i%500 == 100 {
			p.Received = p.Sent + 60*areaLength // far later than any before it
		}
	}
	a, lost, extra := New([]int{cells}, 64, 32), 0, 0
	whenDue(a, pairsOf(cells, packets, cuts), 10, 10, func(from int, _ Transit, _ error) {
		l, e, _ := a.Losses(from + 10)
		lost += l
		extra += e
	})
	l, e, out := a.Losses(a.Cuts())
	if lost, extra = lost+l, extra+e; lost-extra+out != wantLost || extra == 0 { // no late packet was taken back
		t.Errorf("%d lost, %d extra, %d outstanding, want %d lost in all", lost, extra, out, wantLost)
	}
}

// A clock that is set back makes delays negative. The report in which it is set has an error. Later ones are
// right, or have one because packets come before they are sent.
func TestAreasTellStep(t *testing.T) {
	const cells, cuts, window, set = 100, 80, 10, 25
	for _, step := range []int64{0, areaLength / 2, 3 * areaLength} {
		packets := areaTraffic(rand.New(rand.NewPCG(7, 8)), cells, cuts, 2, 0.2, 0, 0.01)
		for i := range packets {
			if p := &packets[i]; p.Received > set*areaLength {
				p.Received -= step
			}
		}
		a := New([]int{cells}, 64, 32)
		for from, pairs := range pairsOf(cells, packets, cuts) {
			pass(a, pairs)
			if from++; from%window != 0 || from == window {
				continue
			}
			from -= 2 * window
			got, err := a.Transit(from, from+window, nil)
			a.Settle(from + window)
			want := 0.2 * areaLength
			if from > set {
				want -= float64(step)
			}
			switch within := from < set && set < from+window; {
			case within && step > 0:
				if err == nil {
					t.Errorf("set back by %d: no error in the report from cut %d, %+v", step, from, got)
				}
			case err == nil && math.Abs(got.Mean-want) > 4*got.Error+40: // 40: the window's ends
				t.Errorf("set back by %d: from cut %d %v ± %v, want %v", step, from, got.Mean, got.Error, want)
			case err != nil && from < set:
				t.Errorf("set back by %d: from cut %d %v", step, from, err)
			}
		}
	}
}

// Cut, Next, Settle and Transit use again what they have allocated, and cells that nothing passes take no room.
func TestAreasAllocate(t *testing.T) {
	const cells, busy = 10_000, 100
	a := New([]int{cells}, 64, 32)
	a.Begin(0, false)
	k := int64(0)
	step := func() {
		for i := range busy {
			a.Cut((int(k)*busy+i)%cells, CellPair{SentSum: 5, SentTally: 1, ReceivedSum: 9, ReceivedTally: 1})
		}
		a.Next((k + 1) * areaLength)
		if k++; k%20 == 0 {
			if _, err := a.Transit(a.Cuts()-20, a.Cuts()-5, nil); err != nil {
				t.Fatal(err)
			}
			a.Settle(a.Cuts() - 5)
		}
	}
	for range 200 {
		step()
	}
	if n := testing.AllocsPerRun(100, step); n > 0 {
		t.Errorf("%v allocations an interval", n)
	}
	if n := len(a.cells); n > 30*busy {
		t.Errorf("state of %d cells is kept", n)
	}
}

// Where cells always have packets on their way and some are lost, nothing tells which: the report is refused, or its error holds what
// the lost ones aged. Taken to be on their way, they made means of up to 25 times the truth, with errors of nearly nothing.
func TestCrowdedCells(t *testing.T) {
	const cells, cuts, window = 16, 600, 10
	answered, refused, wrong := 0, 0, 0
	packets := areaTraffic(rand.New(rand.NewPCG(9, 9)), cells, cuts, 8, 0.8, 0, 0.01)
	a := New([]int{cells}, 64, 32)
	whenDue(a, pairsOf(cells, packets, cuts), window, 2*window, func(from int, got Transit, err error) {
		want := truth.Of(packets, int64(from)*areaLength, int64(from+window)*areaLength).PerPacket()
		if err != nil {
			refused++
		} else if answered++; math.Abs(got.Mean-want) > 2*got.Error {
			wrong++
		}
	})
	if wrong > 1 || refused < 5*answered {
		t.Errorf("%d answered, %d of these wrong, and %d refused", answered, wrong, refused)
	}
}
