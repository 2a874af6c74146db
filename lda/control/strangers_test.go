package control

import (
	"errors"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/session"
)

// Packets that cross a marker spoil cells that lost as many as they gained.
// Without a digest the interval is refused; with one those cells are.
func TestCrossing(t *testing.T) {
	for _, digest := range []uint8{0, 16} {
		c := controlConfig()
		c.DigestBits = digest
		config := c
		l := newLink(t, config, config, 1)
		start, _ := l.sender.Start(nil)
		l.deliver(start)
		for i := range uint64(100) {
			l.receiver.Update(hashing.Word(9, i), 1) // of no interval
			if p := hashing.Word(1, i); i >= 50 {
				l.sender.Update(p, int64(i))
				l.receiver.Update(p, int64(i)+1000)
			} else {
				l.sender.Update(p, 1<<30)
			}
		}
		end, _ := l.sender.End(nil)
		l.deliver(end)
		for data := range l.sender.Parts() {
			l.deliver(data)
		}
		r := l.reports[0]
		switch {
		case digest == 0 && !errors.Is(r.Err, ErrCrossed):
			t.Errorf("no digest: %v, want ErrCrossed", r.Err)
		case digest > 0 && (r.Err != nil || r.Result.Usable == r.Result.Cells || r.Result.Mean != 1000):
			t.Errorf("digest: %v, %+v; want mean 1000 and cells replaced", r.Err, r.Result)
		}
	}
}

// A Receiver that is started anew takes what the Sender was tuned to from the
// first Start.
func TestReceiverStartsAnew(t *testing.T) {
	config := controlConfig()
	config.Banks[1].Shift = 9 // to be tuned away
	l := newLink(t, config, config, testSession)
	for range 3 {
		l.run()
		if err := l.sender.Feedback(l.receiver.AppendFeedback(nil, &l.reports[len(l.reports)-1])); err != nil {
			t.Fatal(err)
		}
	}
	if l.sender.next == config {
		t.Fatal("not tuned")
	}
	var err error
	if l.receiver, err = NewReceiver(config); err != nil {
		t.Fatal(err)
	}
	l.reports = nil
	l.runs(2)
	if l.assertAllRight(2); l.reports[0].Config != l.sender.next {
		t.Fatalf("%+v, tuned to %+v", l.reports, l.sender.next)
	}
	// Shifts that no Config has are refused.
	f := session.Frame{Kind: session.Start, Fingerprint: config.Fingerprint(), Session: testSession, Interval: 9,
		Payload: []byte{3, 1, 0, 0}}
	if _, err := l.receiver.Receive(f.Append(nil, new(session.Key)), nil); !errors.Is(err, estimate.ErrEncoding) {
		t.Errorf("shifts out of order: %v", err)
	}
}
