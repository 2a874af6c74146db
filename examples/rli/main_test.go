package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

// measured runs the program and reads what it prints.
func measured(t *testing.T, args string) (list []second, total summary) {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), strings.Fields("-json -top 0 "+args), &out, io.Discard); err != nil {
		t.Fatalf("%s: %v", args, err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for _, line := range lines[:len(lines)-1] {
		var s second
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &total); err != nil {
		t.Fatal(err)
	}
	return list, total
}

// From end to end: every packet that was not dropped is in a row, and every mean is near the exact one.
func TestPort(t *testing.T) {
	for args, busy := range map[string]bool{
		"-traffic bursty -rate 200 -seconds 3":                               true,
		"-traffic poisson -rate 200 -seconds 2 -flows 50":                    true,
		"-traffic poisson -rate 100 -seconds 2 -method linear -every 10":     false,
		"-traffic poisson -rate 100 -seconds 2 -method left -every 5":        false,
		"-traffic bursty -rate 100 -seconds 2 -load 130 -queue 50 -every 50": true,
		"-traffic poisson -rate 10 -seconds 2 -load 50 -seed 7 ":             true,
	} {
		list, total := measured(t, args)
		dropped, missing := uint64(0), uint64(0)
		for i, s := range list {
			packets := uint64(0)
			for k, f := range s.Flows {
				packets += f.Packets
				if k > 0 && f.Mean > s.Flows[k-1].Mean {
					t.Errorf("%s: second %d is not in order of delay", args, i)
				}
			}
			dropped += s.Dropped
			missing += s.Missing
			early := s.Packets - s.Dropped - packets // what came before the first reference has no estimate
			s.Flows = nil
			if s.Second != i+1 || s.Packets == 0 || early > 1 || packets != s.All.Packets ||
				s.References*4 > s.Packets || i > 0 && (*s.Busy > 0.5) != busy {
				t.Errorf("%s: second %d: %d packets of flows, %+v", args, i+1, packets, s)
			}
			if off := math.Abs(s.All.Mean/s.All.Exact - 1); !(off < 0.1) {
				t.Errorf("%s: second %d: the mean of all packets is %.0f ns, exactly %.0f", args, i+1, s.All.Mean, s.All.Exact)
			}
		}
		if drops := strings.Contains(args, "-queue"); drops != (dropped > 0) {
			t.Errorf("%s: %d dropped", args, dropped)
		}
		// What was dropped since the latest reference is not known yet.
		if off := math.Abs(float64(missing) - float64(dropped)); off > 0.1*float64(dropped)+float64(total.Seconds) {
			t.Errorf("%s: %d missing by what references say, and %d dropped", args, missing, dropped)
		}
		if total.Seconds != len(list) || total.Means < 40 || *total.MedianError > 0.15 || *total.MeansHeld < 0.9 ||
			total.Intervals < 40 {
			t.Errorf("%s: %+v, error %v, held %v", args, total, *total.MedianError, *total.MeansHeld)
		}
	}
}

// Real packets through a veth pair, where the program pauses for longer than packets take, give no answer. And
// through a token bucket: nearly all arrive, and the mean of all packets is in its interval in most seconds,
// however busy the machine is.
func TestLive(t *testing.T) {
	for _, live := range []string{"veth", "tbf"} {
		t.Run(live, func(t *testing.T) {
			t.Parallel()
			o, err := parse(strings.Fields("-traffic poisson -rate 10 -load 60 -live "+live), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			p, err := newPort(o)
			if err != nil {
				t.Skip(err)
			}
			p.wires.close()
			for i := range 3 { // a second may be outside by chance
				if wrong := liveWrong(t, live); wrong == "" {
					break
				} else if i == 2 {
					t.Error(wrong)
				}
			}
		})
	}
}

// liveWrong says what is wrong with three seconds of live traffic.
func liveWrong(t *testing.T, live string) string {
	list, _ := measured(t, "-traffic poisson -rate 10 -load 60 -flows 5 -every 10 -seconds 3 -live "+live)
	held, packets, arrived := 0, uint64(0), uint64(0)
	for _, s := range list {
		packets, arrived = packets+s.Packets, arrived+s.All.Packets
		if s.All.Low == nil || *s.All.Low <= s.All.Exact && s.All.Exact <= *s.All.High {
			held++
		}
	}
	switch {
	case held < 2, live == "veth" && held < 3:
		return fmt.Sprintf("%d of 3 seconds hold the mean or are refused", held)
	case live == "veth" && !strings.Contains(list[2].Refusal, "paused"):
		return "refused for " + list[2].Refusal
	case live != "veth" && (arrived < packets/2 || arrived > packets):
		return fmt.Sprintf("%d of %d packets arrived", arrived, packets)
	}
	return ""
}

// Where there is nothing to say, it says nothing. A slow link that is nearly full gets a reference every 6 ms,
// not for one in 300 packets: enough for intervals.
func TestSlowLink(t *testing.T) {
	if list, _ := measured(t, "-traffic poisson -rate 10 -load 95 -seconds 3"); list[2].References < 128 {
		t.Errorf("%d references in a second", list[2].References)
	}
	list, total := measured(t, "-rate 1 -load 1 -flows 2 -seconds 3")
	if len(list) != 3 || list[0].Packets != 0 || len(list[0].Flows) != 0 || total.Intervals != 0 || total.MeansHeld != nil {
		t.Errorf("%+v, %+v", list, total)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop() // before it began
	var out bytes.Buffer
	if err := run(ctx, []string{"-top", "1"}, &out, io.Discard); err != nil || out.Len() > 0 {
		t.Errorf("%v, %q", err, &out)
	}
}

// The same seed prints the same.
func TestRepeats(t *testing.T) {
	var out [2]bytes.Buffer
	for i := range out {
		if err := run(t.Context(), strings.Fields("-rate 50 -seconds 2 -top 3"), &out[i], io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	if out[0].String() != out[1].String() || !strings.Contains(out[0].String(), "means of a flow") {
		t.Errorf("%s\n%s", out[0].String(), out[1].String())
	}
	widths := map[int]int{}
	for line := range strings.Lines(out[0].String()) {
		if fields := strings.Fields(line); len(fields) > 10 && fields[0] == "tcp" || strings.HasPrefix(line, "all packets") ||
			strings.HasPrefix(line, "    ") {
			widths[utf8.RuneCountInString(line)]++
		}
	}
	if len(widths) != 1 {
		t.Errorf("rows are so wide: %v\n%s", widths, out[0].String())
	}
}

// All that is allowed can be run.
func TestArguments(t *testing.T) {
	for _, args := range []string{
		"-rate 1 -load 1 -flows 1 -queue 1", "-rate 1 -load 150 -flows 100000", "-rate 1 -traffic poisson -every 1000000",
	} {
		if err := run(t.Context(), strings.Fields(args+" -seconds 1"), io.Discard, io.Discard); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
}
