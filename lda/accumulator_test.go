package lda

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/truth"
)

const cutInterval = 100_000_000 // ns

// A cutRun is what two points saw in intervals that clocks cut.
type cutRun struct {
	up, down []*Aggregator
	packets  []truth.Packet
	truth    estimate.Moments // of the packets that came
	lost     uint64
	later    int64 // cuts of the point downstream, by so much
}

// cutTraffic passes a number of packets in each interval, and lets the last ones come.
func cutTraffic(t *testing.T, seed uint64, intervals, packets int, delay func(*rand.Rand) float64, loss float64) *cutRun {
	t.Helper()
	run := &cutRun{packets: make([]truth.Packet, 0, intervals*packets)}
	for range intervals {
		run.up, run.down = append(run.up, mustNewFor(t, DefaultConfig)), append(run.down, mustNewFor(t, DefaultConfig))
	}
	random := rand.New(rand.NewPCG(seed, 1))
	for now := random.ExpFloat64(); ; now += random.ExpFloat64() {
		sent := int64(now * cutInterval / float64(packets))
		if sent >= int64(intervals-10)*cutInterval {
			return run
		}
		p, d := hashing.Packet(random.Uint64()), int64(delay(random))
		run.up[sent/cutInterval].Update(p, sent)
		k, lost := (sent+d)/cutInterval, random.Float64() < loss
		run.packets = append(run.packets, truth.Packet{Sent: sent, Received: sent + d, Lost: lost})
		if lost || k >= int64(intervals) {
			run.lost++
			continue
		}
		run.down[k].Update(p, sent+d)
		run.truth.Add(float64(d))
	}
}

// reports calls visit for each report of a number of intervals, some time after its end.
func (run *cutRun) reports(t *testing.T, length int, due func(a *Accumulator, since int64) bool,
	visit func(a *Accumulator, from, to int64)) {
	t.Helper()
	a, from, step := accumulate(t, new(cutRun)), int64(0), int64(length)*cutInterval
	for k := range run.up {
		run.add(t, a, k)
		if (k+1)%length == 0 {
			a.End()
		}
		for ; due(a, int64(k+1)*cutInterval-from-step); a.Reset() {
			visit(a, from, from+step)
			from += step
		}
	}
}

func exponentialDelay(mean float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return mean * r.ExpFloat64() }
}

func accumulate(t *testing.T, run *cutRun) *Accumulator {
	t.Helper()
	a := must(NewAccumulator(DefaultConfig))
	for k := range run.up {
		run.add(t, a, k)
	}
	return a
}

// add gives an Accumulator one interval.
func (run *cutRun) add(t *testing.T, a *Accumulator, k int) {
	t.Helper()
	if err := a.Add(int64(k)*cutInterval, int64(k+1)*cutInterval, run.up[k], run.down[k]); err != nil {
		t.Fatal(err)
	}
}

// From an idle path to an idle path the time on the way is the sum of all delays: exact without loss, whatever
// the delay, and inside its interval with losses. The counts add up.
func TestAccumulator(t *testing.T) {
	rare := func(r *rand.Rand) float64 {
		if r.IntN(500) == 0 {
			return 3 * cutInterval
		}
		return cutInterval / 20 * r.ExpFloat64()
	}
	for _, c := range []struct {
		name    string
		delay   func(*rand.Rand) float64
		packets int
		loss    float64
	}{
		{"5 ms", exponentialDelay(5e6), 5000, 0},
		{"100 ms", exponentialDelay(1e8), 5000, 0},
		{"100 ms, few packets", exponentialDelay(1e8), 5, 0},
		{"rare slow ones", rare, 5000, 0},
		{"5 ms, 1 % lost", exponentialDelay(5e6), 5000, 0.01},
		{"5 ms, 20 % lost", exponentialDelay(5e6), 5000, 0.2},
		{"100 ms, 1 % lost", exponentialDelay(1e8), 5000, 0.01},
		{"few packets, 5 % lost", exponentialDelay(2e7), 20, 0.05},
		{"rare slow ones, 1 % lost", rare, 5000, 0.01},
	} {
		run := cutTraffic(t, 4, 60, c.packets, c.delay, c.loss)
		a := accumulate(t, run)
		r, err := a.Estimate()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		i, want := r.MeanInterval(0.99), run.truth.Mean()
		if c.loss == 0 && math.Abs(r.Mean-want) > 1e-6*want {
			t.Errorf("%s: mean %v, want %v exactly", c.name, r.Mean, want)
		}
		if !i.Contains(want) {
			t.Errorf("%s: %v is outside %+v", c.name, want, i)
		}
		if d := r.DeviationInterval(0.998); !d.Contains(run.truth.StdDev()) {
			t.Errorf("%s: deviation %v is outside %+v", c.name, run.truth.StdDev(), d)
		}
		if r.Sent+r.Extra != r.Received+r.Lost+r.Outstanding {
			t.Errorf("%s: %d sent, %d extra, but %d received, %d lost, %d outstanding", c.name, r.Sent, r.Extra, r.Received, r.Lost, r.Outstanding)
		}
		if got := r.Lost + r.Outstanding - r.Extra; got != run.lost {
			t.Errorf("%s: %d lost, want %d", c.name, got, run.lost)
		}
	}
}

// Reports that end and wait say of their ten intervals what a list of the packets says: the time on the way
// exactly without loss, and within its interval with losses; and the counts of packets. If slow packets that
// cross from one report to the next were forgotten, none would. Where delays rise from 1 s on, cells that lost packets hold those
// that come after the report, and cells that lost none tell little of them.
func TestAccumulatorReports(t *testing.T) {
	for _, c := range []struct{ delay, loss, rise float64 }{{6e7, 0, 0}, {3e8, 0, 0}, {5e6, 0.01, 0}, {6e7, 0.05, 0}, {5e6, 0.01, 4e5}} {
		n, misses, reports := 2000.0, 0, 0
		delay := func(r *rand.Rand) float64 { n++; return c.delay*r.ExpFloat64() + n*c.rise }
		run := cutTraffic(t, 5, 110+int(c.rise/3e3), int(1000-c.rise/4.08e2), delay, c.loss)
		run.reports(t, 10, settled, func(a *Accumulator, from, to int64) {
			r, err := a.Estimate()
			want := truth.Of(run.packets, from, to)
			if err != nil || r.Sent != uint64(want.Sent) || r.Received != uint64(want.Received) {
				t.Fatalf("%+v from %d: %d sent, %d received, want %+v; %v", c, from, r.Sent, r.Received, want, err)
			}
			if c.loss == 0 && (math.Abs(r.Mean-want.PerPacket()) > 1e-6*want.PerPacket() || r.Lost+r.Extra > 0) {
				t.Errorf("%+v from %d: mean %v, %d lost, %d extra, want %v and none", c, from, r.Mean, r.Lost, r.Extra, want.PerPacket())
			}
			if i := r.MeanInterval(0.99); !i.Contains(want.PerPacket()) && c.loss > 0 || !i.Contains(want.MeanDelay()) {
				misses++
			}
			reports++
		})
		if misses > 1 || reports < 4 {
			t.Errorf("%+v: %d of %d reports are outside", c, misses, reports)
		}
	}
}

// Where few packets are slow and some are lost, intervals of the first reports allow for what is not known yet: at first that all
// that seem lost may still come, and later that slow ones may. If what may come were left out, the early ones would be wrong.
func TestAccumulatorSlowFirst(t *testing.T) {
	slow := func(r *rand.Rand) float64 {
		if r.IntN(500) == 0 {
			return 30 * cutInterval
		}
		return cutInterval / 20 * r.ExpFloat64()
	}
	run, a := cutTraffic(t, 8, 130, 1000, slow, 0.01), accumulate(t, new(cutRun))
	from, misses, wrong := int64(0), 0, 0
	for k := range run.up {
		run.add(t, a, k)
		if k == 11 || k == 21 { // of all so far
			r, err := a.Estimate()
			want := truth.Of(run.packets, 0, int64(k+1)*cutInterval).PerPacket()
			i := r.MeanInterval(0.95)
			if err != nil || !i.Contains(want) {
				t.Errorf("at cut %d: %+v, want %v; %v", k+1, i, want, err)
			}
			if r.late = 0; !r.MeanInterval(0.95).Contains(want) {
				wrong++
			}
		}
		if k%10 == 9 && k > 21 {
			a.End()
		}
		for ; a.Settled(); a.Reset() {
			r, err := a.Estimate()
			to := max(from+10*cutInterval, 30*cutInterval)
			want, i := truth.Of(run.packets, from, to), r.MeanInterval(0.95)
			if err != nil || !i.Contains(want.PerPacket()) || !i.Contains(want.MeanDelay()) {
				misses++
			}
			from = to
		}
	}
	if misses > 1 || from < 60*cutInterval || wrong == 0 {
		t.Errorf("%d of the reports up to %d miss, and %d of 2 controls", misses, from, wrong)
	}
}

// An interval without length adds to the last one: here it has what was received.
func TestAccumulatorPartsOfAnInterval(t *testing.T) {
	run, a := cutTraffic(t, 7, 20, 1000, exponentialDelay(1e8), 0.01), accumulate(t, new(cutRun))
	none := mustNewFor(t, DefaultConfig)
	for k := range run.up {
		start, end := int64(k)*cutInterval, int64(k+1)*cutInterval
		if err := errors.Join(a.Add(start, end, run.up[k], none), a.Add(end, end, none, run.down[k])); err != nil {
			t.Fatal(err)
		}
	}
	r, err := a.Estimate()
	_, i := r.OfReceived(0.99)
	if err != nil || r.Lost+r.Outstanding != run.lost || !i.Contains(run.truth.Mean()) || i.High-i.Low > 0.3*run.truth.Mean() {
		t.Errorf("%+v, %v, mean in %+v, want %v; %d lost", r, err, i, run.truth.Mean(), run.lost)
	}
}

// Intervals come in order. After a gap, what was on its way is extra, and no delay of it counts.
func TestAccumulatorGap(t *testing.T) {
	run := cutTraffic(t, 7, 40, 1000, exponentialDelay(1e8), 0)
	a := accumulate(t, new(cutRun))
	for k := 10; k < 40; k++ {
		if k == 20 {
			continue // is missing
		}
		run.add(t, a, k)
	}
	r, err := a.Estimate()
	if err != nil || r.Extra == 0 || !r.MeanInterval(0.95).Contains(1e8) {
		t.Errorf("%+v, %v", r, err)
	}
	if err := a.Add(0, cutInterval, run.up[0], run.down[0]); !errors.Is(err, estimate.ErrOrder) {
		t.Errorf("an interval of before: %v", err)
	}
	if err := a.Add(6e9, 5e9, run.up[0], run.down[0]); !errors.Is(err, estimate.ErrOrder) {
		t.Errorf("an interval that ends before it begins: %v", err)
	}
	other := mustNewFor(t, twoBanks(9))
	if err := a.Add(5e9, 6e9, other, other); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("another Config: %v", err)
	}
}

// Reports may end behind a gap, and before an interval follows: nothing is known of them, and nothing is outstanding in them.
func TestAccumulatorEndsBehindGap(t *testing.T) {
	run, a := cutTraffic(t, 7, 160, 300, exponentialDelay(1e8), 0), accumulate(t, new(cutRun))
	silent := func() {
		t.Helper()
		r, err := a.Estimate()
		if r.Outstanding+r.Lost+r.Extra != 0 || !errors.Is(err, estimate.ErrNoSamples) || !a.Settled() {
			t.Errorf("behind a gap: %+v, %v", r, err)
		}
	}
	for k := range 100 {
		if run.add(t, a, k); k%20 == 19 {
			a.Reset() // forgets the oldest cuts
		}
	}
	a.End()
	a.Gap()
	a.End()
	silent()
	for k := 100; k < 160; k++ {
		run.add(t, a, k)
		silent()
	}
	a.Reset()
	silent()
	a.Reset()
	if r, err := a.Estimate(); err != nil || r.Extra == 0 || math.Abs(r.Mean-1e8) > 4e8/math.Sqrt(float64(r.N)) {
		t.Errorf("after the gap: %+v, %v", r, err)
	}
}

// Of packets on their way at the beginning, only the arrival is counted. However crowded the cells are, so that
// they are seldom empty, intervals hold the mean, and are narrow a patience later.
func TestAccumulatorBeginsUnderWay(t *testing.T) {
	const begins, cuts = 10, 140
	run := cutTraffic(t, 1, cuts+10, 2000, func(r *rand.Rand) float64 { return 1e8 + 2e8*r.ExpFloat64() }, 0)
	first, missed, a := int64(begins), 0, accumulate(t, new(cutRun))
	a.Gap()
	for i := begins; i < cuts; i++ {
		run.add(t, a, i)
		if i%10 == 9 {
			a.End()
			a.Estimate()
		}
		for ; a.Settled(); a.Reset() {
			result, err := a.Estimate()
			want := truth.Of(run.packets, first*cutInterval, (first+10)*cutInterval).MeanDelay()
			if i := result.MeanInterval(0.99); err != nil || !i.Contains(want) || first >= 40 && i.High-i.Low > want {
				missed++
			}
			first += 10
		}
	}
	if missed > 1 || first < 100 {
		t.Errorf("%d reports are wrong, of %d", missed, first/10-1)
	}
}

// Losses are told once, although it turns out meanwhile that packets take longer than they did. The slowest packets are slower and slower.
func TestAccumulatorTellsLossesOnce(t *testing.T) {
	n, told, a, none := 0, 0, accumulate(t, new(cutRun)), mustNewFor(t, DefaultConfig)
	run := cutTraffic(t, 24, 310, 200, func(r *rand.Rand) float64 {
		n++
		return r.ExpFloat64() * 15e6 * float64(1+n/8000)
	}, 0.05)
	for range 90 { // in which the last ones are told
		run.up, run.down = append(run.up, none), append(run.down, none)
	}
	for k := range run.up {
		run.add(t, a, k)
		if k%50 == 49 {
			d, _ := a.Estimate()
			told += int(d.Lost) - int(d.Extra)
			a.Reset()
		}
	}
	if told != int(run.lost) {
		t.Errorf("%d packets lost, want %d", told, run.lost)
	}
}

// Packets that are held for 100 intervals count as lost, and as extra when they come, long before cells show that.
// What is lost meanwhile is told all the same, and soon.
func TestAccumulatorLossesAfterStall(t *testing.T) {
	const packets, begins, ends = 100, 200 * 100, 300 * 100
	n, told, soon, want, last := 0, 0, 0, 0, int64(0)
	run := cutTraffic(t, 5, 600, packets, func(*rand.Rand) float64 {
		if n++; n > begins && n < ends {
			return float64(ends-n) / packets * cutInterval
		}
		return 5e6
	}, 0.01)
	run.reports(t, 10, func(_ *Accumulator, since int64) bool { return since >= 45*cutInterval }, func(a *Accumulator, _, to int64) {
		r, _ := a.Estimate()
		told += int(r.Lost) - int(r.Extra)
		if last = to / cutInterval; last > 310 && last <= 400 {
			soon += int(r.Lost) - int(r.Extra)
		}
	})
	for _, p := range run.packets {
		if p.Lost && p.Sent < last*cutInterval {
			want++
		}
	}
	// Fewer than 1.25 n + 4√n are taken to be on their way, where n = 5 are.
	if want-told < 0 || want-told > 30 || soon < packets*90/100-40 {
		t.Errorf("%d lost, of %d; %d of some %d soon after the stall", told, want, soon, packets*90/100)
	}
}

// A report of no interval, because points are silent, leaves what is outstanding to the next one.
func TestAccumulatorSilentReports(t *testing.T) {
	for seed := range uint64(20) {
		run, out := cutTraffic(t, seed, 40, 50, exponentialDelay(20e6), 0.01), uint64(0)
		a := accumulate(t, new(cutRun))
		for k := range run.up {
			run.add(t, a, k)
			for i := 0; k%10 == 9 && i < 3; i++ {
				a.End()
				d, _ := a.Estimate()
				if a.Reset(); d.Sent+out+d.Extra != d.Received+d.Lost+d.Outstanding {
					t.Errorf("seed %d, cut %d, again %d: after %d outstanding: %v", seed, k, i, out, d)
				}
				out = d.Outstanding
			}
		}
	}
}

// What Reset forgets stays forgotten, though nobody asked about it: its losses are
// not told in the next report, which waits no longer for it.
func TestResetForgets(t *testing.T) {
	const lossy, end = 40, 50
	run, n := new(cutRun), 0
	run.pass(t, sends(40, 60*cutInterval, func(_ *rand.Rand, sent int64) int64 {
		if n++; sent < lossy*cutInterval && n%20 == 0 {
			return -1
		}
		return sent + 1e6
	}), math.MaxInt64, 0)
	want, a := truth.Of(run.packets, lossy*cutInterval, end*cutInterval).Sent, accumulate(t, new(cutRun))
	for k := range run.up {
		run.add(t, a, k)
		switch {
		case k == lossy-1:
			a.Reset()
		case k == end-1:
			a.End()
		case k > end && a.Settled():
			if d, err := a.Estimate(); err != nil || d.Sent != uint64(want) || d.Lost > 2 || k > end+5 {
				t.Errorf("at cut %d: %d lost of %d, %v", k, d.Lost, d.Sent, err)
			}
			return
		}
	}
	t.Error("the report waits for what was forgotten")
}

// Stamps of a clock other than the cuts' make areas meaningless: whatever the width of sums, the report is
// refused and says at which point. Stamps that are off by less than an interval are not.
func TestAccumulatorStampsOfAnotherClock(t *testing.T) {
	run := cutTraffic(t, 12, 20, 500, exponentialDelay(2e7), 0.01)
	for _, c := range []struct {
		up, down int64
		bits     uint8
		want     string
	}{{0, 0, 64, ""}, {5e7, 5e7, 64, ""}, {0, -4e7, 64, ""}, {3e10, 3e10, 64, "upstream"}, {-3e10, 0, 64, "upstream"},
		{0, 3e10, 64, "downstream"}, {0, 3600e9, 40, "downstream"}, {3600e9, 3600e9, 40, "upstream"}} {
		config := DefaultConfig
		config.SumBits = c.bits
		a, err := NewAccumulator(config)
		for k := range run.up {
			up, down := mustNewFor(t, config), mustNewFor(t, config)
			for i := range run.up[k].cells {
				s, d := &run.up[k].cells[i], &run.down[k].cells[i]
				up.cells[i], down.cells[i] = *s, *d
				up.cells[i].sum += uint64(c.up) * uint64(s.count())
				down.cells[i].sum += uint64(c.down) * uint64(d.count())
			}
			err = errors.Join(err, a.Add(int64(k)*cutInterval, int64(k+1)*cutInterval, up, down))
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Estimate()
		if (c.want == "") != (err == nil) || err != nil && (!errors.Is(err, estimate.ErrClocks) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
