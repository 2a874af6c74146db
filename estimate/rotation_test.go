package estimate_test

import (
	"encoding/json"
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

// tally is a synopsis that counts.
type tally struct{ n, resets int }

func (t *tally) Reset() { t.n, t.resets = 0, t.resets+1 }

func newTally(int) (*tally, error) { return new(tally), nil }

func TestRotationTakesTurns(t *testing.T) {
	r, err := estimate.NewRotation(newTally, 0)
	if err != nil {
		t.Fatal(err)
	}
	for interval := 1; interval <= 5; interval++ {
		for range interval {
			r.Active().n++
		}
		done, err := r.Rotate()
		if err != nil || done == r.Active() || done.n != interval || r.Active().n != 0 {
			t.Fatalf("interval %d: %+v handed out, %+v active, error %v", interval, done, r.Active(), err)
		}
		active := r.Active()
		if got, err := r.Rotate(); got != nil || !errors.Is(err, estimate.ErrBusy) || r.Active() != active {
			t.Errorf("rotating while the other is read: %v, %v", got, err)
		}
		if err := r.Release(done); err != nil {
			t.Error(err)
		}
	}
}

func TestRotationRefusesWhatIsNotOut(t *testing.T) {
	r, _ := estimate.NewRotation(newTally, 0)
	other, _ := estimate.NewRotation(newTally, 0)
	done, _ := r.Rotate()
	foreign, _ := other.Rotate()
	for name, s := range map[string]*tally{"foreign": foreign, "active": r.Active(), "nil": nil, "unknown": {n: 3}} {
		if s != nil {
			s.n = 7
		}
		if err := r.Release(s); !errors.Is(err, estimate.ErrRelease) {
			t.Errorf("releasing a synopsis that is %s: %v", name, err)
		}
		if s != nil && (s.n != 7 || s.resets != 0) {
			t.Errorf("a synopsis that is %s was emptied", name)
		}
	}
	if err := r.Release(done); err != nil {
		t.Fatal(err)
	}
	if err := r.Release(done); !errors.Is(err, estimate.ErrRelease) || done.resets != 1 {
		t.Errorf("releasing twice: %v, emptied %d times", err, done.resets)
	}
	if _, err := r.Rotate(); err != nil {
		t.Error(err)
	}
	if err := r.Release(done); !errors.Is(err, estimate.ErrRelease) || done.resets != 1 {
		t.Errorf("releasing what is active again: %v, emptied %d times", err, done.resets)
	}
}

// A Rotation that NewRotation did not make says so.
func TestZeroRotation(t *testing.T) {
	for name, use := range map[string]func(*estimate.Rotation[*tally]){
		"Active": func(r *estimate.Rotation[*tally]) { r.Active() }, "Rotate": func(r *estimate.Rotation[*tally]) { _, _ = r.Rotate() },
	} {
		func() {
			defer func() {
				if said := recover(); said != "estimate: the zero Rotation, which NewRotation did not make" {
					t.Errorf("%s of the zero value: %v", name, said)
				}
			}()
			use(new(estimate.Rotation[*tally]))
		}()
	}
}

func TestRotationPassesErrorsOn(t *testing.T) {
	fail := errors.New("no")
	calls := 0
	_, err := estimate.NewRotation(func(int) (*tally, error) {
		if calls++; calls == 2 {
			return nil, fail
		}
		return new(tally), nil
	}, 0)
	if !errors.Is(err, fail) {
		t.Error(err)
	}
}

// One goroutine counts while others read what it hands out; every count is in one interval. The race detector watches.
func TestRotationLosesNothing(t *testing.T) {
	r, _ := estimate.NewRotation(newTally, 0)
	finished := make(chan *tally)
	var readers sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for range 3 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for s := range finished {
				mu.Lock()
				total += s.n
				mu.Unlock()
				if err := r.Release(s); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	const packets = 20_000
	for i := range packets {
		r.Active().n++
		if i%7 == 0 {
			if done, err := r.Rotate(); err == nil {
				finished <- done
			} else if !errors.Is(err, estimate.ErrBusy) {
				t.Error(err)
			}
		}
	}
	close(finished)
	readers.Wait()
	if total += r.Active().n; total != packets {
		t.Errorf("%d of %d packets in all intervals", total, packets)
	}
}

func TestRotationAllocatesNothing(t *testing.T) {
	r, _ := estimate.NewRotation(newTally, 0)
	if n := testing.AllocsPerRun(100, func() {
		done, err := r.Rotate()
		if err == nil {
			err = r.Release(done)
		}
		if err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// JSON has no number for an infinite end.
func TestIntervalInJSON(t *testing.T) {
	want, got := estimate.Interval{Low: math.Inf(-1), High: 3, Confidence: 0.9}, estimate.Interval{Low: 7}
	data, err := json.Marshal(want)
	if text := `{"Low":null,"High":3,"Confidence":0.9}`; err != nil || string(data) != text {
		t.Errorf("%s, %v, want %s", data, err, text)
	}
	if err := json.Unmarshal(data, &got); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

// Whatever the text, what is accepted is encoded and decoded as the same, and what is refused changes nothing.
func FuzzIntervalJSON(f *testing.F) {
	for _, text := range []string{
		`{"Low":1.5,"High":null,"Confidence":0.98}`, `{}`, `null`, `[]`, `{"Low":"x"}`, `{"High":1e999}`, `{"Low":-0}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := estimate.Interval{Low: 7}
		got := before
		if err := got.UnmarshalJSON(data); err != nil {
			if !errors.Is(err, estimate.ErrEncoding) || got != before {
				t.Errorf("%q: %+v, %v", data, got, err)
			}
			return
		}
		again, err := json.Marshal(got)
		decoded := before
		if err != nil || decoded.UnmarshalJSON(again) != nil || decoded != got {
			t.Errorf("%q: %+v became %q, %+v, %v", data, got, again, decoded, err)
		}
	})
}
