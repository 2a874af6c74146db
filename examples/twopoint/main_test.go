package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/examples/internal/relay"
)

// output runs the program and returns what it prints.
func output(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), args, &stdout, &stderr); err != nil {
		t.Fatalf("twopoint %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.String()
}

func decoded(t *testing.T, args ...string) report {
	t.Helper()
	var r report
	relay.Check(t, json.Unmarshal([]byte(output(t, append(args, "-json")...)), &r))
	return r
}

// tolerance is how far an estimate from a random subset of the packets may be from the mean over all of them,
// except for one run in 15,000 (four deviations, with the correction for a finite population).
func tolerance(w row) float64 {
	n, all := float64(w.EffectiveSample), w.Received.Exact
	return 4 * w.StdDev.Exact * math.Sqrt((1-n/all)/n)
}

// The shipped captures are counted exactly, as a whole and in intervals, which add up to it.
func TestIntervals(t *testing.T) {
	whole := decoded(t, "-interval", "0").Intervals[0]
	for name, f := range map[string]figure{"sent": whole.Sent, "received": whole.Received, "lost": whole.Lost} {
		if f.LDA != f.Exact || f.Exact == 0 {
			t.Errorf("%s: %v, exact %v", name, f.LDA, f.Exact)
		}
	}
	if e := math.Abs(whole.Mean.LDA - whole.Mean.Exact); e > tolerance(whole) {
		t.Errorf("mean %v, exact %v: off by more than %v", whole.Mean.LDA, whole.Mean.Exact, tolerance(whole))
	}
	r := decoded(t, "-interval", "500ms")
	if want := int(math.Ceil(r.Seconds / 0.5)); len(r.Intervals) < want-1 || len(r.Intervals) > want {
		t.Errorf("%d intervals of 0.5 s in %v s", len(r.Intervals), r.Seconds)
	}
	var sent, lost, lossless float64
	for _, w := range r.Intervals {
		sent += w.Sent.LDA
		lost += w.Lost.LDA
		if w.Lost.Exact == 0 {
			lossless++
			if math.Abs(w.Mean.LDA-w.Mean.Exact) > 1e-6*w.Mean.Exact {
				t.Errorf("at %v s nothing was lost, but the mean is %v, exact %v", w.Start, w.Mean.LDA, w.Mean.Exact)
			}
		}
	}
	if sent != whole.Sent.Exact || lost != whole.Lost.Exact {
		t.Errorf("intervals add up to %v sent and %v lost, want %v and %v", sent, lost, whole.Sent.Exact, whole.Lost.Exact)
	}
	if lossless == 0 {
		t.Error("no interval without loss: nothing was checked to be exact")
	}
}

func TestTextShowsEveryFigure(t *testing.T) {
	text := output(t)
	for _, want := range []string{"1,507   109    109", "exact", "mean delay", "deviation", "1,179", "bytes at each point", "on the wire",
		"lost: 370 of 7,830 packets, 4.725 %; 370 are named, 0 of them wrongly, number 180 at"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestErrorsSayWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join("testdata", "ingress.pcap.gz"), filepath.Join("testdata", "egress.pcap.gz")
	plain := relay.Must(os.ReadFile(write(t, 96, records(t, "ingress.pcap.gz"))))(t)
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		relay.Check(t, os.WriteFile(path, data, 0o600))
		return path
	}
	other, foreign := bytes.Clone(plain), bytes.Clone(plain)
	for i := 24; i+16 <= len(other); { // other addresses in every packet
		other[i+16+14+12] ^= 0x55
		i += 16 + int(binary.LittleEndian.Uint32(other[i+8:]))
	}
	foreign[20] = 201 // Bluetooth
	truncated, noPackets := file("truncated.pcap", plain[:24+16+10]), file("empty.pcap", plain[:24])
	garbage := file("garbage", []byte("this is not a capture"))
	different, unsupported := file("different.pcap", other), file("foreign.pcap", foreign)

	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"swapped", []string{"-before", out, "-after", in}, "swapped"},
		{"different traffic", []string{"-before", different, "-after", out},
			"only 0 of 7,460 packets of -after are in -before, of 7,830: the captures are of different traffic"},
		{"truncated at once", []string{"-before", truncated, "-after", out}, "ingress capture: packet 1"},
		{"no packets", []string{"-before", in, "-after", noPackets}, "packets"},
		{"not a capture", []string{"-before", garbage, "-after", out}, "garbage"},
		{"missing", []string{"-before", filepath.Join(dir, "none"), "-after", out}, "none"},
		{"one only", []string{"-before", in}, "go together"},
		{"unmatched link types", []string{"-before", unsupported, "-after", out}, "link types"},
		{"both of an unsupported link type", []string{"-before", unsupported, "-after", unsupported}, "link type: 201"},
		{"negative interval", []string{"-interval", "-1s"}, "want 0s to"},
	} {
		if err := failure(t, c.args...); !strings.Contains(err, c.want) {
			t.Errorf("%s: error %q does not say %q", c.name, err, c.want)
		}
	}
}

// What precedes the damage is measured; a message and the exit code report the damage.
func TestDamagedCapture(t *testing.T) {
	plain := relay.Must(os.ReadFile(write(t, 96, records(t, "ingress.pcap.gz"))))(t)
	damaged := filepath.Join(t.TempDir(), "damaged.pcap")
	relay.Check(t, os.WriteFile(damaged, plain[:len(plain)*3/4], 0o600))
	args := []string{"-before", damaged, "-after", "testdata/egress.pcap.gz", "-interval", "0"}
	var text, encoded bytes.Buffer
	for _, err := range []error{
		run(t.Context(), args, &text, io.Discard), run(t.Context(), append(args, "-json"), &encoded, io.Discard),
	} {
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Error(err)
		}
	}
	for _, told := range []string{text.String(), encoded.String()} {
		if !strings.Contains(strings.ToLower(told), "stopped") || !strings.Contains(told, "cut off") {
			t.Errorf("the report does not say that it is of a part:\n%s", told)
		}
	}
	var r report
	relay.Check(t, json.Unmarshal(encoded.Bytes(), &r))
	if w := r.Intervals[0]; w.Sent.Exact < 5000 || w.Sent.Exact > 7800 || math.Abs(w.Mean.LDA-w.Mean.Exact) > tolerance(w) {
		t.Errorf("of three quarters: %+v", w)
	}
}

// Ctrl-C leaves what was measured so far, whole JSON included.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := relay.Must(newMeter(1, 0))(t)
	c := relay.Must(open("", ""))(t)
	cancel()
	if err := c.feed(ctx, m); err == nil || err.Error() != "interrupted" {
		t.Errorf("%v", err)
	}
}
