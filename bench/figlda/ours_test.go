package figlda

import (
	"reflect"
	"testing"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
)

// A rank error is 0 if the packets with that very delay span the rank.
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

// A coverage that chance explains is no loss, and a lower one is.
func TestCoverageClaim(t *testing.T) {
	for _, c := range []struct {
		held int
		want experiment.Verdict
	}{{1000, experiment.AsGood}, {980, experiment.AsGood}, {970, experiment.Nearly}, {955, experiment.Loss}, {0, experiment.Loss}} {
		if got := judgeLowest(new(experiment.Run), "x", c.held, 1000).Verdict; got != c.want {
			t.Errorf("%d of 1000: %s, want %s", c.held, got, c.want)
		}
	}
}

// Showing a bank one packet in 2^shift is the same as giving it that shift.
func TestShareIsShift(t *testing.T) {
	p := NewTrace(quick, narrow).Lose(quick, 0.01, 0)
	const shift = 3
	c := lda.Config{Identity: 7, SumBits: sumBits, Banks: [lda.MaxBanks]lda.Bank{{Rows: rows, Shift: shift}}}
	a, errA := lda.Estimate(onBank(p, shareOf(shift), 7))
	b, errB := lda.Estimate(p.Measure(c, 1))
	if errA != nil || errB != nil || a.Delay != b.Delay || a.Usable != b.Usable || b.N == 0 {
		t.Errorf("%+v, %v; with a shift %+v, %v", a, errA, b, errB)
	}
}

// An experiment repeats bit for bit, and no other seed gives the same.
func TestRepeats(t *testing.T) {
	results := make([]experiment.Result, 3)
	for i, seed := range []uint64{1, 1, 2} {
		var err error
		if results[i], err = ldaQuantiles.Execute(t.Context(), &experiment.Run{Seed: seed, Quick: true}); err != nil {
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
