package perflow

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hoplag/hoplag/estimate"
)

var (
	small = Class{"1–9", 1, 9}
	large = Class{"≥ 10", 10, Unlimited}
	both  = Classes("1–9", 1, 9, "≥ 10", 10, Unlimited)
)

// scoredBy adds the same flows to a method that scores a missing answer as none.
func scoredBy(none float64) *Errors {
	e := New("method", none)
	e.Add(1, 11, 10)
	e.Add(9, math.NaN(), 10)
	e.Add(10, 20, 10)
	e.Add(5, 13, 10)
	e.Add(1000, 10, 10)
	return e
}

func TestClasses(t *testing.T) {
	if diff := cmp.Diff([]Class{small, large}, both); diff != "" {
		t.Error(diff)
	}
	e := scoredBy(Whole)
	if got := e.Of(small); len(got) != 3 || got[1] != 1 {
		t.Errorf("errors %v of small flows", got)
	}
	if got := scoredBy(LeftOut).Of(small); len(got) != 2 {
		t.Errorf("errors %v although one had no answer", got)
	}
	if got := scoredBy(Infinite).Quantile(small, 1); !math.IsInf(got, 1) {
		t.Errorf("largest error %v, want infinity for no answer", got)
	}
	if e.Missing(small) != 1 || e.Missing(large) != 0 || len(e.Answered(small)) != 2 {
		t.Errorf("%d and %d without an answer, want 1 and 0", e.Missing(small), e.Missing(large))
	}
	if got := e.Within(small, 0.31); math.Abs(got-2.0/3) > 1e-12 {
		t.Errorf("%v within 31 %%, want two of three", got)
	}
	if !math.IsNaN(e.Median(Class{"none", 20, 30})) {
		t.Error("a class without flows has a median")
	}
	if got := e.Cell(large, 0, 1); got != "0 % / 100 %" {
		t.Errorf("cell %q", got)
	}
}

// A coverage counts what holds, and its width is the median of all.
func TestCoverage(t *testing.T) {
	var c, other Coverage
	c.Add(estimate.Interval{Low: 8, High: 12}, 10)
	c.Add(estimate.Interval{Low: 11, High: 12}, 10)
	other.Add(estimate.Interval{Low: 0, High: 20}, 10)
	other.Count(false)
	c.Merge(&other)
	if c.Held != 2 || c.All != 4 || c.Share() != 0.5 || c.HalfWidth() != 0.2 {
		t.Errorf("%+v: share %v, half width %v", c, c.Share(), c.HalfWidth())
	}
}
