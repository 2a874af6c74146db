package control

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/session"
	"github.com/hoplag/hoplag/internal/wire"
	"github.com/hoplag/hoplag/lda"
)

// Whatever happens to the control packets of interval 2, it is reported once, with a result or the reason why
// not, and all others are right.
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
		errs   int   // frames that are rejected
	}{
		{name: "nothing"},
		{name: "start lost", tamper: only(session.Start, drop), want: ErrStart},
		{name: "end lost", tamper: only(session.End, drop), want: ErrEnd},
		{name: "part lost", tamper: only(session.Part, drop), want: ErrParts},
		{name: "start twice", tamper: only(session.Start, twice)},
		{name: "end twice", tamper: only(session.End, twice)},
		{name: "part twice", tamper: only(session.Part, twice)},
		{name: "start corrupt", tamper: only(session.Start, corrupt), want: ErrStart, errs: 1},
		{name: "end corrupt", tamper: only(session.End, corrupt), want: ErrEnd, errs: 1},
		{name: "part corrupt", tamper: only(session.Part, corrupt), want: ErrParts, errs: 1},
		{name: "part cut off", tamper: only(session.Part, truncate), want: ErrParts, errs: 1},
		{name: "start foreign", tamper: only(session.Start, foreign), want: ErrStart, errs: 1},
		{name: "part foreign", tamper: only(session.Part, foreign), want: ErrParts, errs: 1},
		{name: "start after end", tamper: hold(session.Start, func(f session.Frame) bool { return f.Kind == session.End }),
			want: ErrStart},
		{name: "end after next start", tamper: hold(session.End, func(f session.Frame) bool { return f.Kind == session.Start }),
			want: ErrEnd},
		{name: "first part last", tamper: hold(session.Part, func(f session.Frame) bool { return f.Part == f.Parts-1 })},
		{name: "part in the next interval", tamper: hold(session.Part, func(f session.Frame) bool { return f.Kind == session.Start })},
		{name: "part an interval late", tamper: hold(session.Part, func(f session.Frame) bool {
			return f.Kind == session.Part && f.Part == f.Parts-1 && f.Interval == 3
		}), want: ErrParts},
		{name: "parts before the end", tamper: func() func(uint64, session.Frame, []byte) [][]byte {
			var end []byte
			return func(interval uint64, f session.Frame, data []byte) [][]byte {
				switch {
				case interval != 2 || f.Kind == session.Start:
					return [][]byte{data}
				case f.Kind == session.End:
					end = data
					return nil
				case f.Part == f.Parts-1:
					return [][]byte{data, end}
				}
				return [][]byte{data}
			}
		}()},
		{name: "part without bytes", tamper: only(session.Part, func(f session.Frame, _ []byte) [][]byte {
			f.Payload = nil
			return [][]byte{f.Append(nil, new(session.Key))}
		}), want: ErrParts, errs: 1},
		{name: "part cut, checksums right", tamper: only(session.Part, func(f session.Frame, _ []byte) [][]byte {
			f.Payload = f.Payload[:len(f.Payload)-1]
			return [][]byte{f.Append(nil, new(session.Key))}
		}), want: estimate.ErrEncoding},
		{name: "noise", tamper: only(session.Start, func(_ session.Frame, d []byte) [][]byte { return [][]byte{nil, {1, 2, 3}, d} }), errs: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := plainLink(t)
			l.tamper = c.tamper
			const intervals = 6
			l.runs(intervals)
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
					if !errors.Is(r.Err, c.want) {
						t.Errorf("interval 2: %v, want %v", r.Err, c.want)
					}
					continue
				}
				assertRight(t, r)
			}
			if len(l.errs) != c.errs {
				t.Errorf("errors %v, want %d", l.errs, c.errs)
			}
		})
	}
}

// In frames of 1,500 bytes an interval takes less than half as much as its unpacked encoding, and loses
// nothing.
func TestPackedParts(t *testing.T) {
	for packets, most := range map[uint64]int{0: 1000, 1000: 14_000, 100_000: 30_000, 1_000_000: 36_000} {
		l := newLink(t, lda.DefaultConfig, lda.DefaultConfig, 1)
		l.sender.mtu, l.mtu = 1500, 1500
		start, _ := l.sender.Start(nil)
		l.deliver(start)
		for i := range packets {
			p, now := hashing.Word(1, i), int64(17e17+i*1e9/packets)
			l.sender.Update(p, now)
			l.receiver.Update(p, now+5_000_000)
		}
		size := l.end()
		for data := range l.sender.Parts() { // they may be sent again
			l.deliver(data)
		}
		if size > most || packets > 0 && size < 1000 {
			t.Errorf("%d packets take %d bytes, want up to %d", packets, size, most)
		}
		if r := l.reports; len(r) != 1 || packets > 0 && (r[0].Result.Mean != 5e6 || r[0].Result.N != packets) {
			t.Errorf("%d packets: %+v", packets, r)
		}
	}
}

// Mistakes are errors that name the package once. A sender whose Parts nobody took goes on with empty cells.
func TestTurns(t *testing.T) {
	l := plainLink(t)
	want := func(err, want error) {
		t.Helper()
		if !errors.Is(err, want) || strings.Count(err.Error(), "control: ") > 1 {
			t.Errorf("%v, want %v", err, want)
		}
	}
	_, err := l.sender.End(nil)
	want(err, ErrTurn)
	for range 3 {
		l.sender.Start(nil)
		l.sender.Update(hashing.Word(1, 1<<40), 5)
		_, err = l.sender.Start(nil)
		want(err, ErrTurn)
		l.sender.End(nil)
	}
	_, err = l.receiver.Receive([]byte{1}, nil)
	want(err, estimate.ErrEncoding)
	_, err = NewReceiver(lda.Config{})
	want(err, estimate.ErrConfig)
	for _, mtu := range []int{-1, 0, session.FrameSize} {
		_, err := NewSender(l.sender.config, 1, mtu)
		want(err, estimate.ErrConfig)
	}
	for mtu := session.FrameSize + 1; mtu < 600; mtu += 7 { // frames are no longer
		l := plainLink(t)
		l.sender.mtu, l.mtu = mtu, mtu
		l.run()
		l.assertAllRight(1)
	}
	l.run()
	l.assertAllRight(1)
}

// One goroutine updates both points while another sends and receives parts; run with the race detector.
func TestReadingDoesNotStopUpdating(t *testing.T) {
	l := plainLink(t)
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
		l.packets()
		late.Wait()
		end, _ := l.sender.End(nil)
		l.deliver(end)
		l.interval++
	}
	l.assertAllRight(19)
}

func FuzzReceive(f *testing.F) {
	config := controlConfig()
	s, err := NewSender(config, 1, testMTU)
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
		r, err := NewReceiver(config)
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

// Packets that overtake a Start count as lost, and the report says how many did.
func TestLateStart(t *testing.T) {
	l := plainLink(t)
	l.run()
	start, err := l.sender.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	l.packets() // before it
	l.deliver(start)
	l.packets()
	l.end()
	l.run()
	const outside = perInterval - perInterval/50
	if r := l.reports[1]; r.Err != nil || r.Outside != outside || r.Result.Lost != perInterval+perInterval/50 {
		t.Errorf("%v, %d lost, of which %d outside, want %d outside", r.Err, r.Result.Lost, r.Outside, outside)
	}
	for _, i := range []int{0, 2} {
		if assertRight(t, &l.reports[i]); l.reports[i].Outside != 0 {
			t.Errorf("report %d: %d outside", i, l.reports[i].Outside)
		}
	}
}
