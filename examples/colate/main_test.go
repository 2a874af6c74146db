package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// captures are the flags for those that ship.
var captures = []string{"-in", "../twopoint/testdata/ingress.pcap.gz", "-out", "../twopoint/testdata/egress.pcap.gz"}

func output(t *testing.T, args ...string) string {
	t.Helper()
	var stdout bytes.Buffer
	if err := run(context.Background(), args, &stdout, io.Discard); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return stdout.String()
}

// What was recorded is there to be asked for, all of it or one flow at a time,
// the slowest first; a damaged store says so, and answers with the rest.
func TestRecordAndQuery(t *testing.T) {
	dir := t.TempDir()
	said := output(t, append([]string{"record", "-dir", dir}, captures...)...)
	if !strings.Contains(said, "ingress: 7830 packets in 14 epochs") {
		t.Errorf("record said\n%s", said)
	}
	var list []answer
	if err := json.Unmarshal([]byte(output(t, "query", "-dir", dir, "-json")), &list); err != nil || len(list) < 40 {
		t.Fatalf("%d flows, %v", len(list), err)
	}
	for i, a := range list {
		if in := a.MeanInterval95; i > 0 && a.Mean > list[i-1].Mean || in.High < max(a.Mean, 1e6) || a.Mean > 200e6 || in.Low > a.Mean {
			t.Errorf("flow %d: %+v", i, a)
		}
	}
	one := output(t, "query", "-dir", dir, "-flow", list[0].Flow)
	if !strings.Contains(one, "1 of 1 flows") || !strings.Contains(one, list[0].Flow) {
		t.Errorf("one flow:\n%s", one)
	}
	again := append([]string{"record"}, captures...)
	for _, wrong := range [][]string{again, {"query", "-from", "2100-01-01T00:00:00Z"}, {"query", "-seed", "2"}} {
		if run(t.Context(), append(wrong, "-dir", dir), io.Discard, io.Discard) == nil {
			t.Errorf("%q: no error", wrong)
		}
	}
	segment := filepath.Join(dir, "ingress", "0000000000000000.colate")
	data, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data[:len(data)/8] {
		data[i] ^= 1
	}
	if err := os.WriteFile(segment, data, 0o666); err != nil {
		t.Fatal(err)
	}
	if said := output(t, "query", "-dir", dir); !strings.Contains(said, "missing: ") {
		t.Errorf("of a damaged store:\n%s", said)
	}
}

func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"erase": `command "erase"`, "query": "-dir is missing", "query -dir nowhere": "nothing was recorded", "query -from noon": "noon",
		"record -dir x -period 1us": "-period", "record -dir x -in missing.pcap": "missing.pcap",
	} {
		if err := run(t.Context(), strings.Fields(args), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", args, err, want)
		}
	}
}
