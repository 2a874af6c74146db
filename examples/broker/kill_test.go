package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/examples/internal/relay"
	"github.com/hoplag/hoplag/internal/programs"
	"github.com/nats-io/nats.go/jetstream"
)

// The tests start this program anew to kill it.
func TestMain(m *testing.M) {
	if os.Getenv("BROKER_CHILD") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// A process is a child, with what its first line of output says after "at ".
type process struct {
	*exec.Cmd
	at string
}

const testKey = "a key of sixteen bytes and more"

func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0], args...)}
	p.Env = append(os.Environ(), "BROKER_CHILD=1", "HOPLAG_KEY="+testKey)
	p.Stderr = os.Stderr
	out := relay.Must(p.StdoutPipe())(t)
	relay.Check(t, p.Start())
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	_, p.at, _ = strings.Cut(strings.TrimSpace(line), " at ")
	return p
}

// kill kills a process as kill -9 does.
func (p *process) kill() {
	p.Process.Kill()
	p.Wait()
}

// testBroker is a broker that ends with the test.
func testBroker(t *testing.T) *broker {
	t.Helper()
	b := relay.Must(newBroker("127.0.0.1:0", t.TempDir()))(t)
	t.Cleanup(b.close)
	return b
}

// testPoint is a point that ends with the test.
func testPoint(t *testing.T, c hoplag.Config) *hoplag.Point {
	t.Helper()
	p := relay.Must(hoplag.NewPoint(c))(t)
	t.Cleanup(func() { p.Close() })
	return p
}

// fleetAt is what points with these flags have to do with the broker at a URL.
func fleetAt(t *testing.T, url, flags string) (f *fleet, o *options) {
	t.Helper()
	o = relay.Must(parse(strings.Fields("-role points -key xxxxxxxxxxxxxxxx -url "+url+" "+flags), io.Discard))(t)
	o.key = testKey
	conn := relay.Must(connect(url))(t)
	t.Cleanup(conn.Close)
	return relay.Must(openFleet(t.Context(), conn, o))(t), o
}

// Collectors and the broker are killed and started again while points publish, and then the network is cut for
// ten seconds. Every message is in exactly one report, and every loss too.
func TestKill(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	l := relay.Listen(t)
	address, store := l.Addr().String(), t.TempDir()
	l.Close()
	broker := start(t, "-role", "broker", "-listen", address, "-store", store)
	network := relay.NewWire(t, address, 0, 0)
	url := "nats://" + network.Addr().String()
	collector := func() *process { return start(t, "-role", "collector", "-url", url) }
	a, b := collector(), collector()

	var passing sync.WaitGroup
	defer passing.Wait()
	f, o := fleetAt(t, url, "-pairs 4 -shards 2 -duration 20s")
	passing.Go(func() { f.passed(t.Context(), t, o) })
	time.Sleep(3 * time.Second)
	a.kill()
	time.Sleep(2 * time.Second)
	broker.kill()
	time.Sleep(500 * time.Millisecond)
	start(t, "-role", "broker", "-listen", address, "-store", store)
	c := collector() // one more, under load
	time.Sleep(3 * time.Second)
	network.Set(true)
	time.Sleep(10 * time.Second)
	network.Set(false)
	time.Sleep(time.Second)
	b.kill()
	passing.Wait()
	page := get(t, c.at)
	for _, want := range []string{
		`hoplag_packets_received_total{from="pair-0.1",to="pair-0.2",direction="forth"}`,
		`hoplag_report_age_seconds{from="pair-0.1",to="pair-0.2"}`, `hoplag_collector_lag_records{partition="`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in the metrics:\n%s", want, page)
		}
	}
	consumers := map[string]bool{} // as the broker's own tools show them
	for name := range f.records.ConsumerNames(t.Context()).Name() {
		consumers[strings.Join(strings.Split(name, "-")[:2], "-")] = true
	}
	if !consumers["partition-0"] || !consumers["partition-15"] {
		t.Errorf("the consumers are %v", consumers)
	}
}

// Two collectors that both claim all partitions, as when one was cut off for a while, still give one report of
// each interval.
func TestTwoOwners(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	b := testBroker(t)
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	var restarts [2]*atomic.Uint64
	var f *fleet
	var o *options
	for i := range restarts {
		f, o = fleetAt(t, b.url, "-pairs 2 -duration 4s -partitions 1")
		c := newCollector(f)
		restarts[i] = &c.restarts
		working.Go(func() { c.work(ctx, 0) })
	}
	f.passed(ctx, t, o)
	if restarts[0].Load()+restarts[1].Load() == 0 {
		t.Error("neither was refused: they did not meet")
	}
}

// passed runs points until all messages have passed, and checks all reports.
func (f *fleet) passed(ctx context.Context, t *testing.T, o *options) {
	t.Helper()
	var totals bytes.Buffer
	if err := f.points(ctx, o, &programs.Rows{W: &totals}); err != nil {
		t.Error(err)
	}
	var wanted []total
	for line := range strings.Lines(totals.String()) {
		var want total
		if err := json.Unmarshal([]byte(line), &want); err != nil {
			t.Error(err)
		}
		if wanted = append(wanted, want); want.Sent < 100 || want.Received == want.Sent {
			t.Errorf("%+v: too little happened", want)
		}
	}
	f.audit(t, wanted, 2*time.Minute)
}

// audit waits until reports contain every message that passed pairs, and checks
// that they contain each once. It returns the number of reports.
func (f *fleet) audit(t *testing.T, wanted []total, patience time.Duration) (n int) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(500 * time.Millisecond) {
		reports, err := f.allReports(t)
		for _, want := range wanted {
			err = errors.Join(err, want.check(reports[want.Pair]))
			n += len(reports[want.Pair])
		}
		if err == nil {
			return n
		}
		if n = 0; time.Now().After(end) {
			t.Error(err)
			return 0
		}
	}
}

// allReports returns all reports, by pair.
func (f *fleet) allReports(t *testing.T) (map[string][]hoplag.Report, error) {
	t.Helper()
	all := map[string][]hoplag.Report{}
	info, err := f.reports.Info(t.Context())
	if err != nil || info.State.Msgs == 0 {
		return all, err
	}
	consumer, err := f.js.OrderedConsumer(t.Context(), info.Config.Name, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return all, err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return all, err
	}
	defer messages.Stop()
	for left := info.State.Msgs; left > 0; left-- {
		m, err := messages.Next(jetstream.NextMaxWait(10 * time.Second))
		if err != nil {
			return all, err
		}
		var some []hoplag.Report
		if err := json.Unmarshal(m.Data(), &some); err != nil {
			return all, err
		}
		pair := m.Subject()[strings.LastIndexByte(m.Subject(), '.')+1:]
		all[pair] = append(all[pair], some...)
	}
	return all, nil
}

// check compares reports with what passed. What was received is exact. What was
// lost at the very end is outstanding, and a report that refuses an answer, or
// in which a session begins, withholds its losses.
func (t *total) check(reports []hoplag.Report) error {
	var got total
	var lost int64 // without those that came after all
	untold, outstanding := false, int64(0)
	for i, r := range reports {
		if i > 0 && r.Number <= reports[i-1].Number {
			return fmt.Errorf("%s: report %d comes after %d", t.Pair, r.Number, reports[i-1].Number)
		}
		got.Sent += r.Forth.Sent
		untold = untold || r.Begins && r.Forth.Sent > 0 || r.Forth.Sent > 0 && r.Forth.Err != nil
		got.Received += r.Forth.Received
		lost += int64(r.Forth.Lost) - int64(r.Forth.Extra)
		if r.Forth.Received > 0 {
			outstanding = int64(r.Forth.Outstanding)
		}
	}
	missing := int64(t.Sent - t.Received)
	if got.Sent > t.Sent || got.Received != t.Received || lost > missing || lost+outstanding < missing && !untold {
		return fmt.Errorf("%s: %d reports have %d messages sent, %d received and %d lost; %d, %d and %d were", t.Pair, len(reports),
			got.Sent, got.Received, lost, t.Sent, t.Received, t.Sent-t.Received)
	}
	return nil
}

// The audit notices what is lost or doubled: it refuses good reports once one of them is missing, repeated, or
// a message off.
func TestCheckSeesWhatIsWrong(t *testing.T) {
	report := func(number int64, sent, received, lost uint64) (r hoplag.Report) {
		r.Number, r.Forth.Sent, r.Forth.Received, r.Forth.Lost = number, sent, received, lost
		return r
	}
	want := total{Pair: "p", Sent: 30, Received: 27}
	good := []hoplag.Report{report(1, 10, 9, 1), report(2, 10, 9, 1), report(4, 10, 9, 1)}
	if err := want.check(good); err != nil {
		t.Error(err)
	}
	for name, bad := range map[string][]hoplag.Report{
		"a report is missing":        {good[0], good[2]},
		"a report is there twice":    {good[0], good[1], good[1], good[2]},
		"reports change places":      {good[0], good[2], good[1]},
		"an interval is there twice": {good[0], good[1], report(3, 10, 9, 1), good[2]},
		"a message is doubled":       {good[0], good[1], report(4, 11, 10, 1)},
		"a message is lost":          {good[0], good[1], report(4, 10, 8, 1)},
		"a loss is not told":         {good[0], good[1], report(4, 10, 9, 0)},
	} {
		if want.check(bad) == nil {
			t.Errorf("%s, and nobody sees it", name)
		}
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	r := relay.Must(http.Get(url))(t)
	defer r.Body.Close()
	return string(relay.Must(io.ReadAll(r.Body))(t))
}
