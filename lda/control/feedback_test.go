package control

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/session"
	"github.com/hoplag/hoplag/lda"
)

// Feedback tunes the sender; the receiver, which derives the same Config,
// keeps up, also when feedback is lost, late or comes twice.
func TestFeedback(t *testing.T) {
	tuner := lda.Tuner{Config: controlConfig(), Quantiles: true}
	tuner.Config.Banks[1].Shift = 9 // to be tuned away
	l := newLink(t, tuner, tuner, testSession)
	rng := rand.New(rand.NewPCG(2, 3))
	var late [][]byte
	var first []byte
	used := map[lda.Config]int{}
	for range 200 {
		seen := len(l.reports)
		l.run()
		for i := range l.reports[seen:] {
			r := &l.reports[seen+i]
			assertRight(t, r)
			used[r.Config]++
			data := l.receiver.AppendFeedback(nil, r)
			late = append(late, data)
			if first == nil {
				first = data
			}
		}
		for len(late) > 0 && rng.IntN(3) > 0 {
			i := rng.IntN(len(late))
			if err := l.sender.Feedback(late[i]); err != nil {
				t.Fatal(err)
			}
			if rng.IntN(3) > 0 {
				late = slices.Delete(late, i, i+1)
			}
		}
	}
	if len(l.reports) != 200 || len(used) < 2 {
		t.Errorf("%d reports with %d Configs, want 200 with 2 or more", len(l.reports), len(used))
	}
	other := newLink(t, tuner, tuner, testSession+1)
	for name, data := range map[string][]byte{
		"marker":          func() []byte { d, _ := other.sender.Start(nil); return d }(),
		"noise":           {1, 2, 3},
		"another session": first,
	} {
		want := estimate.ErrEncoding
		if name == "another session" {
			want = estimate.ErrMismatch
		}
		if err := other.sender.Feedback(data); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if _, err := l.receiver.Receive(first, nil); !errors.Is(err, estimate.ErrEncoding) {
		t.Errorf("feedback at a receiver: %v", err)
	}
	if d := l.receiver.AppendFeedback(nil, &Report{}); d != nil {
		t.Errorf("feedback on nothing: %x", d)
	}
}

// Feedback that is old is passed over.
func TestOldFeedback(t *testing.T) {
	for age := range 8 {
		tuner := lda.Tuner{Config: controlConfig()}
		tuner.Config.Banks[1].Shift = 9 // to be tuned away
		l := newLink(t, tuner, tuner, testSession)
		l.run()
		first := l.receiver.AppendFeedback(nil, &l.reports[0])
		for range age {
			l.run()
		}
		if err := l.sender.Feedback(first); err != nil {
			t.Fatal(err)
		}
		if tuned := l.sender.next != tuner.Config; tuned != (age < 4) {
			t.Errorf("%d intervals later feedback is used: %v", age, tuned)
		}
	}
}

// Feedback that was overtaken, or comes twice, is passed over.
func TestOvertakenFeedback(t *testing.T) {
	tuner := lda.Tuner{Config: controlConfig()}
	l := newLink(t, tuner, tuner, testSession)
	for range 3 {
		l.run()
	}
	for _, step := range []struct{ interval, lost, want uint64 }{{1, 10, 10}, {0, 100, 10}, {1, 100, 10}, {2, 100, 100}} {
		f := session.Frame{
			Kind: session.Feedback, Fingerprint: tuner.Config.Fingerprint(), Session: testSession, Interval: step.interval,
			Payload: binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, perInterval), step.lost),
		}
		if err := l.sender.Feedback(f.Append(nil, new(session.Key))); err != nil {
			t.Fatal(err)
		}
		if want := tuner.Next(perInterval, step.want); l.sender.next != want {
			t.Errorf("after feedback on interval %d: %+v, want %+v", step.interval, l.sender.next, want)
		}
	}
	if tuner.Next(perInterval, 10) == tuner.Next(perInterval, 100) {
		t.Error("the same Config for all losses, so the test tests nothing")
	}
}
