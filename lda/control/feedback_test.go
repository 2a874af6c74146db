package control

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/session"
	"github.com/hoplag/hoplag/lda"
)

// Feedback tunes the sender; the receiver takes the Config from the first Start that comes and from
// every other one, and keeps up.
func TestFeedback(t *testing.T) {
	config := tunableConfig()
	l := newLink(t, config, config, testSession)
	used := map[lda.Config]bool{}
	for i := range 20 {
		if l.run(); i == 9 { // the receiver is started anew
			l.receiver, _ = NewReceiver(config)
		}
		r := &l.reports[i]
		used[r.Config] = true
		if err := l.sender.Feedback(l.receiver.AppendFeedback(nil, r)); err != nil {
			t.Fatal(err)
		}
	}
	if l.assertAllRight(20); len(used) < 2 {
		t.Errorf("one Config throughout: %+v", used)
	}
	first := l.receiver.AppendFeedback(nil, &l.reports[0])
	other := newLink(t, config, config, testSession+1)
	if err := other.sender.Feedback(first); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("feedback for another session: %v", err)
	}
	marker, _ := other.sender.Start(nil)
	if err := other.sender.Feedback(marker); !errors.Is(err, estimate.ErrEncoding) {
		t.Errorf("a marker as feedback: %v", err)
	}
	if _, err := l.receiver.Receive(first, nil); !errors.Is(err, estimate.ErrEncoding) {
		t.Errorf("feedback at a receiver: %v", err)
	}
	shifts := session.Frame{Kind: session.Start, Fingerprint: config.Fingerprint(), Session: testSession, Interval: 20,
		Payload: []byte{3, 1, 0, 0}}
	if _, err := l.receiver.Receive(shifts.Append(nil, new(session.Key)), nil); !errors.Is(err, estimate.ErrEncoding) {
		t.Errorf("shifts out of order: %v", err)
	}
	if d := l.receiver.AppendFeedback(nil, &Report{}); d != nil {
		t.Errorf("feedback on nothing: %x", d)
	}
}

// Feedback is used if it is on one of the last four intervals, on none before
// what was used already, and on packets that were sent.
func TestFeedbackInTurn(t *testing.T) {
	config := tunableConfig()
	l := newLink(t, config, config, testSession)
	l.runs(6)
	for _, step := range []struct {
		interval, sent, lost uint64
		tuned                uint64 // to this loss
		want                 error
	}{
		{0, perInterval, 100, 0, nil},                       // too old
		{3, perInterval, 10, 10, nil},                       // good
		{2, perInterval, 100, 10, nil},                      // overtaken
		{3, perInterval, 100, 10, nil},                      // again
		{4, perInterval + 1, 100, 10, estimate.ErrMismatch}, // more than were sent
		{4, 100, 101, 10, estimate.ErrMismatch},             // more than it says
		{6, perInterval, 100, 10, estimate.ErrMismatch},     // not sent yet
		{5, perInterval, 100, 100, nil},
	} {
		f := session.Frame{
			Kind: session.Feedback, Fingerprint: config.Fingerprint(), Session: testSession, Interval: step.interval,
			Payload: binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, step.sent), step.lost),
		}
		if err := l.sender.Feedback(f.Append(nil, new(session.Key))); !errors.Is(err, step.want) {
			t.Errorf("%+v: %v", step, err)
		}
		want := config.Tuned(perInterval, step.tuned)
		if step.tuned == 0 {
			want = config
		}
		if l.sender.next != want {
			t.Errorf("after feedback %+v: %+v, want %+v", step, l.sender.next, want)
		}
	}
	if config.Tuned(perInterval, 10) == config.Tuned(perInterval, 100) || config.Tuned(perInterval, 10) == config {
		t.Error("the same Config for all losses, so the test tests nothing")
	}
}
