package colate

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/internal/traffic"
)

// From two stores come the answers that an Accumulator gives, in whatever order
// the epochs were kept; a query of one flow reads what it needs of them.
func TestPath(t *testing.T) {
	all := traffic.Flows(11, 3000)
	w := world{config: cutAt(2e6), loss: 0.01}
	w.config.Counters = 50_000
	epochs, arrived := w.cut(t, all)
	list := traffic.Truths(arrived, 100)
	path := w.stored(t, epochs)
	q, _ := newQuery(path, 0, math.MaxInt64)
	for _, pair := range epochs { // stored epochs are folded
		for i := range pair {
			pair[i] = pair[i].folded(q.config.fold)
		}
	}
	w.config.fold = q.config.fold
	want := w.follow(t, epochs, recordsOf(list))
	got, coverage, err := path.EstimateAll(t.Context(), recordsOf(list), math.MinInt64, math.MaxInt64)
	if err != nil || len(coverage.Missing) > 0 || coverage.Start != 0 {
		t.Fatal(err, coverage)
	}
	for i := range list {
		r := want.answer(i, false)
		if (r.Err == nil) != (got[i].Err == nil) || r.Mean != got[i].Mean || r.MeanInterval(0.9) != got[i].MeanInterval(0.9) {
			t.Fatalf("flow %d: %+v, %v from stores; %+v, %v from memory", i, got[i].Delay, got[i].Err, r.Delay, r.Err)
		}
	}
	whole := coverage.Bytes
	_, coverage, err = path.Estimate(t.Context(), recordsOf(list)[0], math.MinInt64, math.MaxInt64)
	if err != nil || coverage.Bytes > whole {
		t.Errorf("%v; for one flow %d bytes are read, for all %d", err, coverage.Bytes, whole)
	}
	_, coverage, err = path.Estimate(t.Context(), recordsOf(list)[0], 4e6, 6e6-1)
	if !errors.Is(err, estimate.ErrNoSamples) || coverage.Epochs != 1 || coverage.Start != 4e6 || coverage.End != 6e6 {
		t.Errorf("a window of one epoch, and the record of all: %+v, %v", coverage, err)
	}
	if _, _, err := path.Estimate(t.Context(), recordsOf(list)[0], -10, -5); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("a window before all: %v", err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := path.EstimateAll(done, recordsOf(list), 0, math.MaxInt64); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, _, err := path.Decode(done, recordsOf(list), 0, math.MaxInt64, joint.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Two epochs of a point that was restarted, or one of a Period twice as long, are compared with the other's. If
// a point has nothing, or another Config, the answer says so, and does not take that for an absence of packets.
func TestUnevenEpochs(t *testing.T) {
	all := traffic.Flows(12, 3000)
	w := world{config: cutAt(2e6)}
	epochs, arrived := w.cut(t, all)
	list := traffic.Truths(arrived, 300)
	plain, _, err := w.stored(t, epochs).EstimateAll(t.Context(), recordsOf(list), 0, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, path Path, missing int) {
		t.Helper()
		answers, coverage, err := path.EstimateAll(t.Context(), recordsOf(list), 0, math.MaxInt64)
		if err != nil || len(coverage.Missing) != missing {
			t.Fatalf("%s: %v, %+v", name, err, coverage)
		}
		for i, f := range list {
			a := &answers[i]
			if a.Err != nil || plain[i].Err != nil {
				t.Errorf("%s: %v, %v", name, a.Err, plain[i].Err)
				continue
			}
			if interval := a.MeanInterval(0.999); !interval.Contains(f.Mean) {
				t.Errorf("%s: a mean of %v is not in %v", name, f.Mean, interval)
			}
		}
	}

	// change returns the path with other epochs at the second point.
	change := func(other func(start int64, r *Recorder) []*Recorder) Path {
		path := w.stored(t, epochs)
		path.Down = openStore(t, newMemory(), StoreOptions{})
		for start, pair := range epochs {
			for _, r := range other(start, pair[1]) {
				if err := path.Down.Append(r); err != nil {
					t.Fatal(err)
				}
			}
		}
		return path
	}

	halves, n := [2]*Recorder{}, 0
	for i := range halves {
		halves[i], _ = New(w.config)
	}
	for _, p := range all {
		if p.At/2e6 == 3 {
			halves[n%2].Update(p.Flow, p.Packet, p.At)
			n++
		}
	}
	check("restarted", change(func(start int64, r *Recorder) []*Recorder {
		if start == 3 {
			return halves[:]
		}
		return []*Recorder{r}
	}), 0)

	double := world{config: cutAt(4e6)}
	long, _ := double.cut(t, all)
	check("another Period", Path{Up: w.stored(t, epochs).Up, Down: double.stored(t, long).Down}, 0)

	other := w.config
	other.Identity++
	foreign, _ := New(other)
	foreign.Update(1, 2, 7*2e6)
	less := change(func(start int64, r *Recorder) []*Recorder {
		switch start {
		case 5:
			return nil
		case 7:
			return []*Recorder{foreign}
		}
		return []*Recorder{r}
	})
	_, coverage, err := less.EstimateAll(t.Context(), recordsOf(list), 0, math.MaxInt64)
	if err != nil || len(coverage.Missing) != 2 {
		t.Fatalf("%v, %+v", err, coverage.Missing)
	}
	slices.SortFunc(coverage.Missing, func(a, b Missing) int { return int(a.Start - b.Start) })
	if m := coverage.Missing; m[0].Start != 5*2e6 || m[1].Start != 7*2e6 ||
		!errors.Is(m[0].Err, estimate.ErrNoSamples) || !errors.Is(m[1].Err, estimate.ErrMismatch) {
		t.Errorf("missing: %+v", m)
	}
	check("two epochs missing", less, 2)
}

// An epoch that one point lost is not taken for one without packets. Without this 26 of 40 intervals hold. Nor do
// packets that came in it count as slow.
func TestLostEpoch(t *testing.T) {
	for point := range 2 {
		w, s := world{config: cutAt(1e9)}, score{}
		w.config.Counters, w.config.Shift = 4096, 8
		wait := func(_, second uint64) float64 { return 2e6 + 38e6*float64(second%5/2%2) }
		epochs, arrived := w.cut(t, inSpells(40, 2000, wait)(rand.New(rand.NewPCG(1, 4))))
		epochs[7][point].Reset()
		list, path := traffic.Truths(arrived, 1), w.stored(t, epochs)
		flows := recordsOf(list)
		for i := range flows { // which the lost epoch is within
			flows[i].Doubt = flows[i].Packets / 10
		}
		answers, coverage, err := path.EstimateAll(t.Context(), flows, 0, 1e12)
		d, _, other := path.Decode(t.Context(), recordsOf(list), 0, 1e12, joint.Options{})
		if err != nil || other != nil || len(coverage.Missing) == 0 {
			t.Fatalf("%v, %v, %+v", err, other, coverage)
		}
		for i, f := range list {
			if answers[i].Err == nil {
				s.add(answers[i].MeanInterval(0.95), f.Mean)
			}
			if in := d.MeanInterval(i, 0.95); d.Usable[i] > 0 && in.High-in.Low < f.Mean {
				s.add(in, f.Mean)
			}
		}
		s.want(t, []string{"first", "second"}[point]+" point", 38)
	}
}
