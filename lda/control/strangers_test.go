package control

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/session"
	"github.com/hoplag/hoplag/lda"
)

// A sender that starts again has a greater session; frames of the one before
// are stale. An interval of which nothing at all was heard is in a gap.
func TestSessionsAndGaps(t *testing.T) {
	tuner := lda.Tuner{Config: controlConfig()}
	l := newLink(t, tuner, tuner, 7)
	l.run()
	old, err := l.sender.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	l.deliver(old)
	if l.sender, err = NewSender(tuner, 8, testMTU); err != nil {
		t.Fatal(err)
	}
	l.interval = 0
	l.run()
	l.deliver(old)
	l.tamper = func(uint64, session.Frame, []byte) [][]byte { return nil }
	l.run()
	l.run()
	l.tamper = nil
	l.run()
	var got []string
	for _, r := range l.reports {
		got = append(got, fmt.Sprintf("%d: %d-%d %v", r.Session, r.First, r.Interval, r.Err))
	}
	want := []string{"7: 0-0 <nil>", "7: 1-1 control: end marker missing", "8: 0-0 <nil>", "8: 1-2 control: start marker missing",
		"8: 3-3 <nil>"}
	if !slices.Equal(got, want) {
		t.Errorf("reports %q, want %q", got, want)
	}
	if n := l.receiver.Counters().Stale; n != 1 {
		t.Errorf("%d stale, want 1", n)
	}
}

// A synopsis of another Config in frames that say otherwise is not believed, not
// even one of the same size.
func TestForeignSynopsis(t *testing.T) {
	tuner := lda.Tuner{Config: controlConfig()}
	seed := controlConfig()
	seed.Identity++
	shape := lda.Config{Identity: 1, Banks: [lda.MaxBanks]lda.Bank{{Rows: 32, Shift: 0}, {Rows: 32, Shift: 1}, {Rows: 4, Shift: 2},
		{Rows: 2, Shift: 3}}, SumBits: 48}
	for _, other := range []lda.Config{seed, shape} {
		record, _ := mustNew(other).MarshalBinary()
		if len(record) != tuner.Config.EncodedSize() {
			t.Fatalf("%d bytes, want %d", len(record), tuner.Config.EncodedSize())
		}
		l := newLink(t, tuner, tuner, 1)
		l.tamper = func(interval uint64, f session.Frame, data []byte) [][]byte {
			if interval == 1 && f.Kind == session.Part {
				from, to := session.PartBounds(len(record), int(f.Part), int(f.Parts))
				f.Payload = record[from:to]
				data = f.Append(nil, new(session.Key))
			}
			return [][]byte{data}
		}
		for range 3 {
			l.run()
		}
		for i, want := range []error{nil, estimate.ErrMismatch, nil} {
			if got := l.reports[i].Err; !errors.Is(got, want) {
				t.Errorf("interval %d: %v, want %v", i, got, want)
			}
		}
	}
}

// Both points with different seeds: every frame is refused, and nothing is
// estimated.
func TestForeignSender(t *testing.T) {
	other := controlConfig()
	other.Identity++
	l := newLink(t, lda.Tuner{Config: other}, lda.Tuner{Config: controlConfig()}, 1)
	l.run()
	if len(l.reports) != 0 || len(l.errs) != 8 {
		t.Errorf("reports %+v, errors %v; want none and 8", l.reports, l.errs)
	}
	for _, err := range l.errs {
		if !errors.Is(err, estimate.ErrMismatch) {
			t.Errorf("%v, want ErrMismatch", err)
		}
	}
}

// Packets that cross a marker spoil cells that lost as many as they gained.
// Without a digest the interval is refused; with one those cells are.
func TestCrossing(t *testing.T) {
	for _, digest := range []uint8{0, 16} {
		c := controlConfig()
		c.DigestBits = digest
		tuner := lda.Tuner{Config: c}
		l := newLink(t, tuner, tuner, 1)
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
		case digest > 0 && (r.Err != nil || r.Result.Replaced == 0 || r.Result.Mean != 1000):
			t.Errorf("digest: %v, %+v; want mean 1000 and cells replaced", r.Err, r.Result)
		}
	}
}

// A Receiver that is started anew does not know what the Sender was tuned to.
// It refuses that, for no more than 17 intervals, and then both are tuned again.
func TestReceiverStartsAnew(t *testing.T) {
	tuner := lda.Tuner{Config: controlConfig()}
	tuner.Config.Banks[1].Shift = 9 // to be tuned away
	l := newLink(t, tuner, tuner, testSession)
	tell := func() (usable int) {
		for i := range l.reports {
			assertRight(t, &l.reports[i])
			if err := l.sender.Feedback(l.receiver.AppendFeedback(nil, &l.reports[i])); err != nil {
				t.Fatal(err)
			}
		}
		defer func() { l.reports = l.reports[:0] }()
		return len(l.reports)
	}
	for range 3 {
		l.run()
		tell()
	}
	tuned := l.sender.next
	if tuned == tuner.Config {
		t.Fatal("not tuned")
	}
	var err error
	if l.receiver, err = NewReceiver(tuner); err != nil {
		t.Fatal(err)
	}
	usable := 0
	for range 17 + 2 {
		l.run()
		usable += tell()
	}
	if usable < 2 || l.sender.next != tuned {
		t.Errorf("%d intervals usable, tuned to %+v, before to %+v", usable, l.sender.next, tuned)
	}
}
