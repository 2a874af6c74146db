package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/internal/programs"
)

// The tests start this program anew to kill it.
func TestMain(m *testing.M) {
	if os.Getenv("BROKER_CHILD") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// A process is a child, and what its first line of output says after "at ".
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
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
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

// fleetAt is what points with these flags have to do with the broker at a URL.
func fleetAt(t *testing.T, url, flags string) (*fleet, *options) {
	t.Helper()
	o, err := parse(strings.Fields("-role points -json -key xxxxxxxxxxxxxxxx -url "+url+" "+flags), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	o.key = testKey
	conn, err := connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	f, err := openFleet(t.Context(), conn, o)
	if err != nil {
		t.Fatal(err)
	}
	return f, o
}

// A wire carries connections to the broker, until it is cut.
type wire struct {
	net.Listener
	to  string
	mu  sync.Mutex
	cut bool
	all []net.Conn
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	w := &wire{Listener: l, to: to}
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			w.carry(from)
		}
	}()
	return w
}

// carry carries a connection, or keeps it without an answer.
func (w *wire) carry(from net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, from)
	if w.cut {
		return
	}
	to, err := net.Dial("tcp", w.to)
	if err != nil {
		from.Close()
		return
	}
	w.all = append(w.all, to)
	for _, c := range [][2]net.Conn{{to, from}, {from, to}} {
		go func() {
			io.Copy(c[0], c[1])
			c[0].Close()
		}()
	}
}

// set cuts the wire, or mends it.
func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.all {
		c.Close()
	}
	w.all, w.cut = nil, cut
}

// Collectors and the broker are killed and come again while points publish, and
// then the network is cut for ten seconds. Every message is in exactly one
// report, and every loss too.
func TestKill(t *testing.T) {
	if os.Getenv("BROKER_KILL") == "" {
		t.Skip("takes a machine of its own: on a busy one, reports after a cut may lack packets; set BROKER_KILL=1")
	}
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, store := l.Addr().String(), t.TempDir()
	l.Close()
	broker := start(t, "-role", "broker", "-listen", address, "-store", store)
	network := newWire(t, address)
	url := "nats://" + network.Addr().String()
	collector := func() *process { return start(t, "-role", "collector", "-url", url) }
	a, b := collector(), collector()

	var totals bytes.Buffer
	finished := make(chan error)
	f, o := fleetAt(t, url, "-pairs 4 -shards 2 -duration 22s")
	go func() { finished <- f.points(t.Context(), o, &programs.Rows{W: &totals, JSON: true}) }()
	time.Sleep(4 * time.Second)
	a.kill()
	time.Sleep(2 * time.Second)
	broker.kill()
	time.Sleep(500 * time.Millisecond)
	start(t, "-role", "broker", "-listen", address, "-store", store)
	c := collector() // one more, under load
	time.Sleep(3 * time.Second)
	network.set(true)
	time.Sleep(10 * time.Second)
	network.set(false)
	time.Sleep(time.Second)
	b.kill()
	if err := <-finished; err != nil {
		t.Fatal(err)
	}
	checkAll(t, f, totals.String())
	page := get(t, c.at)
	for _, want := range []string{
		`hoplag_packets_received_total{from="pair-0.1",to="pair-0.2",direction="forth"}`,
		`hoplag_report_age_seconds{from="pair-0.1",to="pair-0.2"}`, `hoplag_collector_lag_records{partition="`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in the metrics:\n%s", want, page)
		}
	}
	at := strings.TrimSuffix(c.at, "/metrics")
	var reports []hoplag.Report
	if err := json.Unmarshal([]byte(get(t, at+"/reports?pair=pair-1&since=5m")), &reports); err != nil || len(reports) < 10 {
		t.Errorf("%d reports, error %v", len(reports), err)
	}
	if text := get(t, at+"/reports?pair=a.b"); !strings.Contains(text, `pair is "a.b"`) {
		t.Errorf("a pair of no name: %s", text)
	}
	consumers := map[string]bool{} // as the broker's own tools show them
	for name := range f.records.ConsumerNames(t.Context()).Name() {
		consumers[strings.Join(strings.Split(name, "-")[:2], "-")] = true
	}
	if !consumers["partition-0"] || !consumers["partition-15"] {
		t.Errorf("the consumers are %v", consumers)
	}
}

// Two collectors that both think that all partitions are theirs, as when one
// was cut off for a while, give one report of each interval all the same.
func TestTwoOwners(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	b, err := newBroker("127.0.0.1:0", t.TempDir(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	var restarts [2]*atomic.Uint64
	var f *fleet
	var o *options
	for i := range restarts {
		f, o = fleetAt(t, b.url, "-pairs 2 -duration 4s -partitions 1")
		c := newCollector(f, o.config())
		restarts[i] = &c.counts.restarts
		working.Go(func() { c.work(ctx, 0) })
	}
	var totals bytes.Buffer
	if err := f.points(ctx, o, &programs.Rows{W: &totals, JSON: true}); err != nil {
		t.Fatal(err)
	}
	checkAll(t, f, totals.String())
	if restarts[0].Load()+restarts[1].Load() == 0 {
		t.Error("neither was refused: they did not meet")
	}
}

// checkAll checks all pairs that the points printed.
func checkAll(t *testing.T, f *fleet, totals string) {
	t.Helper()
	for line := range strings.Lines(totals) {
		var want total
		if err := json.Unmarshal([]byte(line), &want); err != nil {
			t.Fatal(err)
		}
		if want.Sent < 100 || want.Received == want.Sent {
			t.Errorf("%+v: too little happened", want)
		}
		if _, err := f.audit(t.Context(), want, 30*time.Second); err != nil {
			reports, _ := f.since(t.Context(), want.Pair, time.Now().Add(-time.Hour))
			for _, r := range reports {
				t.Logf("%d begins=%v err=%v %v", r.Number, r.Begins, r.Err, r.Forth)
			}
			t.Error(err)
		}
	}
}

// What is lost or doubled is seen: reports that are right are refused once one
// of them is missing, there twice, or says a message more.
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
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
