package control

import (
	"bytes"
	"testing"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/session"
	"github.com/hoplag/hoplag/lda"
)

const (
	testSession = 100
	testMTU     = 170 // three or four parts
	perInterval = 200 // packets
)

func controlConfig() lda.Config {
	return lda.Config{Identity: 1, Banks: [4]lda.Bank{{Rows: 32, Shift: 0}, {Rows: 32, Shift: 3}}, SumBits: 40, DigestBits: 16}
}

// link is a Sender and a Receiver, and what the test does to the frames between them.
type link struct {
	t        testing.TB
	sender   *Sender
	receiver *Receiver
	tamper   func(interval uint64, f session.Frame, data []byte) [][]byte // what comes of a frame; nil: the frame
	parse    session.Key                                                  // of the sender
	reports  []Report
	errs     []error
	ids      uint64
	interval uint64
	mtu      int

	afterStart func()
}

func newLink(t testing.TB, sender, receiver lda.Config, session uint64) *link {
	t.Helper()
	s, err := NewSender(sender, session, testMTU)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReceiver(receiver)
	if err != nil {
		t.Fatal(err)
	}
	return &link{t: t, sender: s, receiver: r, mtu: testMTU}
}

// plainLink returns a link of two points that are alike.
func plainLink(t testing.TB) *link {
	config := controlConfig()
	return newLink(t, config, config, testSession)
}

// deliver hands a session.Frame to the receiver, or what becomes of it.
func (l *link) deliver(data []byte) {
	frames := [][]byte{data}
	var f session.Frame
	if err := f.Parse(data, &l.parse); err != nil {
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

// delayOf is the delay of all packets of an interval, so that an estimate is right if it is exactly that.
func delayOf(interval uint64) int64 { return int64(1000 + 10*interval) }

// run passes an interval.
func (l *link) run() {
	start, err := l.sender.Start(nil)
	if err != nil {
		l.t.Fatal(err)
	}
	var f session.Frame
	if err := f.Parse(start, &l.parse); err != nil {
		l.t.Fatal(err)
	}
	l.interval = f.Interval
	l.deliver(start)
	if l.afterStart != nil {
		l.afterStart()
	}
	l.packets()
	l.end()
	l.interval++
}

// packets passes those of an interval, one in fifty lost.
func (l *link) packets() {
	for range perInterval {
		l.ids++
		p, now := hashing.Word(1, l.ids), int64(l.ids*1000)
		l.sender.Update(p, now)
		if l.ids%50 != 0 {
			l.receiver.Update(p, now+delayOf(l.interval))
		}
	}
}

// end delivers what follows the packets of an interval, and returns how many bytes parts take.
func (l *link) end() (size int) {
	end, err := l.sender.End(nil)
	if err != nil {
		l.t.Fatal(err)
	}
	l.deliver(end)
	for data := range l.sender.Parts() {
		if size += len(data); len(data) > l.mtu {
			l.t.Errorf("a part takes %d bytes, want at most %d", len(data), l.mtu)
		}
		l.deliver(bytes.Clone(data))
	}
	return size
}

// only tampers with one kind of session.Frame of interval 2.
func only(k session.Kind, change func(f session.Frame, data []byte) [][]byte) func(uint64, session.Frame, []byte) [][]byte {
	return func(interval uint64, f session.Frame, data []byte) [][]byte {
		if interval == 2 && f.Kind == k && f.Part == 0 {
			return change(f, data)
		}
		return [][]byte{data}
	}
}

func drop(session.Frame, []byte) [][]byte      { return nil }
func twice(_ session.Frame, d []byte) [][]byte { return [][]byte{d, d} }
func corrupt(_ session.Frame, d []byte) [][]byte {
	d = bytes.Clone(d)
	d[len(d)/2] ^= 4
	return [][]byte{d}
}
func truncate(_ session.Frame, d []byte) [][]byte { return [][]byte{d[:len(d)-7]} }

// foreign makes the session.Frame one of a Sender with another Config.
func foreign(f session.Frame, _ []byte) [][]byte {
	f.Fingerprint++
	return [][]byte{f.Append(nil, new(session.Key))}
}

// runs passes n intervals.
func (l *link) runs(n int) {
	for range n {
		l.run()
	}
}

// assertAllRight checks that there are as many reports as wanted, and that all are right.
func (l *link) assertAllRight(want int) {
	l.t.Helper()
	if len(l.reports) != want {
		l.t.Fatalf("%d reports, want %d: %+v", len(l.reports), want, l.reports)
	}
	for i := range l.reports {
		assertRight(l.t, &l.reports[i])
	}
}

func assertRight(t testing.TB, r *Report) {
	t.Helper()
	want := float64(delayOf(r.Interval))
	if r.Err != nil || r.Result.Mean != want || r.Result.StdDev != 0 || r.Result.Sent != perInterval || r.Result.Lost != perInterval/50 {
		t.Errorf("interval %d: %v, %+v; want mean %v exactly", r.Interval, r.Err, r.Result, want)
	}
}
