package soak

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"
)

func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := Run(t.Context(), 300*time.Millisecond, 1, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "live heap") || strings.Contains(out.String(), ": 0 messages, 0 damaged requests") {
		t.Errorf("%s", &out)
	}
}

// Ctrl-C ends a soak early, with a report.
func TestRunInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if err := Run(ctx, time.Hour, 1, &out, io.Discard); err != nil || !strings.Contains(out.String(), "0 messages") {
		t.Errorf("%v\n%s", err, &out)
	}
}
