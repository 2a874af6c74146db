package clock

import (
	"errors"
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

func someHistory(t *testing.T) (*History, func(float64) float64) {
	t.Helper()
	w := newWorld(4, func(at float64) float64 {
		x := 5e7 - 3e-5*at
		if at > 52.3e9 {
			x += 2e6
		}
		return x
	}, [2]float64{5e5, 5e5}, 370, independent(hops(1)), independent(hops(1)))
	h, err := NewHistory(10e9)
	if err != nil {
		t.Fatal(err)
	}
	tracker := must(New(DefaultConfig))
	for range 90 {
		s := w.interval(1e9)
		if _, err := tracker.Add(s[there], s[back]); err != nil {
			t.Fatal(err)
		}
		r, err := tracker.Between(w.now-1e9, w.now)
		if err != nil {
			t.Fatal(err)
		}
		h.Add(r)
	}
	return h, w.theta
}

// Months later the clock of every epoch is known as it was then.
func TestHistory(t *testing.T) {
	h, theta := someHistory(t)
	if n := len(h.readings); n < 9 || n > 10 {
		t.Errorf("%d slots of 90 s", n)
	}
	for at := int64(epoch + 1e9); at < epoch+89e9; at += 7e8 {
		r, err := h.At(at)
		if err != nil {
			t.Fatal(err)
		}
		truth := theta(float64(at - epoch))
		if !r.Certain.Contains(truth) {
			t.Errorf("%v: %.0f not in %+v", at, truth, r.Certain)
		}
		if stepped := h.slot(at) == h.slot(epoch+52.3e9); stepped != r.Stepped {
			t.Errorf("%v: stepped %v", at, r.Stepped)
		}
		if e := math.Abs(r.Offset - truth); e > 5e3 && !r.Stepped {
			t.Errorf("%v: off by %.0f ns", at, e)
		}
	}
	if _, err := h.At(epoch + 200e9); !errors.Is(err, estimate.ErrNoSamples) {
		t.Errorf("after the history: %v", err)
	}
}

// A history without readings has no span. Otherwise the span consists of whole slots, also before 1970.
func TestHistorySpan(t *testing.T) {
	if _, err := NewHistory(0); !errors.Is(err, estimate.ErrConfig) {
		t.Errorf("slots of no length: %v", err)
	}
	h, err := NewHistory(100)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := h.Span(); ok {
		t.Error("an empty history has a span")
	}
	h.Add(Reading{Time: -250})
	h.Add(Reading{Time: 199})
	if start, end, ok := h.Span(); start != -300 || end != 200 || !ok {
		t.Errorf("%d to %d, %v", start, end, ok)
	}
}
