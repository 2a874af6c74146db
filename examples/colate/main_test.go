package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/programs"
	"github.com/hoplag/hoplag/queue/trace"
)

// captures are those that ship, seen from here.
var captures = []string{"-in", "../twopoint/testdata/ingress.pcap.gz", "-out", "../twopoint/testdata/egress.pcap.gz"}

// recorded records the captures into a new directory.
func recorded(t *testing.T) (dir, said string) {
	t.Helper()
	dir = t.TempDir()
	return dir, output(t, append([]string{"record", "-dir", dir}, captures...)...)
}

// output runs the program.
func output(t *testing.T, args ...string) string {
	t.Helper()
	var stdout bytes.Buffer
	if err := run(args, &stdout, io.Discard); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return stdout.String()
}

func TestRecordListQuery(t *testing.T) {
	dir, said := recorded(t)
	if !strings.Contains(said, "ingress: 7830 packets in 14 epochs") || !strings.Contains(said, "bits a packet") {
		t.Errorf("record said\n%s", said)
	}
	listed := strings.Split(strings.TrimSpace(output(t, "list", "-dir", dir, "-top", "3")), "\n")
	if len(listed) != 3 {
		t.Fatalf("list -top 3 printed %q", listed)
	}
	fields := strings.Fields(listed[0])
	tuple := strings.Join(fields[5:], " ")
	whole := output(t, "query", "-dir", dir, "-flow", tuple)
	if !strings.Contains(whole, "  mean ") || !strings.Contains(whole, " pairs of epochs, ") {
		t.Errorf("query of %s printed\n%s", tuple, whole)
	}
	// The window may be given, and then one epoch is enough for a part of it.
	from, to := fields[2], fields[4]
	if got := output(t, "query", "-dir", dir, "-flow", tuple, "-from", from, "-to", to); got != whole {
		t.Errorf("with its lifetime given, the flow has\n%s, not\n%s", got, whole)
	}
	if got := output(t, "query", "-dir", dir, "-flow", tuple, "-to", from, "-packets", "180"); !strings.Contains(got, "1 pairs of epochs") {
		t.Errorf("a window of the first packet:\n%s", got)
	}
}

// A second recording in one place would be added to the first.
func TestRecordedAlready(t *testing.T) {
	dir, _ := recorded(t)
	args := append([]string{"record", "-dir", dir}, captures...)
	if err := run(args, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "already has a recording") {
		t.Errorf("%q: %v", args, err)
	}
}

// What is printed as exact is.
func TestExact(t *testing.T) {
	opt, err := parseRecord(append([]string{"-dir", t.TempDir()}, captures...), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	opt.exact = newExact()
	if err := record(opt, io.Discard); err != nil {
		t.Fatal(err)
	}
	sums, arrived := truth(t)
	if len(arrived) != len(opt.exact.delays) {
		t.Errorf("%d flows, want %d", len(opt.exact.delays), len(arrived))
	}
	for tuple, n := range arrived {
		m := opt.exact.delays[tuple]
		if m == nil || m.N() != uint64(n) || estimate.RelativeError(m.Mean(), sums[tuple]/float64(n)) > 1e-9 {
			t.Errorf("%s: %+v, want %d packets and %v ns", programs.FlowName(&tuple), m, n, sums[tuple]/float64(n))
		}
	}
}

// The intervals of the flows that ship hold the truth, as often as they say.
func TestAgainstTruth(t *testing.T) {
	dir, _ := recorded(t)
	sums, arrived := truth(t)
	flows, err := programs.ReadFlows(dir)
	if err != nil {
		t.Fatal(err)
	}
	hits, n := 0, 0
	for _, f := range flows {
		if f.Packets < 20 {
			continue
		}
		if f.Packets != uint64(arrived[f.Tuple]) {
			t.Errorf("%s: %d packets, %d arrived", programs.FlowName(&f.Tuple), f.Packets, arrived[f.Tuple])
		}
		var said bytes.Buffer
		if err := query(queryOptions{dir: dir, seed: 1, flow: f.Tuple}, &said); err != nil {
			continue
		}
		r := estimated(t, dir, f)
		mean := sums[f.Tuple] / float64(f.Packets)
		n++
		interval := r.MeanInterval(confidence)
		if interval.Contains(mean) {
			hits++
		} else {
			t.Logf("%s, %d packets: %v to %v, is %v", programs.FlowName(&f.Tuple), f.Packets,
				duration(interval.Low), duration(interval.High), duration(mean))
		}
	}
	t.Logf("%d of %d intervals hold", hits, n)
	// With a true coverage of 95 %, fewer than 83 % of 40 flows would happen
	// once in 300.
	if n < 20 || hits*100 < n*83 {
		t.Errorf("%d of %d intervals hold", hits, n)
	}
}

// estimated is what query prints, in numbers.
func estimated(t *testing.T, dir string, f programs.FlowRecord) colate.Result {
	t.Helper()
	opt := queryOptions{dir: dir, seed: 1, flow: f.Tuple}
	answers, _, err := ask(&opt, []programs.FlowRecord{f}, f.First, f.Last)
	if err != nil || answers[0].Err != nil {
		t.Fatal(err, answers[0].Err)
	}
	return answers[0].Result
}

// All flows of a window come in one pass, the slowest first.
func TestRank(t *testing.T) {
	dir, _ := recorded(t)
	said := output(t, "rank", "-dir", dir, "-top", "5", "-least", "50")
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if len(lines) != 7 {
		t.Fatalf("rank printed\n%s", said)
	}
	last := time.Duration(math.MaxInt64)
	for _, line := range lines[2:] {
		mean, err := time.ParseDuration(strings.Fields(line)[0])
		if err != nil || mean > last {
			t.Errorf("%v after %v, %v", mean, last, err)
		}
		last = mean
	}
	var list []described
	err := json.Unmarshal([]byte(output(t, "rank", "-dir", dir, "-json")), &list)
	if err != nil || len(list) == 0 || list[0].Mean < list[len(list)-1].Mean {
		t.Errorf("-json: %v, %d flows", err, len(list))
	}
	if err := run([]string{"rank", "-dir", dir, "-least", "1000000"}, io.Discard, io.Discard); err == nil {
		t.Error("no flow is large enough, and no error")
	}
}

// truth remembers every packet until it is seen again.
func truth(t *testing.T) (sums map[hashing.Tuple]float64, arrived map[hashing.Tuple]int) {
	t.Helper()
	var readers [2]*trace.Reader
	for i, name := range []string{captures[1], captures[3]} {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if readers[i], err = trace.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	pair := trace.NewPair(readers[0], readers[1])
	sums, arrived = map[hashing.Tuple]float64{}, map[hashing.Tuple]int{}
	waiting := map[string][]int64{}
	var frame hashing.Frame
	for {
		side, rec, err := pair.Next()
		if err == io.EOF {
			return sums, arrived
		}
		if err != nil {
			t.Fatal(err)
		}
		if frame.Parse(rec.Link, rec.Frame) != nil {
			continue
		}
		key := string(frame.Append(nil))
		if side == trace.Ingress {
			waiting[key] = append(waiting[key], rec.Time)
		} else if sent := waiting[key]; len(sent) > 0 {
			waiting[key] = sent[1:]
			sums[frame.Tuple] += float64(rec.Time - sent[0])
			arrived[frame.Tuple]++
		}
	}
}

// A damaged store answers with what is left of it, and says so.
func TestDamaged(t *testing.T) {
	dir, _ := recorded(t)
	segments, err := filepath.Glob(filepath.Join(dir, "ingress", "*.colate"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("%v, %v", segments, err)
	}
	data, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := range data[:len(data)/2] {
		data[i] ^= 1
	}
	if err := os.WriteFile(segments[0], data, 0o666); err != nil {
		t.Fatal(err)
	}
	flows, err := programs.ReadFlows(dir)
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	err = query(queryOptions{dir: dir, seed: 1, flow: flows[0].Tuple}, &said)
	if !strings.Contains(said.String(), "damaged: ") {
		t.Errorf("%v, and it said\n%s", err, &said)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"record", "-h"}, {"list", "-h"}, {"query", "-h"}, {"rank", "-h"}, {"help"}} {
		var stderr bytes.Buffer
		if err := run(args, io.Discard, &stderr); !errors.Is(err, flag.ErrHelp) || !strings.Contains(stderr.String(), "usage: colate") {
			t.Errorf("%q: %v, %q", args, err, &stderr)
		}
	}
	dir := t.TempDir()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"erase"}, `unknown command "erase"`},
		{[]string{"-n", "3"}, "colate -h lists the flags"},
		{[]string{"list", "-n", "3"}, "colate list -h lists the flags"},
		{[]string{"query", "-dir", dir}, "-flow is missing"},
		{[]string{"record"}, "-dir is missing"},
		{[]string{"record", "-dir", dir, "x"}, `unexpected argument "x"`},
		{[]string{"record", "-dir", dir, "-counters", "3"}, "Counters is 3"},
		{[]string{"record", "-dir", dir, "-bits", "300"}, "-bits is 300"},
		{[]string{"record", "-dir", dir, "-in", "missing.pcap"}, "missing.pcap"},
		{[]string{"list", "-dir", filepath.Join(dir, "nowhere")}, "flows.csv"},
		{[]string{"query", "-dir", dir, "-flow", "tcp 1.2.3.4:5"}, "want a protocol, a source and a destination"},
		{[]string{"query", "-dir", dir, "-flow", "xcp 1.2.3.4:5 6.7.8.9:10"}, "the protocol is"},
		{[]string{"query", "-dir", dir, "-flow", "6 1.2.3.4:5 6.7.8.9:10", "-from", "noon"}, "-from"},
	} {
		if err := run(tt.args, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want an error with %q", tt.args, err, tt.want)
		}
	}
}

func TestNames(t *testing.T) {
	for _, s := range []string{
		"tcp 10.0.0.1:80 10.0.0.2:1234", "udp [2001:db8::1]:53 [2001:db8::2]:9", "icmp 10.0.0.1:0 10.0.0.2:0", "89 10.0.0.1:0 224.0.0.5:0",
	} {
		tuple, err := programs.ParseFlow(s)
		if err != nil || programs.FlowName(&tuple) != s {
			t.Errorf("%q becomes %q, %v", s, programs.FlowName(&tuple), err)
		}
	}
	if got := fmt.Sprint(duration(1234567890), duration(1234567), duration(-12345)); got != "1.235s 1.235ms -12.35µs" {
		t.Errorf("durations %s", got)
	}
}
