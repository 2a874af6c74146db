package embedded

import (
	"context"
	"flag"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/examples/internal/relay"
	"github.com/hoplag/hoplag/lda/flows"
)

// A truth is the exact delay of every message, from two clock readings taken next to where the embedding
// reports it.
type truth struct {
	mu       sync.Mutex
	sent     map[string]time.Time
	came     int
	total    time.Duration
	greatest time.Duration
	unsent   int // came and were not sent
}

func newTruth() *truth { return &truth{sent: map[string]time.Time{}} }

func (w *truth) left(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent[id] = time.Now()
}

func (w *truth) arrived(id string) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if sent, ok := w.sent[id]; ok {
		w.came++
		w.total += now.Sub(sent)
		w.greatest = max(w.greatest, now.Sub(sent))
	} else {
		w.unsent++
	}
}

// A measured is what reports say of one direction, added up.
type measured struct {
	sent, received, lost, extra uint64
	known, sum, low, high       float64 // packets whose mean is known, and the sum of it and of its ends
}

func (m *measured) add(d hoplag.Traffic) {
	m.sent, m.received, m.lost, m.extra = m.sent+d.Sent, m.received+d.Received, m.lost+d.Lost, m.extra+d.Extra
	if d.Err == nil {
		m.known += float64(d.Received)
		m.sum += float64(d.Received) * d.Mean
		m.low += float64(d.Received) * d.MeanInterval95.Low
		m.high += float64(d.Received) * d.MeanInterval95.High
	}
}

// A bench has the points of both ends, and what their reports say.
type bench struct {
	first, second *hoplag.Point

	mu          sync.Mutex
	forth, back measured
	last        hoplag.Report
	flows       []flows.Delay // of the latest report with the most
}

// TestMain runs all tests at once: they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("test.parallel", "16")
	os.Exit(m.Run())
}

var testConfig = hoplag.Config{
	Key: hoplag.NewKey("a secret of both points"), Cut: 20 * time.Millisecond, Report: 200 * time.Millisecond, ClocksAgree: true,
}

func newBench(t *testing.T, a, b hoplag.Config, tell ...func(hoplag.Report)) *bench {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	m := &bench{}
	a.Name, b.Name = "first", "second"
	var err error
	m.first, m.second, err = Points(ctx, relay.Listen(t), a, b, func(r hoplag.Report) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.forth.add(r.Forth)
		m.back.add(r.Back)
		m.last = r
		if len(r.Forth.Flows) >= len(m.flows) {
			m.flows = r.Forth.Flows
		}
		for _, f := range tell {
			f(r)
		}
		if r.Forth.Sent+r.Back.Sent > 0 {
			t.Log(r)
		}
	})
	relay.Check(t, err)
	t.Cleanup(func() { cancel(); m.first.Close(); m.second.Close(); m.mu.Lock(); m.mu.Unlock() })
	return m
}

// begins waits for a report that is not of the beginning, in which losses would
// not be known.
func (m *bench) begins(t *testing.T) {
	t.Helper()
	if !m.until(func() bool { return m.last.Err == nil && m.last.Number > 0 && !m.last.Begins }) {
		t.Fatalf("no report but %v", m.last)
	}
}

func (m *bench) until(done func() bool) bool {
	for range 400 {
		m.mu.Lock()
		ok := done()
		m.mu.Unlock()
		if ok {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// agrees waits until all that was sent has arrived or is given up, and compares
// the reports with the truth. Counts are equal, the mean is within 10 % or its interval,
// and where all means are known it is in the interval, unless the machine stood still for
// a while: messages then count as lost and come as extra, or are given up later than
// this waits; and time passes between the truth's clock reading and the embedding's.
func (m *bench) agrees(t *testing.T, way string, got *measured, want *truth) {
	t.Helper()
	m.until(func() bool {
		want.mu.Lock()
		defer want.mu.Unlock()
		return got.received+got.lost >= uint64(len(want.sent))+got.extra
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	want.mu.Lock()
	defer want.mu.Unlock()
	sent, lost := len(want.sent), len(want.sent)-want.came
	if want.came == 0 || want.unsent > 0 {
		t.Fatalf("%s: the truth is broken: %d came, %d of them were not sent", way, want.came, want.unsent)
	}
	mean, exact := got.sum/got.known, float64(want.total)/float64(want.came)
	t.Logf("%-5s exactly:  %s, sent %d, lost %d", way, hoplag.Format(exact), sent, lost)
	t.Logf("%-5s measured: %s, sent %d, lost %d", way, hoplag.Format(mean), got.sent, got.lost)
	if calm := want.greatest < 100*time.Millisecond; !calm {
		t.Logf("%s: the machine stood still: a message took %v", way, want.greatest)
	} else if got.received != uint64(want.came) || got.lost != uint64(lost)+got.extra || got.extra == 0 && got.sent != uint64(sent) {
		t.Errorf("%s: %+v, want sent %d, lost %d, extra 0", way, *got, sent, lost)
	}
	low, high := 0.95*got.low/got.known, 1.05*got.high/got.known
	off := mean < 0.9*exact || mean > 1.1*exact || got.known == float64(want.came)
	if off && !(low <= exact && exact <= high) && want.greatest < 50*time.Millisecond {
		t.Errorf("%s: a mean of %s (%s to %s), want %s", way, hoplag.Format(mean), hoplag.Format(low), hoplag.Format(high), hoplag.Format(exact))
	}
}

// lossy delays datagrams, and loses every tenth after the first ten each way.
func lossy(forth, back time.Duration) func(bool) (time.Duration, bool) {
	var count [2]atomic.Int64
	return func(isBack bool) (time.Duration, bool) {
		way, delay := 0, forth
		if isBack {
			way, delay = 1, back
		}
		n := count[way].Add(1)
		return delay, n%10 != 0 || n <= 10
	}
}
