package lda

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

const (
	testSession = 100
	testMTU     = 170 // six parts
	perInterval = 200 // packets
)

func controlConfig() Config {
	return Config{Seed: 1, Banks: [MaxBanks]Bank{{Rows: 32, Shift: 0}, {Rows: 32, Shift: 3}}, SumBits: 40, DigestBits: 16}
}

// link is a Sender and a Receiver, and what the test does to the frames
// between them.
type link struct {
	t        testing.TB
	sender   *Sender
	receiver *Receiver
	tamper   func(interval uint64, f frame, data []byte) [][]byte // what comes of a frame; nil: the frame
	reports  []Report
	errs     []error
	ids      uint64
	interval uint64
}

func newLink(t testing.TB, sender, receiver Tuner, session uint64) *link {
	t.Helper()
	s, err := NewSender(sender, session, testMTU)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReceiver(receiver)
	if err != nil {
		t.Fatal(err)
	}
	return &link{t: t, sender: s, receiver: r}
}

// deliver hands a frame to the receiver, or what becomes of it.
func (l *link) deliver(data []byte) {
	frames := [][]byte{data}
	var f frame
	if err := f.parse(data); err != nil {
		l.t.Fatal(err)
	}
	if l.tamper != nil {
		frames = l.tamper(l.interval, f, data)
	}
	for _, data := range frames {
		var err error
		if l.reports, err = l.receiver.Receive(data, l.reports); err != nil {
			l.errs = append(l.errs, err)
		}
	}
}

// delayOf is the delay of all packets of an interval, so that an estimate is
// right if it is exactly that.
func delayOf(interval uint64) int64 { return int64(1000 + 10*interval) }

// run passes an interval of packets, one in fifty lost.
func (l *link) run() {
	start, err := l.sender.Start(nil)
	if err != nil {
		l.t.Fatal(err)
	}
	l.deliver(start)
	for range perInterval {
		l.ids++
		p, now := hashing.Word(1, l.ids), int64(l.ids*1000)
		l.sender.Update(p, now)
		if l.ids%50 != 0 {
			l.receiver.Update(p, now+delayOf(l.interval))
		}
	}
	end, err := l.sender.End(nil)
	if err != nil {
		l.t.Fatal(err)
	}
	l.deliver(end)
	for data := range l.sender.Parts() {
		if len(data) > testMTU {
			l.t.Errorf("a part takes %d bytes, want at most %d", len(data), testMTU)
		}
		l.deliver(bytes.Clone(data))
	}
	l.interval++
}

// only tampers with one kind of frame of interval 2.
func only(k kind, change func(f frame, data []byte) [][]byte) func(uint64, frame, []byte) [][]byte {
	return func(interval uint64, f frame, data []byte) [][]byte {
		if interval == 2 && f.kind == k && f.part == 0 {
			return change(f, data)
		}
		return [][]byte{data}
	}
}

func drop(frame, []byte) [][]byte         { return nil }
func twice(_ frame, d []byte) [][]byte    { return [][]byte{d, d} }
func corrupt(_ frame, d []byte) [][]byte  { d = bytes.Clone(d); d[len(d)/2] ^= 4; return [][]byte{d} }
func truncate(_ frame, d []byte) [][]byte { return [][]byte{d[:len(d)-7]} }

// foreign makes the frame one of a Sender with another Config.
func foreign(f frame, _ []byte) [][]byte {
	f.fingerprint++
	return [][]byte{f.append(nil)}
}

// Whatever becomes of the control packets of interval 2, it is reported once,
// usable or with the reason, and all others are right.
func TestControlPackets(t *testing.T) {
	hold := func(k kind, release func(f frame) bool) func(uint64, frame, []byte) [][]byte {
		var held [][]byte
		return func(interval uint64, f frame, data []byte) [][]byte {
			if interval == 2 && f.kind == k && f.part == 0 {
				held = append(held, data)
				return nil
			}
			if len(held) > 0 && release(f) {
				all := append([][]byte{data}, held...)
				held = nil
				return all
			}
			return [][]byte{data}
		}
	}
	for _, c := range []struct {
		name   string
		tamper func(uint64, frame, []byte) [][]byte
		want   error // of interval 2; nil: usable
		cause  error // that the report also wraps
		count  Counters
	}{
		{name: "nothing"},
		{name: "start lost", tamper: only(startMarker, drop), want: ErrStart, count: Counters{Stale: 6}},
		{name: "end lost", tamper: only(endMarker, drop), want: ErrEnd},
		{name: "part lost", tamper: only(part, drop), want: ErrParts},
		{name: "start twice", tamper: only(startMarker, twice), count: Counters{Duplicate: 1}},
		{name: "end twice", tamper: only(endMarker, twice), count: Counters{Duplicate: 1}},
		{name: "part twice", tamper: only(part, twice), count: Counters{Duplicate: 1}},
		{name: "start corrupt", tamper: only(startMarker, corrupt), want: ErrStart, cause: estimate.ErrEncoding, count: Counters{Corrupt: 1, Stale: 6}},
		{name: "end corrupt", tamper: only(endMarker, corrupt), want: ErrEnd, cause: estimate.ErrEncoding, count: Counters{Corrupt: 1}},
		{name: "part corrupt", tamper: only(part, corrupt), want: ErrParts, cause: estimate.ErrEncoding, count: Counters{Corrupt: 1}},
		{name: "part cut off", tamper: only(part, truncate), want: ErrParts, cause: estimate.ErrEncoding, count: Counters{Corrupt: 1}},
		{name: "start foreign", tamper: only(startMarker, foreign), want: ErrStart, cause: estimate.ErrMismatch, count: Counters{Foreign: 1, Stale: 6}},
		{name: "part foreign", tamper: only(part, foreign), want: ErrParts, cause: estimate.ErrMismatch, count: Counters{Foreign: 1}},
		{name: "start after end", tamper: hold(startMarker, func(f frame) bool { return f.kind == endMarker }), want: ErrStart, count: Counters{Stale: 7}},
		{name: "end after next start", tamper: hold(endMarker, func(f frame) bool { return f.kind == startMarker }), want: ErrEnd, count: Counters{Stale: 1}},
		{name: "first part last", tamper: hold(part, func(f frame) bool { return f.part == 5 })},
		{name: "part in the next interval", tamper: hold(part, func(f frame) bool { return f.kind == startMarker })},
		{name: "part an interval late", tamper: hold(part, func(f frame) bool { return f.kind == part && f.part == 5 && f.interval == 3 }), want: ErrParts, count: Counters{Stale: 1}},
		{name: "parts before the end", tamper: func() func(uint64, frame, []byte) [][]byte {
			var end []byte
			return func(interval uint64, f frame, data []byte) [][]byte {
				switch {
				case interval != 2 || f.kind == startMarker:
					return [][]byte{data}
				case f.kind == endMarker:
					end = data
					return nil
				case f.part == 5:
					return [][]byte{data, end}
				}
				return [][]byte{data}
			}
		}()},
		{name: "part of another size", tamper: only(part, func(f frame, _ []byte) [][]byte { f.payload = f.payload[1:]; return [][]byte{f.append(nil)} }), want: ErrParts, cause: estimate.ErrEncoding, count: Counters{Corrupt: 1}},
		{name: "synopsis altered, checksums right", tamper: only(part, func(f frame, _ []byte) [][]byte {
			f.payload = bytes.Clone(f.payload)
			f.payload[40]++
			return [][]byte{f.append(nil)}
		}), want: estimate.ErrEncoding},
		{name: "noise", tamper: only(startMarker, func(_ frame, d []byte) [][]byte { return [][]byte{nil, {1, 2, 3}, d} }), count: Counters{Corrupt: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tuner := Tuner{Config: controlConfig()}
			l := newLink(t, tuner, tuner, testSession)
			l.tamper = c.tamper
			const intervals = 6
			for range intervals {
				l.run()
			}
			l.reports = l.receiver.Flush(l.reports)
			if len(l.reports) != intervals {
				t.Fatalf("%d reports, want one for each of %d intervals: %+v", len(l.reports), intervals, l.reports)
			}
			for i := range l.reports {
				r := &l.reports[i]
				if r.Interval != uint64(i) || r.First != r.Interval || r.Session != testSession {
					t.Errorf("report %d is on intervals %d to %d of session %d", i, r.First, r.Interval, r.Session)
				}
				if i == 2 && c.want != nil {
					if !errors.Is(r.Err, c.want) || c.cause != nil && !errors.Is(r.Err, c.cause) {
						t.Errorf("interval 2: %v, want %v, %v", r.Err, c.want, c.cause)
					}
					continue
				}
				assertRight(t, r)
			}
			if got := l.receiver.Counters(); got != c.count {
				t.Errorf("counters %+v, want %+v", got, c.count)
			}
			if n := int(c.count.Corrupt + c.count.Foreign); len(l.errs) != n {
				t.Errorf("errors %v, want %d", l.errs, n)
			}
		})
	}
}

func assertRight(t testing.TB, r *Report) {
	t.Helper()
	want := float64(delayOf(r.Interval))
	if r.Err != nil || r.Result.Mean != want || r.Result.StdDev != 0 || r.Result.Sent != perInterval || r.Result.Lost != perInterval/50 {
		t.Errorf("interval %d: %v, %+v; want mean %v exactly", r.Interval, r.Err, r.Result, want)
	}
}

// The paper's figure: 1,024 cells of 9 bytes take seven frames of 1,500 bytes.
func TestSevenFrames(t *testing.T) {
	s, err := NewSender(Tuner{Config: Config{Banks: [MaxBanks]Bank{{Rows: 1024}}, SumBits: 40}}, 1, 1500)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(slices.Collect(s.Parts())); n != 0 {
		t.Errorf("%d frames before any interval", n)
	}
	s.Start(nil)
	s.End(nil)
	for range 2 { // they may be sent again
		n := 0
		for data := range s.Parts() {
			if n++; len(data) > 1500 {
				t.Errorf("frame of %d bytes", len(data))
			}
		}
		if n != 7 {
			t.Errorf("%d frames, want 7", n)
		}
	}
}

func TestTurns(t *testing.T) {
	s, err := NewSender(Tuner{Config: controlConfig()}, 1, testMTU)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.End(nil); !errors.Is(err, ErrTurn) {
		t.Errorf("End before Start: %v", err)
	}
	s.Start(nil)
	if _, err := s.Start(nil); !errors.Is(err, ErrTurn) {
		t.Errorf("Start twice: %v", err)
	}
	for _, mtu := range []int{-1, 0, frameSize} {
		if _, err := NewSender(Tuner{Config: controlConfig()}, 1, mtu); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("mtu %d: %v, want ErrConfig", mtu, err)
		}
	}
	if _, err := NewReceiver(Tuner{}); !errors.Is(err, estimate.ErrConfig) {
		t.Errorf("no Config: %v", err)
	}
}

// A sender whose synopses nobody took goes on with empty cells.
func TestPartsNotTaken(t *testing.T) {
	tuner := Tuner{Config: controlConfig()}
	l := newLink(t, tuner, tuner, 1)
	for range 3 {
		l.sender.Start(nil)
		l.sender.Update(hashing.Word(1, 1<<40), 5)
		l.sender.End(nil)
	}
	l.interval = 3
	l.run()
	if len(l.reports) != 1 {
		t.Fatalf("%+v", l.reports)
	}
	assertRight(t, &l.reports[0])
}

// A sender that starts again has a greater session; frames of the one before
// are stale. An interval of which nothing at all was heard is in a gap.
func TestSessionsAndGaps(t *testing.T) {
	tuner := Tuner{Config: controlConfig()}
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
	l.tamper = func(uint64, frame, []byte) [][]byte { return nil }
	l.run()
	l.run()
	l.tamper = nil
	l.run()
	var got []string
	for _, r := range l.reports {
		got = append(got, fmt.Sprintf("%d: %d-%d %v", r.Session, r.First, r.Interval, r.Err))
	}
	want := []string{"7: 0-0 <nil>", "7: 1-1 lda: end marker missing", "8: 0-0 <nil>", "8: 1-2 lda: start marker missing", "8: 3-3 <nil>"}
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
	tuner := Tuner{Config: controlConfig()}
	seed := controlConfig()
	seed.Seed++
	shape := Config{Seed: 1, Banks: [MaxBanks]Bank{{32, 0}, {32, 1}, {4, 2}, {2, 3}}, SumBits: 48}
	for _, other := range []Config{seed, shape} {
		record, _ := mustNewFor(t, other).MarshalBinary()
		if len(record) != tuner.Config.EncodedSize() {
			t.Fatalf("%d bytes, want %d", len(record), tuner.Config.EncodedSize())
		}
		l := newLink(t, tuner, tuner, 1)
		l.tamper = func(interval uint64, f frame, data []byte) [][]byte {
			if interval == 1 && f.kind == part {
				from, to := partBounds(len(record), int(f.part), int(f.parts))
				f.payload = record[from:to]
				data = f.append(nil)
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
	other.Seed++
	l := newLink(t, Tuner{Config: other}, Tuner{Config: controlConfig()}, 1)
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
		tuner := Tuner{Config: c}
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

// Feedback tunes the sender; the receiver, which derives the same Config,
// keeps up, also when feedback is lost, late or comes twice.
func TestFeedback(t *testing.T) {
	tuner := Tuner{Config: controlConfig(), Quantiles: true}
	tuner.Config.Banks[1].Shift = 9 // to be tuned away
	l := newLink(t, tuner, tuner, testSession)
	rng := rand.New(rand.NewPCG(2, 3))
	var late [][]byte
	var first []byte
	used := map[Config]int{}
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

// Feedback that is so old that the Receiver may have forgotten what it leads to
// is passed over.
func TestOldFeedback(t *testing.T) {
	for age := range 8 {
		tuner := Tuner{Config: controlConfig()}
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
		if tuned := l.sender.next != tuner.Config; tuned != (age < maxFeedbackAge) {
			t.Errorf("%d intervals later feedback is used: %v", age, tuned)
		}
		l.run()
		if n := l.receiver.Counters().Foreign; n != 0 {
			t.Errorf("%d intervals later: %d control packets of a Config that was forgotten", age, n)
		}
	}
}

// Of the Configs that a Sender may use, the Receiver forgets the one that was
// neither derived nor used for the longest.
func TestConfigsAreForgottenInOrder(t *testing.T) {
	tuner := Tuner{Config: controlConfig()}
	r, err := NewReceiver(tuner)
	if err != nil {
		t.Fatal(err)
	}
	var all []Config
	for i := range uint8(8) {
		c := controlConfig()
		c.Banks[1].Shift = 5 + i
		all = append(all, c)
	}
	for _, c := range all[:7] {
		r.remember(c)
	}
	for _, used := range []int{0, 4} {
		if c, ok := r.recall(all[used].Fingerprint()); !ok || c != all[used] {
			t.Fatalf("Config %d is %+v, %v", used, c, ok)
		}
	}
	r.remember(all[7])
	for i, c := range all {
		if got, ok := r.recall(c.Fingerprint()); ok != (i != 1) || ok && got != c {
			t.Errorf("Config %d: %+v, %v", i, got, ok)
		}
	}
	if c, ok := r.recall(tuner.Config.Fingerprint()); !ok || c != tuner.Config {
		t.Error("the tuner's own Config is forgotten")
	}
}

// Feedback that was overtaken, or comes twice, is passed over.
func TestOvertakenFeedback(t *testing.T) {
	tuner := Tuner{Config: controlConfig()}
	l := newLink(t, tuner, tuner, testSession)
	for range 3 {
		l.run()
	}
	for _, step := range []struct{ interval, lost, want uint64 }{{1, 10, 10}, {0, 100, 10}, {1, 100, 10}, {2, 100, 100}} {
		f := frame{
			kind: feedback, fingerprint: tuner.Config.Fingerprint(), session: testSession, interval: step.interval,
			payload: appendFeedbackCounts(nil, perInterval, step.lost),
		}
		if err := l.sender.Feedback(f.append(nil)); err != nil {
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

// A Receiver that is started anew does not know what the Sender was tuned to.
// It refuses that, for no more than 17 intervals, and then both are tuned again.
func TestReceiverStartsAnew(t *testing.T) {
	tuner := Tuner{Config: controlConfig()}
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

// Frames are as long as the mtu allows, and no longer.
func TestFramesFitMTU(t *testing.T) {
	tuner := Tuner{Config: controlConfig()}
	size := tuner.Config.EncodedSize()
	for mtu := frameSize + 1; mtu <= frameSize+size; mtu++ {
		s, err := NewSender(tuner, 1, mtu)
		if err != nil {
			t.Fatal(err)
		}
		s.Start(nil)
		s.End(nil)
		bytes, longest := 0, 0
		for data := range s.Parts() {
			var f frame
			if err := f.parse(data); err != nil {
				t.Fatal(err)
			}
			bytes += len(f.payload)
			longest = max(longest, len(data))
		}
		if longest > mtu || bytes != size || size%(mtu-frameSize) == 0 && longest != mtu {
			t.Errorf("mtu %d: frames up to %d, %d bytes of %d", mtu, longest, bytes, size)
		}
	}
	if _, err := NewSender(tuner, 1, frameSize); !errors.Is(err, estimate.ErrConfig) {
		t.Errorf("no room for a byte: %v", err)
	}
}

// One goroutine updates both points while another sends and receives parts;
// run with the race detector.
func TestReadingDoesNotStopUpdating(t *testing.T) {
	tuner := Tuner{Config: controlConfig()}
	l := newLink(t, tuner, tuner, testSession)
	var parts sync.WaitGroup
	for range 20 {
		start, _ := l.sender.Start(nil)
		parts.Wait() // no two calls of Receive at once
		l.deliver(start)
		var late sync.WaitGroup
		if l.interval > 0 {
			late.Add(1)
			go func() {
				defer late.Done()
				for data := range l.sender.Parts() {
					l.reports, _ = l.receiver.Receive(data, l.reports)
				}
			}()
		}
		for range perInterval {
			l.ids++
			p, now := hashing.Word(1, l.ids), int64(l.ids*1000)
			l.sender.Update(p, now)
			if l.ids%50 != 0 {
				l.receiver.Update(p, now+delayOf(l.interval))
			}
		}
		late.Wait()
		end, _ := l.sender.End(nil)
		l.deliver(end)
		l.interval++
	}
	if len(l.reports) != 19 {
		t.Errorf("%d reports, want 19", len(l.reports))
	}
	for i := range l.reports {
		assertRight(t, &l.reports[i])
	}
}

func FuzzReceive(f *testing.F) {
	tuner := Tuner{Config: controlConfig()}
	s, err := NewSender(tuner, 1, testMTU)
	if err != nil {
		f.Fatal(err)
	}
	start, _ := s.Start(nil)
	end, _ := s.End(nil)
	f.Add(start, end)
	f.Add(start[:10], []byte{})
	for data := range s.Parts() {
		f.Add(end, bytes.Clone(data))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		r, err := NewReceiver(tuner)
		if err != nil {
			t.Fatal(err)
		}
		var reports []Report
		for _, data := range [][]byte{start, a, sealed(a), b, sealed(b), end} {
			reports, err = r.Receive(data, reports)
			if err != nil && !errors.Is(err, estimate.ErrEncoding) && !errors.Is(err, estimate.ErrMismatch) {
				t.Fatalf("%v", err)
			}
			r.Update(5, 6)
		}
		for i, report := range r.Flush(reports) {
			if report.First > report.Interval || report.Err == nil && report.Result.N == 0 || reflect.DeepEqual(report, Report{}) {
				t.Fatalf("report %d: %+v", i, report)
			}
		}
	})
}
