//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hoplag/hoplag/internal/programs"
)

// needsLab skips where the demo cannot run.
func needsLab(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes network namespaces")
	}
	for _, tool := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	if testing.Short() {
		t.Skip("takes seconds")
	}
}

// runTo runs the program; it skips where namespaces or rings are not to be had.
func runTo(t *testing.T, out, notes io.Writer, args ...string) {
	t.Helper()
	needsLab(t)
	if err := run(t.Context(), args, out, notes); err != nil {
		if strings.Contains(err.Error(), "not permitted") || strings.Contains(err.Error(), "not supported") {
			t.Skipf("not here: %v", err)
		}
		t.Fatal(err)
	}
}

// runDemo runs the demo and returns its rows and totals.
func runDemo(t *testing.T, arguments ...string) (rows []row, all total, stderr string) {
	t.Helper()
	var out, notes bytes.Buffer
	runTo(t, &out, &notes, append([]string{"-demo", "-json"}, arguments...)...)
	for line := range bytes.Lines(out.Bytes()) {
		var r struct {
			row
			Total *total
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if r.Total != nil {
			all = *r.Total
		} else {
			rows = append(rows, r.row)
		}
	}
	if all.Exact == nil || all.Exact.Mean == nil || all.Mean == nil {
		t.Fatalf("no mean, or no exact one beside:\n%s", out.Bytes())
	}
	t.Logf("sent %d, received %d, missing %d, mean %.1f µs; exact: sent %d, received %d, mean %.1f µs", all.Sent, all.Received, all.Missing,
		*all.Mean/1e3, all.Exact.Sent, all.Exact.Received, *all.Exact.Mean/1e3)
	return rows, all, notes.String()
}

// checkExact holds totals to what a capture of the same packets says. What any
// ring had no room for is known, so that no packet is unaccounted for.
func checkExact(t *testing.T, rows []row, all total) {
	t.Helper()
	if all.Exact.Dropped == 0 {
		if sent := all.Sent + all.Dropped[0]; sent != uint64(all.Exact.Sent) {
			t.Errorf("sent %d and dropped %d, exactly %d", all.Sent, all.Dropped[0], all.Exact.Sent)
		}
		if received := all.Received + all.Dropped[1]; received != uint64(all.Exact.Received) {
			t.Errorf("received %d and dropped %d, exactly %d", all.Received, all.Dropped[1], all.Exact.Received)
		}
		if want := int64(all.Exact.Sent - all.Exact.Received); all.Missing != want {
			t.Errorf("missing %d, exactly %d", all.Missing, want)
		}
	} else {
		t.Logf("the capture dropped %d packets itself", all.Exact.Dropped)
	}
	var lost, extra uint64
	for _, r := range rows {
		lost += r.Report.Forth.Lost
		extra += r.Report.Forth.Extra
	}
	// The last ones are not known to be lost yet, and those of a beginning never.
	if net := int64(lost) - int64(extra); net < 0 || net > all.Missing {
		t.Errorf("rows have %d lost and %d extra, want a difference of %d at most", lost, extra, all.Missing)
	}
	checkMean(t, "all packets", all.Mean, all.Low, all.High, all.Exact.Mean)
}

// checkMean holds a mean to the exact one: off by no more than twice what its
// 95 % interval says, and 2 % and the time between two places in the kernel
// that take the time, which a busy machine makes long.
func checkMean(t *testing.T, what string, mean, low, high, exact *float64) {
	t.Helper()
	if mean == nil || exact == nil {
		t.Fatalf("%s: no mean, or no exact one", what)
	}
	t.Logf("%s: mean %s (%s to %s), exactly %s: off by %+.2f %%",
		what, format(mean), format(low), format(high), format(exact), 100*(*mean / *exact - 1))
	if low == nil || high == nil {
		return // nothing is promised
	}
	margin := 0.02**exact + 50e3
	if *exact < *mean-2*(*mean-*low)-margin || *exact > *mean+2*(*high-*mean)+margin {
		t.Errorf("%s: mean %s, 95 %% between %s and %s, exactly %s", what, format(mean), format(low), format(high), format(exact))
	}
}

// Rings measure the queue of a router, flow by flow, and what they keep can be
// asked later.
func TestRings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rows, all, notes := runDemo(t, "-duration", "2s", "-rate", "10000", "-bandwidth", "26", "-flows", "64", "-keep", dir)
	checkExact(t, rows, all)
	flows := map[string]bool{}
	for _, r := range rows {
		for i, name := range r.Names {
			flows[name] = true
			if f := r.Report.Forth.Flows[i]; !strings.HasPrefix(name, "udp 10.97.1.1:") || f.Mean <= 0 {
				t.Errorf("flow %s: %+v", name, f)
			}
		}
	}
	calmly := float64(all.Missing) < float64(all.Exact.Sent)/1000
	if calmly && len(flows) == 0 || len(flows) > senderFlows {
		t.Errorf("flows %v, want up to %d", flows, senderFlows)
	}
	seed := regexp.MustCompile(`-seed (\d+)`).FindStringSubmatch(notes)
	if seed == nil {
		t.Fatalf("no seed to ask with:\n%s", notes)
	}
	out, err := exec.Command("go", "run", filepath.Join("..", "colate"), "rank", "-json", "-dir", dir, "-seed", seed[1]).Output()
	if err != nil && !calmly {
		t.Skipf("so much was lost that no flow has an answer: %v", err)
	}
	if err != nil {
		t.Fatalf("examples/colate: %v\n%s", err, out)
	}
	var answers []struct {
		Flow          string
		Packets, Mean float64
	}
	if err := json.Unmarshal(out, &answers); err != nil {
		t.Fatal(err)
	}
	var sum, packets float64
	for _, a := range answers {
		sum += a.Packets * a.Mean
		packets += a.Packets
		if !strings.HasPrefix(a.Flow, "udp 10.97.1.1:") {
			t.Errorf("flow %s was kept", a.Flow)
		}
	}
	off := sum/packets / *all.Exact.Mean - 1
	t.Logf("kept: %d flows, %.0f packets of %d, mean off by %+.2f %%", len(answers), packets, all.Received, 100*off)
	// Losses come when the queue is full, and epochs in which a flow lost
	// packets in all its counters give no answer: what is kept then speaks of
	// the calmer ones.
	if calmly && !(math.Abs(off) < 0.15 && len(answers) >= senderFlows-1 && packets >= 0.9*float64(all.Received)) {
		t.Error("hardly a packet was lost: want all flows within 15 %")
	}
}

// Points in the kernel say the same.
func TestKernel(t *testing.T) {
	t.Parallel()
	const flow = "udp 10.97.1.1:7001 10.97.2.1:7000"
	rows, all, _ := runDemo(t, "-duration", "2s", "-bandwidth", "26", "-cut", "20ms", "-kernel", "-flow", flow)
	checkExact(t, rows, all)
	exact := all.Exact.Flows[0]
	var sum, low, high, sent, packets float64
	for _, r := range rows {
		for i, f := range r.Report.Forth.Flows {
			if r.Names[i] != flow {
				t.Errorf("flow %s was not asked for", r.Names[i])
			}
			n := float64(f.Sent)
			if sent += n; math.IsInf(f.MeanInterval95.High, 0) {
				continue
			}
			packets += n
			sum += n * f.Mean
			low += n * f.MeanInterval95.Low
			high += n * f.MeanInterval95.High
		}
	}
	if packets < 0.9*float64(exact.Sent) {
		t.Skip("so much was lost that the flow has no answer in some seconds")
	}
	sum, low, high = sum/packets, low/packets, high/packets
	checkMean(t, flow, &sum, &low, &high, exact.Mean)
	// The counts are of the flow and of what shares its cells.
	if exact.Flow != flow || sent > 1.5*float64(exact.Sent) {
		t.Errorf("%.0f packets sent, exactly %+v", sent, exact)
	}
}

// Rings that are much too small lose packets, and every one of them is counted.
func TestDropsAreCounted(t *testing.T) {
	t.Parallel()
	rows, all, _ := runDemo(t, "-duration", "2s", "-rate", "100000", "-bandwidth", "1000", "-buffer", "2")
	if all.Exact.Dropped > 0 {
		t.Skipf("the capture dropped %d packets itself", all.Exact.Dropped)
	}
	if all.Sent+all.Dropped[0] != uint64(all.Exact.Sent) || all.Received+all.Dropped[1] != uint64(all.Exact.Received) {
		t.Errorf("%+v, exactly %+v", all.seen, *all.Exact)
	}
	t.Logf("dropped %d and %d", all.Dropped[0], all.Dropped[1])
	for _, r := range rows {
		if r.Dropped[0]+r.Dropped[1] > 0 && !strings.Contains(r.Error, "no room for") {
			t.Errorf("dropped %d and %d, error %q", r.Dropped[0], r.Dropped[1], r.Error)
		}
	}
}

func TestFlags(t *testing.T) {
	taps := []string{"-from", "a", "-to", "b"}
	for want, args := range map[string][]string{
		"-from or -to is":       {},
		"flag -from: want":      {"-from", "/a", "-to", "b"},
		"flag -to: want":        {"-from", "a", "-to", "../x"},
		"want two places":       {"-from", "a:out", "-to", "a"},
		"-buffer is 1,":         append([]string{"-buffer", "1"}, taps...),
		"-flows is 0":           append([]string{"-flows", "0"}, taps...),
		"-cut is 30ms":          append([]string{"-cut", "30ms"}, taps...),
		"-duration is 1ms":      append([]string{"-duration", "1ms"}, taps...),
		"-key has 5":            append([]string{"-key", "short"}, taps...),
		"flag -net":             append([]string{"-net", "x"}, taps...),
		"-flow is udp":          append([]string{"-flow", "udp 10.0.0.1:1 10.0.0.2:2"}, taps...),
		"want a protocol":       append([]string{"-kernel", "-flow", "udp"}, taps...),
		`-keep is "d"`:          append([]string{"-kernel", "-keep", "d"}, taps...),
		"-net is 10.0.0.0/8":    append([]string{"-kernel", "-net", "10.0.0.0/8"}, taps...),
		"-rate is 1,":           {"-demo", "-rate", "1"},
		"-bandwidth is NaN":     {"-demo", "-bandwidth", "NaN"},
		`-from is "a:in"`:       {"-demo", "-from", "a"},
		`argument "x"`:          {"-demo", "x"},
		"flag provided but not": {"-x"},
	} {
		if err := run(t.Context(), args, io.Discard, io.Discard); !errors.Is(err, programs.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", args, err, want)
		}
	}
	err := run(t.Context(), []string{"-from", "no-such-device", "-to", "lo:in"}, io.Discard, io.Discard)
	if err == nil || errors.Is(err, programs.ErrUsage) {
		t.Errorf("an interface that there is not: error %v", err)
	}
}

// What a ring of the program had no room for is not the network's loss, in the
// row in which it was dropped or the one after; other losses are.
func TestOwnDropsAreNoLosses(t *testing.T) {
	o := &output{Rows: programs.Rows{W: io.Discard}, stderr: io.Discard}
	for i, c := range []struct {
		dropped     [2]uint64
		lost, extra uint64 // as it seems
		want        [2]uint64
	}{
		{[2]uint64{0, 0}, 3, 1, [2]uint64{3, 1}},
		{[2]uint64{5, 100}, 70, 0, [2]uint64{0, 0}},
		{[2]uint64{0, 10}, 42, 6, [2]uint64{2, 1}},
		{[2]uint64{0, 0}, 4, 2, [2]uint64{4, 2}},
	} {
		r := &row{seen: seen{Dropped: c.dropped}}
		r.Report.Forth.Lost, r.Report.Forth.Extra = c.lost, c.extra
		r.problem()
		if err := o.row(r); err != nil {
			t.Fatal(err)
		}
		if got := [2]uint64{r.Report.Forth.Lost, r.Report.Forth.Extra}; got != c.want {
			t.Errorf("row %d: %v lost and extra, want %v", i, got, c.want)
		}
		if named := strings.Contains(r.Error, "had no room for"); named != (c.dropped != [2]uint64{}) {
			t.Errorf("row %d: error %q", i, r.Error)
		}
	}
	if d := o.drops(); d["from"] != 5 || d["to"] != 110 {
		t.Errorf("drops %v", d)
	}
}

// With AS_PROGRAM the test is the program itself.
func TestMain(m *testing.M) {
	if os.Getenv("AS_PROGRAM") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program is this program with arguments.
func program(arguments string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], strings.Fields(arguments)...)
	cmd.Env = append(os.Environ(), "AS_PROGRAM=1")
	return cmd
}

// An output that fails ends the program with its error.
func TestOutputFails(t *testing.T) {
	t.Parallel()
	needsLab(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	cmd := program("-demo -json -rate 1000 -duration 10s")
	cmd.Stdout = full
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("%v, want exit code 1", err)
	}
}

// An interrupt ends the program, and what was measured until then is told.
func TestInterrupt(t *testing.T) {
	needsLab(t)
	for _, arguments := range []string{"-demo -json -rate 1000 -duration 1m", "-demo -json -rate 1000 -duration 1m -kernel"} {
		t.Run(arguments, func(t *testing.T) {
			t.Parallel()
			rows, last := interrupted(t, arguments)
			var r struct{ Total *total }
			if err := json.Unmarshal(last, &r); err != nil || rows < 2 || r.Total == nil || r.Total.Exact == nil {
				t.Errorf("%d rows, the last one %.300s: %v", rows, last, err)
			}
		})
	}
}

// interrupted runs the program until it has printed two rows, interrupts it, and
// returns how many rows there were and the last one.
func interrupted(t *testing.T, arguments string) (rows int, last []byte) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	cmd := program(arguments)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer timer.Stop()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		last = append(last[:0], lines.Bytes()...)
		if rows++; rows == 2 {
			cmd.Process.Signal(os.Interrupt)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%s: %v", arguments, err)
	}
	return rows, last
}
