package figlda

import (
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/figreal"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/control"
)

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Control packets through a bad channel: no wrong estimate, every kind of
// failure seen, memory as it was after a tenth.
func TestSoak(t *testing.T) {
	const intervals, slack = 20_000, 64 << 10
	var early, late uint64
	s := soak(quick, rand.New(rand.NewPCG(11, 12)), intervals, soakConfig(28), func(done int, s *control.Sender, r *control.Receiver) {
		switch done {
		case intervals / 10:
			early = heap()
		case intervals:
			late = heap()
		}
		runtime.KeepAlive(s)
		runtime.KeepAlive(r)
	})
	if s.wrong > 0 {
		t.Errorf("%d wrong estimates", s.wrong)
	}
	// Two markers come in time, and one part of four at all, 84 times in a
	// hundred; 20 times some part is missing.
	if share := float64(s.usable) / intervals; share < 0.78 || share > 0.9 || s.partly < intervals/10 || s.partly > intervals/3 {
		t.Errorf("%d of %d intervals usable, %d by some of their parts", s.usable, intervals, s.partly)
	}
	for i, why := range reasons[:2] {
		if s.because[i] == 0 {
			t.Errorf("no interval with its %s", why.name)
		}
	}
	// An interval of which nothing was heard before the sender's restart is
	// one that nobody can report.
	if lost := intervals - s.reported; lost < 0 || lost > 2*intervals/soakRestart {
		t.Errorf("%d of %d intervals reported", s.reported, intervals)
	}
	if late > early+slack {
		t.Errorf("heap grew from %d to %d bytes", early, late)
	}
}

// Without a digest, packets that cross spoil cells: the channel does what it
// should, and such intervals must be refused where they show.
func TestSoakWithoutDigest(t *testing.T) {
	s := soak(quick, rand.New(rand.NewPCG(13, 14)), 20_000, soakConfig(0), func(int, *control.Sender, *control.Receiver) {})
	if s.crossed == 0 || s.wrong > s.crossed/2 {
		t.Errorf("%d refused that would have been wrong, %d not; want some, and few if any", s.crossed, s.wrong)
	}
}

func TestMemoryOf(t *testing.T) {
	type leaf struct{ _ [2]uint64 }
	type tree struct {
		leaves []leaf
		shared *leaf
		again  *leaf
		name   string
		any    any
	}
	one := &leaf{}
	v := &tree{leaves: make([]leaf, 3, 5), shared: one, again: one, name: "abc", any: &leaf{}}
	want := int(reflect.TypeFor[tree]().Size()) + 5*16 + 16 + 3 + 16
	if got := memoryOf(v); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
	v.leaves = append(v.leaves, make([]leaf, 100)...)
	if got := memoryOf(v); got < want+100*16-5*16 {
		t.Errorf("%d bytes: growth is not seen", got)
	}
}

// passing is a packet that came and left at these times.
func passing(id uint64, in, out int64) figreal.Passing {
	return figreal.Passing{ID: hashing.Word(1, id), In: in, Out: out}
}

// In two intervals of 100 ns packet 2 crosses, and what it leaves behind and
// where it comes is known.
func TestCut(t *testing.T) {
	packets := []figreal.Passing{passing(1, 0, 10), passing(2, 90, 120), passing(3, 100, 150), {ID: hashing.Word(1, 4), In: 130, Lost: true}}
	c := newCut(packets, 100)
	if len(c.exact) != 2 || c.exact[0].N() != 1 || c.exact[0].Mean() != 10 || c.exact[1].N() != 1 || c.exact[1].Mean() != 50 ||
		c.longest != 50 {
		t.Fatalf("%+v", c)
	}
	config := digestConfig
	results := c.measure(packets, config)
	if r := results[0]; r.Sent != 2 || r.Received != 1 || r.Mean != 10 {
		t.Errorf("first interval: %+v", r)
	}
	if r := results[1]; r.Sent != 2 || r.Received != 2 || r.N != 1 || r.Mean != 50 {
		t.Errorf("second interval: %+v", r)
	}
	// In a single cell the lost packet and the one too many cancel, but for
	// the digest; then the second interval's answer is wrong.
	config.Banks = [lda.MaxBanks]lda.Bank{{Rows: 1}}
	right := c.measure(packets, config)
	config.DigestBits = 0
	wrong := c.measure(packets, config)
	var with, without digested
	with.add(c, right, right)
	without.add(c, wrong, right)
	if with.wrong != 0 || with.answered != 0 || without.wrong != 1 || without.answered != 1 || without.squares.Mean() == 0 {
		t.Errorf("with a digest %+v, without %+v", with, without)
	}
}

// On real packets a digest finds cells that look sound, which spoil the mean.
// The path is from the project's root.
func TestDigestOnCapture(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	packets, err := figreal.Reordered()
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("needs a capture that is not part of the project: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := newCut(packets, 100e6)
	right := c.measure(packets, digestConfig)
	config := digestConfig
	config.DigestBits = 0
	none := c.measure(packets, config)
	var with, without digested
	with.add(c, right, right)
	without.add(c, none, right)
	if without.wrong == 0 || with.squares.Mean() >= without.squares.Mean() {
		t.Errorf("with a digest %+v, without %+v", with, without)
	}
}

// Without the capture there is a reason and no figure.
func TestDigestWithoutCapture(t *testing.T) {
	t.Chdir(t.TempDir())
	r, err := ldaDigest.Execute(t.Context(), &experiment.Run{Seed: 1, Quick: true})
	if err != nil || len(r.Notes) != 1 || len(r.Figures)+len(r.Claims) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A rank is off only by what no packet of that very delay accounts for.
func TestRankError(t *testing.T) {
	v := thinned{truth: estimate.NewEmpirical([]float64{0, 0, 1, 2})}
	for _, c := range []struct{ answer, p, want float64 }{
		{0, 0.25, 0}, {0, 0.5, 0}, {0, 0.75, -0.25}, {1, 0.75, 0}, {1, 0.25, 0.25}, {2, 0.5, 0.25}, {9, 1, 0}, {-1, 0.5, -0.5},
	} {
		if got := v.rankError(estimate.NewEmpirical([]float64{c.answer}), c.p); got != c.want {
			t.Errorf("p = %v, answer %v: off by %v, want %v", c.p, c.answer, got, c.want)
		}
	}
}

// A window's arrivals are its packets that were not lost.
func TestWindow(t *testing.T) {
	p := &Passage{Trace: &Trace{Delays: []int32{1, 2, 30, 50, 5}}, Lost: []bool{false, true, false, false, true}}
	if m := arrivals(window(p, 1, 4)); m.N() != 2 || m.Mean() != 40 {
		t.Errorf("%d packets arrived, mean %v; want 2, 40", m.N(), m.Mean())
	}
}

// What chance explains is no loss, and what it does not is one.
func TestCoverageClaim(t *testing.T) {
	for _, c := range []struct {
		held int
		want experiment.Verdict
	}{{1000, experiment.AsGood}, {980, experiment.AsGood}, {970, experiment.AsGood}, {955, experiment.Loss}, {0, experiment.Loss}} {
		if got := judgeLowest(new(experiment.Run), "x", c.held, 1000).Verdict; got != c.want {
			t.Errorf("%d of 1000: %s, want %s", c.held, got, c.want)
		}
	}
}

// The four tunings at a loss for which none of the powers of two fits.
func TestTunings(t *testing.T) {
	const lost = 5000
	want := []float64{512.0 / 5001, 1.0 / 16, 1024.0 / 5000, 1.0 / 8}
	for j, tune := range tunings {
		if got := tune.share(lost); math.Abs(got-want[j]) > 1e-12 {
			t.Errorf("%s: %v, want %v", tune.name, got, want[j])
		}
		if got := tune.share(0); got != 1 {
			t.Errorf("%s: %v without losses, want 1", tune.name, got)
		}
	}
}

// A bank that is shown a share is the bank with that shift.
func TestShareIsShift(t *testing.T) {
	for _, p := range passages(quick, narrow, []float64{0.01}) {
		const shift = 3
		c := lda.Config{Identity: 7, SumBits: sumBits, Banks: [lda.MaxBanks]lda.Bank{{Rows: rows, Shift: shift}}}
		a, errA := lda.Estimate(onBank(p, shareOf(shift), 7))
		b, errB := lda.Estimate(p.Measure(c, 1))
		if errA != nil || errB != nil || a.Delay != b.Delay || a.Usable != b.Usable || b.N == 0 {
			t.Errorf("%+v, %v; with a shift %+v, %v", a, errA, b, errB)
		}
	}
}

// An experiment repeats bit for bit, and no other seed gives the same.
func TestRepeats(t *testing.T) {
	results := make([]experiment.Result, 3)
	for i, seed := range []uint64{1, 1, 2} {
		var err error
		if results[i], err = ldaControl.Execute(t.Context(), &experiment.Run{Seed: seed, Quick: true}); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(results[0], results[1]) {
		t.Error("one seed, two results")
	}
	if reflect.DeepEqual(results[0], results[2]) {
		t.Error("two seeds, one result")
	}
}
