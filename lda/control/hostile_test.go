package control

import (
	"bytes"
	"errors"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/session"
)

var testKey = [16]byte{1, 2, 3}

// keyedLink returns a link whose points have a key.
func keyedLink(t *testing.T) *link {
	t.Helper()
	l := plainLink(t)
	l.parse = session.NewKey(testKey)
	if err := l.sender.SetKey(testKey); err != nil {
		t.Fatal(err)
	}
	l.receiver.SetKey(testKey)
	return l
}

// Frames with a tag are accepted; whatever is made up, altered or replayed is rejected and changes nothing.
func TestKeyKeepsStrangersOut(t *testing.T) {
	l := keyedLink(t)
	none, wrong := session.Key{}, session.NewKey([16]byte{9})
	var recorded [][]byte
	l.tamper = func(interval uint64, f session.Frame, data []byte) [][]byte {
		recorded = append(recorded, bytes.Clone(data))
		frames := [][]byte{data}
		for _, key := range []*session.Key{&none, &wrong} {
			forged := f
			forged.Interval += 1 << 62
			frames = append(frames, forged.Append(nil, key))
			forged.Interval, forged.Session = f.Interval, 1<<63
			frames = append(frames, forged.Append(nil, key))
		}
		// A frame of long ago, sent again.
		return append(frames, recorded[int(interval*7)%len(recorded)])
	}
	const intervals = 20
	l.runs(intervals)
	l.reports = l.receiver.Flush(l.reports)
	l.assertAllRight(intervals)
	if len(l.errs) != 4*len(recorded) {
		t.Errorf("%d rejected, want %d", len(l.errs), 4*len(recorded))
	}
	for _, err := range l.errs {
		if !errors.Is(err, ErrForged) {
			t.Errorf("%v, want ErrForged", err)
		}
	}
}

// Whoever holds the key can make up intervals: a sender with a later session, told of the same packets a
// millisecond sooner, is believed, and the true one no longer is. With another key it changes nothing.
func TestKeyMakesUpIntervals(t *testing.T) {
	for key, later := range map[[16]byte]int64{testKey: 1_000_000, {8}: 0} {
		l := keyedLink(t)
		l.run()
		forger, err := NewSender(controlConfig(), testSession+1, testMTU)
		if err != nil {
			t.Fatal(err)
		}
		if err := forger.SetKey(key); err != nil {
			t.Fatal(err)
		}
		start, _ := forger.Start(nil)
		give := func(data []byte) { l.reports, _ = l.receiver.Receive(data, l.reports) }
		give(start)
		for i := range uint64(perInterval) {
			p, now := hashing.Word(20, i), int64(i)*100
			forger.Update(p, now-later)
			l.receiver.Update(p, now+1000)
		}
		end, _ := forger.End(nil)
		give(end)
		for part := range forger.Parts() {
			give(part)
		}
		l.run()
		believed := 0
		for _, r := range l.reports {
			if r.Session == testSession+1 && r.Err == nil && r.Result.Mean == float64(1000+later) {
				believed++
			}
		}
		if later > 0 && believed != 1 || later == 0 && (believed != 0 || len(l.reports) != 2) {
			t.Errorf("later by %d: %d believed, %+v", later, believed, l.reports)
		}
	}
}

// A receiver without the key accepts no tagged frames, because it cannot check them.
func TestKeyOnOneSide(t *testing.T) {
	l := keyedLink(t)
	l.receiver = plainLink(t).receiver
	l.run()
	if len(l.errs) < 5 || len(l.reports) != 0 || !errors.Is(l.errs[0], estimate.ErrMismatch) {
		t.Errorf("no key: %v, reports %+v", l.errs, l.reports)
	}
	l.sender.mtu = session.FrameSize + 1
	if err := l.sender.SetKey(testKey); !errors.Is(err, estimate.ErrConfig) {
		t.Errorf("no room for a tag: %v", err)
	}
}

// Without a key, no forged frame silences a receiver for longer than three markers take: all but a few
// intervals around it are right.
func TestOneFrameSilencesNobody(t *testing.T) {
	for name, forge := range map[string]func(f *session.Frame){
		"far ahead":         func(f *session.Frame) { f.Interval = 1 << 63 },
		"some ahead":        func(f *session.Frame) { f.Interval += 7 },
		"greatest session":  func(f *session.Frame) { f.Session = 1<<64 - 1 },
		"least session":     func(f *session.Frame) { f.Session = 0 },
		"another and ahead": func(f *session.Frame) { f.Session, f.Interval = 1<<64-1, 1<<63 },
	} {
		for _, kind := range []session.Kind{session.Start, session.End} {
			l := plainLink(t)
			l.tamper = func(interval uint64, f session.Frame, data []byte) [][]byte {
				if interval == 5 && f.Kind == kind {
					forge(&f)
					return [][]byte{data, f.Append(nil, new(session.Key))}
				}
				return [][]byte{data}
			}
			const intervals = 15
			l.runs(intervals)
			good := map[uint64]bool{}
			for i := range l.reports {
				r := &l.reports[i]
				for known := range good {
					if r.Session == testSession && r.First <= known && known <= r.Interval {
						t.Errorf("%s, kind %d: interval %d is reported again: %v", name, kind, known, r.Err)
					}
				}
				if r.Err == nil {
					assertRight(t, r)
					good[r.Interval] = true
				}
			}
			if len(good) < intervals-4 || !good[intervals-1] {
				t.Errorf("%s, kind %d: intervals %v are good", name, kind, good)
			}
		}
	}
}

// A restarted sender is followed, whatever its session's number, and every interval is reported from the first
// marker that was followed. With a key, a sender whose number is not greater is not followed, and the reports
// say so.
func TestRestartWithAnyNumber(t *testing.T) {
	for _, number := range []uint64{testSession + 1, testSession, testSession - 1, 0} {
		for _, withKey := range []bool{false, true} {
			l := plainLink(t)
			if withKey {
				l = keyedLink(t)
			}
			const life = 20
			l.runs(life)
			before := len(l.reports)
			l.restart(number, withKey)
			next, good, passed := uint64(0), 0, 0
			if number <= testSession {
				next = 1 // the Start of interval 1 is the third marker
			}
			l.runs(10)
			for _, r := range l.reports[before:] {
				switch {
				case errors.Is(r.Err, ErrPassed):
					passed++
					continue
				case r.First != next:
					t.Errorf("session %d: report on %d to %d of session %d, want from %d", number, r.First, r.Interval, r.Session, next)
				}
				next = r.Interval + 1
				if r.Err == nil {
					assertRight(t, &r)
					good++
				}
			}
			refused := withKey && number <= testSession
			want := map[bool]int{true: 10, false: 8}[number > testSession]
			if refused {
				want = 0
			}
			if good < want || (passed > 0) != refused {
				t.Errorf("session %d, key %v: %d good of 10, want %d; %d times passed", number, withKey, good, want, passed)
			}
		}
	}
}

// After an outage of more intervals than a marker may be ahead, all of them are reported. A Receiver that has seen
// no marker misses none, even of session 0.
func TestOutageIsReported(t *testing.T) {
	for _, number := range []uint64{testSession, 0} {
		for before, next := range map[int]uint64{3: 0, 0: 20} {
			l := newLink(t, controlConfig(), controlConfig(), number)
			l.runs(before)
			l.tamper = func(uint64, session.Frame, []byte) [][]byte { return nil }
			l.runs(20)
			l.tamper = nil
			l.runs(8)
			for _, r := range l.reports {
				if r.First != next {
					t.Errorf("session %d, %d before: report on %d to %d, want from %d", number, before, r.First, r.Interval, next)
				}
				next = r.Interval + 1
			}
			if next != uint64(before+28) || l.reports[len(l.reports)-1].Err != nil {
				t.Errorf("session %d, %d before: the reports end before %d", number, before, next)
			}
		}
	}
}

// restart starts the sender anew.
func (l *link) restart(number uint64, withKey bool) {
	var err error
	if l.sender, err = NewSender(controlConfig(), number, testMTU); err == nil && withKey {
		err = l.sender.SetKey(testKey)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	l.interval = 0
}

// Parts that strangers make up, a new one each time, take no more memory than an encoding.
func TestMemoryIsBounded(t *testing.T) {
	l := plainLink(t)
	for i := range uint16(50) {
		start, _ := l.sender.Start(nil)
		l.deliver(start)
		f := session.Frame{Kind: session.Part, Fingerprint: 1, Session: testSession, Interval: uint64(i), Part: i, Parts: 50}
		f.Payload = make([]byte, l.receiver.most)
		if l.reports, _ = l.receiver.Receive(f.Append(nil, new(session.Key)), l.reports); cap(l.receiver.open.data) < l.receiver.most {
			t.Fatal("not taken")
		}
		end, _ := l.sender.End(nil)
		l.deliver(end)
	}
	if n := cap(l.receiver.open.data) + cap(l.receiver.waiting.data); n > 3*l.receiver.most {
		t.Errorf("%d bytes, want 2 times %d and room to grow", n, l.receiver.most)
	}
}

// If a point is told that its clock was set, that interval is refused, and no other.
func TestClockSet(t *testing.T) {
	for side, set := range map[string]func(l *link){
		"upstream":   func(l *link) { l.sender.ClockSet() },
		"downstream": func(l *link) { l.receiver.ClockSet() },
	} {
		l := plainLink(t)
		for i := range 6 {
			l.afterStart = nil
			if i == 2 {
				l.afterStart = func() { set(l) }
			}
			l.run()
			set(l) // between intervals it spoils nothing
		}
		for i := range l.reports {
			if i != 2 {
				assertRight(t, &l.reports[i])
			} else if !errors.Is(l.reports[2].Err, ErrStep) {
				t.Errorf("%s: %v, want ErrStep", side, l.reports[2].Err)
			}
		}
	}
}
