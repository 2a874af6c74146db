package control

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/compiler"
	"github.com/hoplag/hoplag/internal/session"
	"github.com/hoplag/hoplag/internal/wire"
	"github.com/hoplag/hoplag/lda"
)

// Whatever becomes of the control packets of interval 2, it is reported once,
// usable or with the reason, and all others are right.
func TestControlPackets(t *testing.T) {
	hold := func(k session.Kind, release func(f session.Frame) bool) func(uint64, session.Frame, []byte) [][]byte {
		var held [][]byte
		return func(interval uint64, f session.Frame, data []byte) [][]byte {
			if interval == 2 && f.Kind == k && f.Part == 0 {
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
		tamper func(uint64, session.Frame, []byte) [][]byte
		want   error // of interval 2; nil: usable
		cause  error // that the report also wraps
		partly bool  // only some cells came
		count  Counters
	}{
		{name: "nothing"},
		{name: "start lost", tamper: only(session.Start, drop), want: ErrStart, count: Counters{Stale: 6}},
		{name: "end lost", tamper: only(session.End, drop), want: ErrEnd},
		{name: "part lost", tamper: only(session.Part, drop), partly: true},
		{name: "start twice", tamper: only(session.Start, twice), count: Counters{Duplicate: 1}},
		{name: "end twice", tamper: only(session.End, twice), count: Counters{Duplicate: 1}},
		{name: "part twice", tamper: only(session.Part, twice), count: Counters{Duplicate: 1}},
		{name: "start corrupt", tamper: only(session.Start, corrupt), want: ErrStart, cause: estimate.ErrEncoding,
			count: Counters{Corrupt: 1, Stale: 6}},
		{name: "end corrupt", tamper: only(session.End, corrupt), want: ErrEnd, cause: estimate.ErrEncoding, count: Counters{Corrupt: 1}},
		{name: "part corrupt", tamper: only(session.Part, corrupt), partly: true, count: Counters{Corrupt: 1}},
		{name: "part cut off", tamper: only(session.Part, truncate), partly: true, count: Counters{Corrupt: 1}},
		{name: "start foreign", tamper: only(session.Start, foreign), want: ErrStart, cause: estimate.ErrMismatch,
			count: Counters{Foreign: 1, Stale: 6}},
		{name: "part foreign", tamper: only(session.Part, foreign), partly: true, count: Counters{Foreign: 1}},
		{name: "start after end", tamper: hold(session.Start, func(f session.Frame) bool { return f.Kind == session.End }),
			want: ErrStart, count: Counters{Stale: 7}},
		{name: "end after next start", tamper: hold(session.End, func(f session.Frame) bool { return f.Kind == session.Start }),
			want: ErrEnd, count: Counters{Stale: 1}},
		{name: "first part last", tamper: hold(session.Part, func(f session.Frame) bool { return f.Part == 5 })},
		{name: "part in the next interval", tamper: hold(session.Part, func(f session.Frame) bool { return f.Kind == session.Start })},
		{name: "part an interval late", tamper: hold(session.Part, func(f session.Frame) bool {
			return f.Kind == session.Part && f.Part == 5 && f.Interval == 3
		}), partly: true, count: Counters{Stale: 1}},
		{name: "parts before the end", tamper: func() func(uint64, session.Frame, []byte) [][]byte {
			var end []byte
			return func(interval uint64, f session.Frame, data []byte) [][]byte {
				switch {
				case interval != 2 || f.Kind == session.Start:
					return [][]byte{data}
				case f.Kind == session.End:
					end = data
					return nil
				case f.Part == 5:
					return [][]byte{data, end}
				}
				return [][]byte{data}
			}
		}()},
		{name: "part of another size", tamper: only(session.Part, func(f session.Frame, _ []byte) [][]byte {
			f.Payload = f.Payload[1:]
			return [][]byte{f.Append(nil, new(session.Key))}
		}), partly: true, count: Counters{Corrupt: 1}},
		{name: "synopsis altered, checksums right", tamper: only(session.Part, func(f session.Frame, _ []byte) [][]byte {
			f.Payload = bytes.Clone(f.Payload)
			f.Payload[40]++
			return [][]byte{f.Append(nil, new(session.Key))}
		}), want: estimate.ErrEncoding},
		{name: "noise", tamper: only(session.Start, func(_ session.Frame, d []byte) [][]byte { return [][]byte{nil, {1, 2, 3}, d} }),
			count: Counters{Corrupt: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tuner := lda.Tuner{Config: controlConfig()}
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
				if i == 2 && c.partly {
					if want := float64(delayOf(2)); r.Err != nil || r.Result.Mean != want || r.Result.StdDev != 0 || r.Came < 0.7 || r.Came > 0.9 ||
						!r.Result.MeanInterval(0.98).Contains(want) || r.Result.Spoken != perInterval*49/50 {
						t.Errorf("interval 2: %+v, want mean %v of most cells", r, want)
					}
					continue
				}
				if r.Came != 1 {
					t.Errorf("interval %d: %v of the cells came", i, r.Came)
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

// The paper's figure: 1,024 cells of 9 bytes take seven frames of 1,500 bytes.
func TestSevenFrames(t *testing.T) {
	s, err := NewSender(lda.Tuner{Config: lda.Config{Banks: [lda.MaxBanks]lda.Bank{{Rows: 1024}}, SumBits: 40}}, 1, 1500)
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
	s, err := NewSender(lda.Tuner{Config: controlConfig()}, 1, testMTU)
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
	for _, mtu := range []int{-1, 0, session.FrameSize} {
		if _, err := NewSender(lda.Tuner{Config: controlConfig()}, 1, mtu); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("mtu %d: %v, want ErrConfig", mtu, err)
		}
	}
	if _, err := NewReceiver(lda.Tuner{}); !errors.Is(err, estimate.ErrConfig) {
		t.Errorf("no Config: %v", err)
	}
}

// A sender whose synopses nobody took goes on with empty cells.
func TestPartsNotTaken(t *testing.T) {
	tuner := lda.Tuner{Config: controlConfig()}
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

// Frames are as long as the mtu allows, and no longer.
func TestFramesFitMTU(t *testing.T) {
	tuner := lda.Tuner{Config: controlConfig()}
	size := tuner.Config.EncodedSize()
	for mtu := session.FrameSize + 1; mtu <= session.FrameSize+size; mtu++ {
		s, err := NewSender(tuner, 1, mtu)
		if err != nil {
			t.Fatal(err)
		}
		s.Start(nil)
		s.End(nil)
		bytes, longest := 0, 0
		for data := range s.Parts() {
			var f session.Frame
			if err := f.Parse(data, new(session.Key)); err != nil {
				t.Fatal(err)
			}
			bytes += len(f.Payload)
			longest = max(longest, len(data))
		}
		if longest > mtu || bytes != size || size%(mtu-session.FrameSize) == 0 && longest != mtu {
			t.Errorf("mtu %d: frames up to %d, %d bytes of %d", mtu, longest, bytes, size)
		}
	}
	if _, err := NewSender(tuner, 1, session.FrameSize); !errors.Is(err, estimate.ErrConfig) {
		t.Errorf("no room for a byte: %v", err)
	}
}

// One goroutine updates both points while another sends and receives parts;
// run with the race detector.
func TestReadingDoesNotStopUpdating(t *testing.T) {
	tuner := lda.Tuner{Config: controlConfig()}
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
	tuner := lda.Tuner{Config: controlConfig()}
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

// sealed makes the checksum right, so that fuzzing gets past it.
func sealed(data []byte) []byte {
	if len(data) < 4 {
		return data
	}
	return wire.Seal(bytes.Clone(data[:len(data)-4]), 0)
}

// The way of a packet to its cell is not behind a call.
func TestUpdateIsInlined(t *testing.T) {
	if strconv.IntSize < 64 {
		t.Skip("a hash takes two registers, and its operations are calls")
	}
	compiler.Look(t).WantInlined(t, "(*Sender).Update", "(*Receiver).Update", "(*ClassSender).Update")
}
