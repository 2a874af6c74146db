package rli_test

import (
	"errors"
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

func newInjector(t testing.TB, c rli.InjectorConfig) *rli.Injector {
	t.Helper()
	j, err := rli.NewInjector(c)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestInjectorByNumber and the next give packets 100 ns apart and list behind
// which of them a reference went out.
func TestInjectorByNumber(t *testing.T) {
	got := injections(t, rli.InjectorConfig{Every: 3, ReferenceBytes: 48}, []int64{0, 100, 200, 300, 400, 500, 600, 700})
	equal(t, got, []int64{0, 300, 600})
}

func TestInjectorByTime(t *testing.T) {
	got := injections(t, rli.InjectorConfig{Interval: 250, ReferenceBytes: 48}, []int64{0, 100, 200, 300, 400, 500, 600, 5000, 5100})
	equal(t, got, []int64{0, 300, 600, 5000})
}

func TestInjectorWhicheverFirst(t *testing.T) {
	c := rli.InjectorConfig{Every: 3, Interval: 250, ReferenceBytes: 48}
	got := injections(t, c, []int64{0, 10, 20, 30, 200, 290, 300, 310, 320})
	equal(t, got, []int64{0, 30, 290, 320})
}

func injections(t *testing.T, c rli.InjectorConfig, times []int64) []int64 {
	t.Helper()
	j := newInjector(t, c)
	var sent []int64
	for i, at := range times {
		p, ok := j.Packet(100+i, at)
		if !ok {
			continue
		}
		want := rli.ReferencePacket{Sequence: uint64(len(sent)), Sent: at, Behind: uint16(100 + i), Packets: uint32(i + 1)}
		if p != want {
			t.Errorf("reference %+v, want %+v", p, want)
		}
		sent = append(sent, at)
	}
	return sent
}

func equal(t *testing.T, got, want []int64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("references at %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("references at %v, want %v", got, want)
		}
	}
}

func TestInjectorTick(t *testing.T) {
	j := newInjector(t, rli.InjectorConfig{Interval: 1000, ReferenceBytes: 48})
	if _, ok := j.Tick(5); ok {
		t.Error("a reference before the first packet")
	}
	j.Packet(100, 10)
	if _, ok := j.Tick(1009); ok {
		t.Error("a reference before the interval was over")
	}
	if p, ok := j.Tick(1010); !ok || p != (rli.ReferencePacket{Sequence: 1, Sent: 1010, Packets: 1}) {
		t.Errorf("%+v, %v after the interval", p, ok)
	}
	if _, ok := j.Packet(100, 1500); ok {
		t.Error("the interval did not begin anew")
	}
}

// TestInjectorLargePacket: a size that does not fit the field is not told.
func TestInjectorLargePacket(t *testing.T) {
	j := newInjector(t, rli.InjectorConfig{Every: 1, ReferenceBytes: 48})
	if p, _ := j.Packet(math.MaxUint16, 0); p.Behind != math.MaxUint16 {
		t.Errorf("behind %d", p.Behind)
	}
	if p, _ := j.Packet(math.MaxUint16+1, 1); p.Behind != 0 {
		t.Errorf("behind %d, want none", p.Behind)
	}
}

// TestAlgorithm1 holds the adaptive injector to the paper's pseudocode, with
// its names.
func TestAlgorithm1(t *testing.T) {
	c := adaptive()
	a := c.Adaptive
	j := newInjector(t, c)
	src := source(t, "flows", 0.72, 9)
	var p queue.Packet
	lc := float64(linkRate) / 8e9 // bytes per ns
	uEst, cb, since := 0.0, 0.0, int64(0)
	left, references := 0, 0
	for i := range 200000 {
		src.Next(&p)
		cb += float64(p.Bytes)
		left--
		inject := i == 0 || left == 0
		if _, ok := j.Packet(int(p.Bytes), p.Time); ok != inject {
			t.Fatalf("packet %d: reference %v, want %v", i, ok, inject)
		}
		if !inject {
			continue
		}
		references++
		switch drp := float64(p.Time - since); {
		case i == 0:
			cb, since = 0, p.Time
		case drp > 0:
			uInstant := cb / drp / lc
			uEst = uInstant*a.Smoothing + uEst*(1-a.Smoothing)
			cb, since = 0, p.Time
		}
		uEff := min(max(uEst, a.MinUtilisation), a.MaxUtilisation)
		rEff := math.Sqrt(1-math.Pow((a.MinUtilisation-uEff)/(a.MaxUtilisation-a.MinUtilisation), 2))*(a.MaxRate-a.MinRate) + a.MinRate
		left = int(math.Round(1 / rEff))
		if math.Abs(j.Utilisation()-uEst) > 1e-9 {
			t.Fatalf("packet %d: utilisation %v, want %v", i, j.Utilisation(), uEst)
		}
	}
	if references < 1000 {
		t.Errorf("only %d references", references)
	}
}

// TestInjectionRate: with the paper's limits the injection rates of section
// V-A come out near its 10, 9, 4.8 and 0.6 %: the adaptation is steep, so near
// means within half and twice as many.
func TestInjectionRate(t *testing.T) {
	for _, test := range []struct{ utilisation, rate float64 }{{0.2, 0.1}, {0.55, 0.09}, {0.7, 0.048}, {0.88, 0.006}} {
		_, j := pass(t, queue.RLIConfig, adaptive(), 100000, source(t, "poisson", test.utilisation, 1), nil)
		if got := j.Overhead().Rate(); got < test.rate/2 || got > test.rate*2 {
			t.Errorf("utilisation %v: rate %.4f, want near %v", test.utilisation, got, test.rate)
		}
	}
}

func TestOverhead(t *testing.T) {
	j := newInjector(t, rli.InjectorConfig{Every: 2, ReferenceBytes: 50})
	if o := j.Overhead(); o.Rate() != 0 || o.Capacity(1e9) != 0 {
		t.Errorf("overhead of nothing: %+v", o)
	}
	for i := range 101 {
		j.Packet(1000, int64(i)*1000)
	}
	want := rli.Overhead{Packets: 101, Bytes: 101000, References: 51, ReferenceBytesSent: 2550, Elapsed: 100000}
	o := j.Overhead()
	if o != want {
		t.Fatalf("%+v, want %+v", o, want)
	}
	if got, want := o.Capacity(1e10), 2550*8/(100e-6*1e10); math.Abs(got-want) > 1e-12 {
		t.Errorf("capacity %v, want %v", got, want)
	}
}

func TestInjectorConfig(t *testing.T) {
	ok := rli.InjectorConfig{Every: 1, ReferenceBytes: 48}
	change := func(f func(*rli.InjectorConfig)) rli.InjectorConfig {
		c := adaptive()
		f(&c)
		return c
	}
	for _, c := range []rli.InjectorConfig{ok, adaptive(), {Interval: 1e15, ReferenceBytes: 65536}} {
		if _, err := rli.NewInjector(c); err != nil {
			t.Error(err)
		}
	}
	for i, c := range []rli.InjectorConfig{
		{},
		{ReferenceBytes: 48},
		{Every: -1, Interval: 1, ReferenceBytes: 48},
		{Every: 2e9, ReferenceBytes: 48},
		{Interval: -1, Every: 1, ReferenceBytes: 48},
		{Every: 1},
		{Every: 1, ReferenceBytes: 65537},
		change(func(c *rli.InjectorConfig) { c.Every = 1 }),
		change(func(c *rli.InjectorConfig) { c.Adaptive.Rate = 0 }),
		change(func(c *rli.InjectorConfig) { c.Adaptive.MinUtilisation = 0.9 }),
		change(func(c *rli.InjectorConfig) { c.Adaptive.MaxUtilisation = math.NaN() }),
		change(func(c *rli.InjectorConfig) { c.Adaptive.MinRate = 0 }),
		change(func(c *rli.InjectorConfig) { c.Adaptive.MaxRate = 2 }),
		change(func(c *rli.InjectorConfig) { c.Adaptive.Smoothing = 0 }),
	} {
		if _, err := rli.NewInjector(c); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("config %d: %v", i, err)
		}
	}
	if got := ok.MaxDistance(); got != 1 {
		t.Errorf("distance %d", got)
	}
	c := adaptive()
	if got := c.MaxDistance(); got != 300 {
		t.Errorf("distance %d of the paper's limits, want 300", got)
	}
}

// TestAdaptiveEdges: at and beyond the limits of utilisation the rates are the
// limits, also a reference for every packet.
func TestAdaptiveEdges(t *testing.T) {
	c := rli.InjectorConfig{ReferenceBytes: 64, Adaptive: rli.Adaptation{
		Rate: 8e9, MinUtilisation: 0.25, MaxUtilisation: 0.5, MinRate: 1.0 / 40, MaxRate: 1, Smoothing: 1,
	}}
	for _, of := range []struct {
		gap      int64 // ns between packets of 1,000 bytes, of 1 ns a byte
		distance int
	}{{1_000_000, 1}, {4000, 1}, {2000, 40}, {500, 40}} {
		j := newInjector(t, c)
		references, now := 0, int64(0)
		const packets = 4000
		for i := range packets {
			now += of.gap
			if _, ok := j.Packet(1000, now); ok && i >= packets/2 {
				references++
			}
		}
		if want := packets / 2 / of.distance; references != want {
			t.Errorf("utilisation %v: %d references for %d packets, want %d", j.Utilisation(), references, packets/2, want)
		}
	}
	if c.MaxDistance() != 40 {
		t.Errorf("distance %d at most, want 40", c.MaxDistance())
	}
}
