package control

import (
	"bytes"
	"errors"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/session"
	"github.com/hoplag/hoplag/lda"
)

// All classes share markers and parts, and each is right by itself; a part that
// is lost costs the classes in it some cells.
func TestClassControl(t *testing.T) {
	const classes, intervals = 5, 6
	c := controlConfig()
	s, err := NewClassSender(c, classes, 1, 300)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewClassReceiver(c, classes)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetKey(testKey); err != nil {
		t.Fatal(err)
	}
	r.SetKey(testKey)
	var reports []ClassReport
	receive := func(data []byte, err error) {
		t.Helper()
		if err == nil {
			reports, err = r.Receive(bytes.Clone(data), reports)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ids := uint64(0)
	for interval := range intervals {
		receive(s.Start(nil))
		if interval == 4 {
			r.ClockSet()
		}
		for class := range classes {
			for range 100 + class {
				ids++
				p, now := hashing.Word(1, ids), int64(ids*1000)
				s.Update(class, p, now)
				r.Update(class, p, now+int64(1000*(class+1)+interval))
			}
		}
		receive(s.End(nil))
		parts := 0
		for data := range s.Parts() {
			if parts++; interval == 2 && parts == 2 {
				continue
			}
			receive(data, nil)
		}
	}
	reports = r.Flush(reports)
	if len(reports) != intervals {
		t.Fatalf("%d reports, want %d", len(reports), intervals)
	}
	for i, report := range reports {
		if i == 4 {
			if !errors.Is(report.Err, ErrStep) {
				t.Errorf("interval 4: %v, want ErrStep", report.Err)
			}
			continue
		}
		if report.Err != nil || len(report.Classes) != classes {
			t.Fatalf("%+v", report)
		}
		came := 0.0
		for class, got := range report.Classes {
			came += got.Came / classes
			if want := float64(1000*(class+1) + i); got.Err != nil || got.Result.Mean != want || got.Came == 1 && got.Result.N != uint64(100+class) {
				t.Errorf("interval %d, class %d: %+v, want mean %v", i, class, got, want)
			}
		}
		if (came < 1) != (i == 2) {
			t.Errorf("interval %d: %v of the cells came", i, came)
		}
	}
	if _, err := NewClassSender(lda.Config{}, 2, 1, 300); !errors.Is(err, estimate.ErrConfig) {
		t.Error(err)
	}
	if _, err := NewClassSender(c, 2, 1, session.FrameSize); !errors.Is(err, estimate.ErrConfig) {
		t.Error(err)
	}
	if _, err := NewClassReceiver(c, 0); !errors.Is(err, estimate.ErrConfig) {
		t.Error(err)
	}
	other, _ := NewClassSender(c, classes+1, 9, 300)
	start, _ := other.Start(nil)
	r2, _ := NewClassReceiver(c, classes)
	if _, err := r2.Receive(start, nil); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("another number of classes: %v", err)
	}
}
