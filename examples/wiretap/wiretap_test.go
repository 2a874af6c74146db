//go:build linux

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/examples/internal/relay"
	"github.com/hoplag/hoplag/internal/programs"
	"github.com/hoplag/hoplag/lda/lost"
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

// checkExact holds totals to what a capture of the same packets says. What any
// ring had no room for is known, so that no packet is unaccounted for.
func checkExact(t *testing.T, rows []row, all totals, exact *truth) {
	t.Helper()
	if exact.Dropped > 0 {
		t.Logf("the capture dropped %d packets itself", exact.Dropped)
	} else if all.Sent+all.Dropped[0] != uint64(exact.Sent) || all.Received+all.Dropped[1] != uint64(exact.Received) ||
		all.Missing != int64(exact.Sent-exact.Received) {
		t.Errorf("%+v, exactly %+v", all.total, *exact)
	}
	var lost, extra uint64
	for _, r := range rows {
		lost += r.Report.Forth.Lost
		extra += r.Report.Forth.Extra
		if err := r.Report.Forth.Err; r.Received > 0 && !r.Report.Begins && err != nil {
			const notable = 10 * time.Millisecond
			if all.paused > notable {
				t.Skipf("counted exactly; a second is refused on a machine that paused for %v: %v", all.paused, err)
			}
			t.Errorf("%d packets received: %v", r.Received, err)
		}
	}
	// Rows in which the points begin report no losses.
	if net := int64(lost) - int64(extra); net < 0 || net > all.Missing {
		t.Errorf("rows have %d lost and %d extra, want a difference of %d at most", lost, extra, all.Missing)
	}
	checkMean(t, all, exact.Mean)
}

// checkMean holds a mean to the exact one: off by no more than twice what its 95 % interval says, plus the time between the
// two places in the kernel that read the clock, which is long on a busy machine.
func checkMean(t *testing.T, all totals, exact float64) {
	t.Helper()
	if !(all.Mean > 0) || !(exact > 0) {
		t.Fatalf("no mean, %v, or no exact one, %v", all.Mean, exact)
	}
	said := fmt.Sprintf("mean %s (%s to %s), exactly %s: off by %+.2f %%", hoplag.Format(all.Mean), hoplag.Format(all.Low),
		hoplag.Format(all.High), hoplag.Format(exact), 100*(all.Mean/exact-1))
	t.Log(said)
	const margin = 50e3 // an infinite interval promises nothing
	if exact < all.Mean-2*(all.Mean-all.Low)-margin || exact > all.Mean+2*(all.High-all.Mean)+margin {
		t.Error(said)
	}
}

// Rings measure the queue of a router, and its slowest flows.
func TestRings(t *testing.T) {
	t.Parallel()
	needsLab(t)
	rows, all, exact := demo(t, taps, 10000, 26)
	checkExact(t, rows, all, exact)
	flows := map[string]bool{}
	for _, r := range rows {
		for i, name := range r.Names {
			flows[name] = true
			if f := r.Report.Forth.Flows[i]; !strings.HasPrefix(name, "udp 10.97.1.1:") || f.MeanInterval95.High <= 0 {
				t.Errorf("flow %s: %+v", name, f)
			}
		}
	}
	calmly := float64(all.Missing) < float64(exact.Sent)/1000
	if calmly && len(flows) == 0 || len(flows) > senderFlows {
		t.Errorf("flows %v, want up to %d", flows, senderFlows)
	}
}

// The wrong way round there is no delay, and even a second has a row that says so. Both places begin and end at once, so
// that no packet seems to come from nowhere but the bursts on their way then. And rings want Ethernet.
func TestRingsTheWrongWayRound(t *testing.T) {
	t.Parallel()
	needsLab(t)
	n, err := newLab(1000)
	if err != nil {
		t.Skipf("no lab: %v", err)
	}
	t.Cleanup(n.Remove)
	o, flows, out := taps, connect(t, n.Names[0], n.Names[2]), new(bytes.Buffer)
	o.from, o.to = place{namespace: n.Names[1], device: "out", out: true}, place{namespace: n.Names[1], device: "in"}
	o.duration = time.Second
	go send(t.Context(), flows, 20000)
	relay.Check(t, measure(t.Context(), &o, &output{Rows: programs.Rows{W: out}, stderr: io.Discard}))
	s, missing := out.String(), 0
	_, total, _ := strings.Cut(s, "missing ")
	if fmt.Sscan(total, &missing); !strings.Contains(s, "the wrong way round?") || max(missing, -missing) > 2*maxBurst {
		t.Errorf("no row says so, or %d packets are missing: %s", missing, s)
	}
	relay.Check(t, n.Run("ip -n {1} tuntap add tun0 mode tun"))
	o.to.device = "tun0"
	if err = measure(t.Context(), &o, &output{Rows: programs.Rows{W: out}}); err == nil || !strings.Contains(err.Error(), "Ethernet") {
		t.Errorf("an interface without Ethernet: error %v", err)
	}
}

// taps are options for rings.
var taps = options{buffer: 32, flows: 64, cut: 50 * time.Millisecond, key: "a key of sixteen bytes"}

// Points in the kernel say the same.
func TestKernel(t *testing.T) {
	t.Parallel()
	needsLab(t)
	rows, all, exact := demo(t, options{kernel: true, cut: 20 * time.Millisecond}, 15000, 26)
	checkExact(t, rows, all, exact)
	for i := range rows[1:] {
		r, next := &rows[i].Report, &rows[i+1].Report
		if end := r.Start.Add(r.Length); next.Start.Sub(end).Abs() > time.Millisecond {
			t.Errorf("row %d ends at %v, and the next one begins at %v", i, end, next.Start)
		}
	}
}

func TestFlags(t *testing.T) {
	taps := []string{"-from", "a", "-to", "b"}
	for want, args := range map[string][]string{
		"-from or -to is":    {},
		"flag -from: want":   {"-from", "/a", "-to", "b"},
		"flag -to: want":     {"-from", "a", "-to", "../x"},
		"want two places":    {"-from", "a:out", "-to", "a"},
		"-cut is 30ms":       append([]string{"-cut", "30ms"}, taps...),
		"flag -net":          append([]string{"-net", "x"}, taps...),
		"-net is 10.0.0.0/8": append([]string{"-kernel", "-net", "10.0.0.0/8"}, taps...),
		"written as such":    append([]string{"-net", "::ffff:10.0.0.0/104"}, taps...),
		"are for rings":      append([]string{"-kernel", "-flows", "9"}, taps...),
	} {
		if err := run(t.Context(), args, io.Discard, io.Discard); !errors.Is(err, programs.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", args, err, want)
		}
	}
	absent := []string{"-from", "no-such-device", "-to", "lo:in"}
	if err := run(t.Context(), absent, io.Discard, io.Discard); err == nil || errors.Is(err, programs.ErrUsage) {
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
		r.Report.Forth.Lost, r.Report.Forth.Extra, r.Report.Forth.Missing = c.lost, c.extra, make([]lost.Name, c.lost)
		r.problem()
		relay.Check(t, o.row(r))
		named := len(r.Report.Forth.Missing)
		if got := [2]uint64{r.Report.Forth.Lost, r.Report.Forth.Extra}; got != c.want || named > int(got[0]) {
			t.Errorf("row %d: %v lost and extra, want %v, and named %d", i, got, c.want, named)
		}
		if named := strings.Contains(r.Error, "had no room for"); named != (c.dropped != [2]uint64{}) {
			t.Errorf("row %d: error %q", i, r.Error)
		}
	}
	if d := o.drops(); d["from"] != 5 || d["to"] != 110 {
		t.Errorf("drops %v", d)
	}
}

// Tests run at once, because they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("test.parallel", "8")
	os.Exit(m.Run())
}
