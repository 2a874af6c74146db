package soak

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := Run(t.Context(), 300*time.Millisecond, 1, &out, func(string) {}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"colate store", "front door", "live heap"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

// Ctrl-C ends a soak early, with a report.
func TestRunInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if err := Run(ctx, time.Hour, 1, &out, func(string) {}); err != nil || !strings.Contains(out.String(), "machine") {
		t.Errorf("%v\n%s", err, &out)
	}
}

// A panic is an error that says where.
func TestFailuresAreTold(t *testing.T) {
	m := machine{round: func(*rand.Rand, *tally) error { panic("out of range") }}
	if err := m.run(rand.New(rand.NewPCG(1, 1))); err == nil || !strings.Contains(err.Error(), "panic: out of range") {
		t.Errorf("a panic: %v", err)
	}
}
