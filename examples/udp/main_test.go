package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

// rows runs the program, which must end by itself long before the deadline.
func rows(t *testing.T, args ...string) []row {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var stdout bytes.Buffer
	if err := run(ctx, append(args, "-json"), &stdout, io.Discard); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	var rows []row
	if err := json.Unmarshal(stdout.Bytes(), &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// meanHolds reports whether LDA's mean is as near to the exact one as it must
// be but once in 10^8 intervals: what is in usable cells is, by the hash, a
// random S of the N that arrived, drawn without replacement, the mean of which
// has the variance σ²(1/S − 1/N)·N/(N−1). Six of its roots are allowed, and a
// nanosecond for rounding.
func meanHolds(w *row) bool {
	s, n := float64(w.Sample), float64(w.Exact.Received)
	variance := w.Exact.StdDev * w.Exact.StdDev * (1/s - 1/n) * n / (n - 1)
	return math.Abs(w.LDA.Mean-w.Exact.Mean) <= 6*math.Sqrt(variance)+1
}

func TestAgainstTruth(t *testing.T) {
	const intervals = 5
	usable, shifted := 0, 0
	for i, w := range rows(t, "-intervals", "5", "-interval", "100ms", "-rate", "5000", "-loss", "0.02") {
		t.Log(&w)
		if w.Interval != i || i >= intervals || w.Exact.Sent < 200 || w.Exact.Received == 0 {
			t.Errorf("row %d: %+v", i, w)
		}
		if w.LDA == nil && w.Problem != "" {
			continue // its marker was lost
		}
		usable++
		if w.LDA.Sent != w.Exact.Sent || w.LDA.Received != w.Exact.Received || w.LDA.Lost != w.Exact.Lost {
			t.Errorf("%d: sent, received and lost %+v, want %+v", i, w.LDA, w.Exact)
		}
		if w.Range == nil || w.Usable > w.Cells || w.Exact.Mean <= 0 || !meanHolds(&w) {
			t.Errorf("%d: %+v", i, w)
		}
		// The check finds a clock that is ahead by the mean delay, unless so
		// much is lost on a busy machine that the mean rests on little.
		if w.LDA.Mean += w.Exact.Mean; !meanHolds(&w) {
			shifted++
		}
	}
	if usable == 0 || shifted == 0 {
		t.Errorf("%d of %d intervals usable, and a wrong mean found in %d", usable, intervals, shifted)
	}
}

// Losing everything, markers too, ends with every interval accounted for.
func TestAllLost(t *testing.T) {
	got := rows(t, "-intervals", "3", "-interval", "50ms", "-rate", "1000", "-loss", "1")
	for i, w := range got {
		if w.Problem == "" || w.Exact.Received != 0 || w.Exact.Lost != w.Exact.Sent || w.Exact.Sent == 0 || w.LDA != nil {
			t.Errorf("row %d: %+v", i, w)
		}
	}
	if len(got) != 3 {
		t.Errorf("%d rows", len(got))
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	var stdout bytes.Buffer
	err := run(ctx, []string{"-interval", "1m"}, &stdout, io.Discard)
	if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 10*time.Second {
		t.Errorf("%v after %v, having printed\n%s", err, took, &stdout)
	}
}

func TestUsage(t *testing.T) {
	var stderr bytes.Buffer
	if err := run(context.Background(), []string{"-h"}, io.Discard, &stderr); !errors.Is(err, flag.ErrHelp) || !strings.Contains(stderr.String(), "usage: udp") {
		t.Errorf("-h: %v, %q", err, &stderr)
	}
	for args, want := range map[string]string{
		"-n 3":              "-h explains the flags",
		"now":               `unexpected argument "now"`,
		"-intervals 0":      "-intervals 0: want 1 to",
		"-interval 1ms":     "-interval 1ms: want 50ms to",
		"-rate NaN":         "-rate NaN: want 100 to",
		"-rate 1e9":         "want 100 to",
		"-loss 1.01":        "-loss 1.01: want 0 to 1",
		"-loss NaN":         "-loss NaN: want 0 to 1",
		"-seed minus":       "-seed",
		"-interval forever": "-interval",
	} {
		if err := run(context.Background(), strings.Fields(args), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", args, err, want)
		}
	}
}
