package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/internal/programs"
)

// Every second has its slowest flows, each with the mean that a map of flows has.
func TestSlowest(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-json", "-flows", "3000", "-seconds", "3", "-rate", "60000"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	lines := json.NewDecoder(&out)
	for n := range 3 {
		var s second
		if err := lines.Decode(&s); err != nil {
			t.Fatal(err)
		}
		if s.Second != n || s.Flows < 2500 || s.Sent < 55_000 || s.Lost == 0 || s.WithMean < 100 || len(s.Slowest) != 5 {
			t.Errorf("%+v", s)
		}
		for i, f := range s.Slowest {
			// A packet of the second before may have come out in this one.
			if math.Abs(f.MeanNs-f.ExactNs) > 1e-6*f.MeanNs || f.MeanNs <= 0 || i > 0 && f.MeanNs > s.Slowest[i-1].MeanNs {
				t.Errorf("second %d: %+v", n, f)
			}
		}
	}
}

func TestText(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-flows", "300", "-seconds", "1", "-rate", "5000", "-top", "2"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, "\n") != 3 || !strings.Contains(got, "flows held") || !strings.Contains(got, "exactly") {
		t.Errorf("%s", got)
	}
}

func TestBadSettings(t *testing.T) {
	for _, args := range []string{"-flows 0", "-seconds 0", "-top 0", "-rate 10", "-nonsense"} {
		if err := run(t.Context(), strings.Fields(args), io.Discard, io.Discard); !errors.Is(err, programs.ErrUsage) {
			t.Errorf("%s: %v", args, err)
		}
	}
	if err := run(t.Context(), []string{"-h"}, io.Discard, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Error(err)
	}
}
