package areas

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/internal/truth"
)

// What is lost is known where few packets pass, most of which are lost for a while, and where packets take no time.
// Taken to be on their way, those lost made means twice as great, for the next reports, too.
func TestFewPackets(t *testing.T) {
	const cells, cuts, window, settling = 2000, 260, 10, 60
	for _, delay := range []int64{0, 6 * areaLength} {
		random := rand.New(rand.NewPCG(16, 21))
		packets, want := areaTraffic(random, cells, cuts, 5.0/cells, 0, 0, 0), 0
		for i := range packets {
			p, second := &packets[i], packets[i].Sent/areaLength/window
			p.Received = p.Sent + delay + delay/200*int64(random.IntN(3))
			if p.Lost = (second == 10 || second == 11) && i%10 > 1; p.Lost {
				want++
			}
		}
		a, lost := New([]int{cells}, 64, 32), 0
		whenDue(a, pairsOf(cells, packets, cuts), window, settling, func(from int, got Transit, err error) {
			l, extra, _ := a.Losses(from + window)
			lost += l
			want := truth.Of(packets, int64(from)*areaLength, int64(from+window)*areaLength).PerPacket()
			if extra > 0 || from > 0 && (err != nil || math.Abs(got.Mean-want) > 3*got.Error+1e-6*want) {
				t.Errorf("%d, from cut %d: %v ± %v, want %v; %d extra, %v", delay, from, got.Mean, got.Error, want, extra, err)
			}
		})
		if lost != want {
			t.Errorf("%d: %d lost, want %d", delay, lost, want)
		}
	}
}

// Bursts cross the end of a report, which receives a few packets of them, and one burst is lost: that is soon
// known. The control takes the few packets' time on the way to be that of all, and waits for longer than the test lasts.
func TestPatienceAfterBursts(t *testing.T) {
	const cells, cuts, window, each, burst = 500, 300, 10, 30, 3000
	random := rand.New(rand.NewPCG(18, 1))
	var packets []truth.Packet
	for start := int64(96 * areaLength / 10); start < (cuts-each)*areaLength; start += each * areaLength {
		for i := range burst {
			sent := start + random.Int64N(areaLength/10)
			p := truth.Packet{
				Cell: random.IntN(cells), Flow: uint64(random.Uint32()), Sent: sent, Received: sent + areaLength/2 + random.Int64N(areaLength),
				Lost: start/areaLength/each == 2,
			}
			if i < 2 && !p.Lost { // so that the report receives some
				p.Received = sent + areaLength/10
			}
			packets = append(packets, p)
		}
	}
	a, lost, control := New([]int{cells}, 64, 32), 0, 0.0
	whenDue(a, pairsOf(cells, packets, cuts), window, 60, func(from int, got Transit, err error) {
		if err == nil && from == 0 {
			control = patienceFactor * longTail * got.Mean
		}
		l, extra, _ := a.Losses(from + window)
		lost += l - extra
	})
	if lost != burst || control < cuts*areaLength {
		t.Errorf("%d lost, want %d; the control waits for %.0f intervals", lost, burst, control/areaLength)
	}
}

// Exact spans stand for as many packets as came in others, to within three standard errors, where a session began idle.
func TestWeightsOfTheBeginning(t *testing.T) {
	const cells, cuts, window = 12000, 180, 10
	packets := areaTraffic(rand.New(rand.NewPCG(8, 1)), cells, cuts, 0.25, 0.05, 0, 0.02)
	for i := 0; i < len(packets); i += 4 {
		packets[i].Received = packets[i].Sent + 20*areaLength
	}
	a := New([]int{cells}, 64, 32)
	passAreas(a, cells, packets, cuts)
	a.Transit(0, window, nil)
	if r := &a.window.groups[0]; math.Abs(r.stands.all.n-r.other) > 3*math.Sqrt(r.stands.all.nn+r.stands.squares.nn) {
		t.Errorf("they stand for %.0f packets of %.0f", r.stands.all.n, r.other)
	}
	a.patience = 1e18 // years, which a clock that was set may cause, take no longer
	clear(a.losses.groups[0].chances)
	if got := a.losses.free(0, 3, 4); got <= 0 || got > 1 {
		t.Errorf("a chance of %v", got)
	}
}

// Cells wait for slow packets, before they lose a packet and after. Spans that are known to be exact stand for slow packets as for fast
// ones, if their weights allow for that. The control does not allow for that, and counts too many slow ones.
func TestWeightsAllowForWaiting(t *testing.T) {
	const cells, cuts, from, to, error = 8000, 260, 100, 200, 0.04 // three standard errors: 5,000 slow packets are known
	packets, got := areaTraffic(rand.New(rand.NewPCG(8, 1)), cells, cuts, 0.35, 0.05, 0, 0.2), [2]float64{}
	for i := 0; i < len(packets); i += 12 {
		packets[i].Received = packets[i].Sent + 10*areaLength
	}
	a := New([]int{cells}, 64, 32)
	passAreas(a, cells, packets, cuts)
	a.Transit(from, to, nil)
	for i := range got {
		r, of := &a.pool(from, to).groups[0], &a.losses.groups[0]
		got[i] = (r.area - (r.by-1)*r.stands.all.a) / (r.exact + r.stands.all.n) / truth.Of(packets, from*areaLength, to*areaLength).PerPacket()
		of.wait, of.waits, of.chances = 0, 0, make([]chances, len(of.chances))
	}
	if math.Abs(got[0]-1) > error || got[1] < 1+error {
		t.Errorf("%.3f times the mean, and %.3f by weights that do not allow for waiting", got[0], got[1])
	}
}
