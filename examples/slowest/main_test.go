package main

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"testing"
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
