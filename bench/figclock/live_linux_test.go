package figclock

import (
	"flag"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/lda"
)

// The long run is go test -run TestLive -live 10m -timeout 20m -v ./bench/figclock.
var liveFor = flag.Duration("live", 6*time.Second, "how long TestLive runs")

// A falseClock is what the far point's stamps are taken through: it is set
// wrong, drifts by 50 millionths one way and then the other, wanders, and is
// set twice.
type falseClock struct {
	start  int64
	length float64
}

func (c *falseClock) ahead(now int64) float64 {
	t := float64(now - c.start)
	x := -80e6 + 50e-6*min(t, c.length/2) - 50e-6*max(0, t-c.length/2)
	const period = 60e9
	x += 5e-8 * period / (2 * math.Pi) * math.Sin(2*math.Pi*t/period)
	if t > 0.3*c.length {
		x += 3e6
	}
	if t > 0.75*c.length {
		x -= 150e3
	}
	return x
}

// A livePass is what came of the intervals.
type livePass struct {
	intervals, unknown, stepped int
	readings, excluded          int
	unlikely                    int       // corrected means that are not what the likely interval says
	errors                      []float64 // of corrected means, ns, but in intervals with steps
	uncorrected                 []float64
}

// Real packets between two network namespaces, through shaped queues on a veth
// pair: delays corrected are those that a clock without fault would have
// measured, to 2 µs, and the certain interval never excludes the truth.
func TestLive(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	wire := newWire(t)
	const interval = 250 * time.Millisecond
	fake := &falseClock{start: time.Now().UnixNano(), length: float64(*liveFor)}
	flows := [2]*liveFlow{newLiveFlow(t, 0, fake, interval), newLiveFlow(t, 1, fake, interval)}
	done := make(chan struct{})
	for i := range flows {
		wire.group.Go(func() { flows[i].send(t, wire.ends[i], wire.peers[i], done, uint64(i)) })
		wire.group.Go(func() { flows[i].receive(wire.ends[1-i]) })
	}
	pass := watch(t, flows, fake, interval)
	close(done)
	wire.ends[0].Close()
	wire.ends[1].Close()
	wire.group.Wait()
	pass.report(t)
}

// watch follows the intervals, each when its packets have come.
func watch(t *testing.T, flows [2]*liveFlow, fake *falseClock, interval time.Duration) *livePass {
	tracker, err := clock.New(clock.DefaultConfig)
	if err != nil {
		t.Fatal(err)
	}
	pass := &livePass{}
	first := fake.start/int64(interval) + 1
	end := time.Unix(0, fake.start).Add(*liveFor)
	for k := first; ; k++ {
		over := time.Unix(0, (k+1)*int64(interval)+int64(interval))
		if over.After(end) {
			return pass
		}
		time.Sleep(time.Until(over))
		pass.interval(t, tracker, flows, fake, k*int64(interval), int64(interval))
	}
}

// interval reads the tracker all through one interval, and corrects its means.
func (p *livePass) interval(t *testing.T, tracker *clock.Tracker, flows [2]*liveFlow, fake *falseClock, from, length int64) {
	var samples [2][]clock.Sample
	var seen [2]*liveInterval
	for d, f := range flows {
		seen[d] = f.take(from / length)
		kind := clock.There
		if d == 1 {
			kind = clock.Back
		}
		var err error
		if samples[d], err = lda.AppendClockSamples(nil, seen[d].up, seen[d].down, kind, from+length/2); err != nil {
			t.Fatal(err)
		}
	}
	p.intervals++
	if _, err := tracker.Add(samples[0], samples[1]); err != nil {
		p.unknown++
		return
	}
	last := int64(math.MaxInt64)
	for _, s := range samples {
		end := int64(math.MinInt64)
		for _, x := range s {
			end = max(end, x.Time)
		}
		last = min(last, end)
	}
	for at := from; at < min(from+length, last); at += length / 20 {
		r, err := tracker.At(at)
		if err != nil {
			continue
		}
		p.readings++
		if truth := fake.ahead(at); !r.Certain.Contains(truth) {
			p.excluded++
			t.Errorf("%.3f s: %.0f ns ahead, not in %+v, offset %.0f", float64(at-fake.start)/1e9, truth, r.Certain, r.Offset)
		}
	}
	reading, err := tracker.Between(from, from+length)
	if err != nil {
		return
	}
	if reading.Stepped {
		p.stepped++
		return
	}
	for d, s := range seen {
		exact, err := lda.Estimate(s.trueUp, s.trueDown)
		if err != nil {
			continue
		}
		p.compare(t, d, s, reading, exact.Mean, float64(from-fake.start)/1e9)
	}
}

// compare corrects the far point's cells of one direction, and sees how far
// the mean is from what it is by clocks that agree.
func (p *livePass) compare(t *testing.T, d int, s *liveInterval, reading clock.Reading, exact, at float64) {
	measured, err := lda.Estimate(s.up, s.down)
	if err != nil {
		return
	}
	far := s.down
	if d == 1 {
		far = s.up
	}
	far.Correct(reading)
	corrected, err := lda.Estimate(s.up, s.down)
	if err != nil {
		t.Errorf("%.2f s, direction %d: %v", at, d, err)
		return
	}
	e := math.Abs(corrected.Mean - exact)
	if half := max(reading.Likely.High-reading.Offset, reading.Offset-reading.Likely.Low); e > half+1 {
		p.unlikely++
		t.Logf("%.2f s, direction %d: off by %.1f µs, likely by %.1f at most", at, d, e/1e3, half/1e3)
	}
	p.errors = append(p.errors, e)
	p.uncorrected = append(p.uncorrected, math.Abs(measured.Mean-exact))
}

func (p *livePass) report(t *testing.T) {
	quantile := func(all []float64, q float64) float64 {
		slices.Sort(all)
		return all[min(len(all)-1, int(q*float64(len(all))))] / 1e3
	}
	if len(p.errors) < p.intervals {
		t.Fatalf("%d corrected means of %d intervals, %d without an offset, %d with steps", len(p.errors), p.intervals, p.unknown, p.stepped)
	}
	t.Logf("%d intervals, %d without an offset, %d with a step; certain intervals excluded the truth %d times of %d; "+
		"corrected means off by %.2f µs (median), %.2f (95 %%), %.2f (most), %d of %d by more than is likely; uncorrected by %.0f µs (median)",
		p.intervals, p.unknown, p.stepped, p.excluded, p.readings,
		quantile(p.errors, 0.5), quantile(p.errors, 0.95), quantile(p.errors, 1), p.unlikely, len(p.errors), quantile(p.uncorrected, 0.5))
	if p.stepped+p.unknown < 3 {
		t.Errorf("%d steps noticed, want 3: two settings and a change of rate", p.stepped)
	}
	if m := quantile(p.errors, 0.5); m > 2 {
		t.Errorf("corrected means are off by %.2f µs (median), want 2", m)
	}
	if m := quantile(p.uncorrected, 0.5); m < 1000 {
		t.Errorf("uncorrected means are off by %.2f µs only: a bad comparison", m)
	}
}
