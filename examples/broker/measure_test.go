package main

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strings"
	"testing"
)

// rowsOf runs the program with -json and decodes what it prints.
func rowsOf(t *testing.T, args ...string) (found []measured) {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), append(args, "-json"), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		var m measured
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		found = append(found, m)
	}
	return found
}

// Every message counts once at each point, and the mean of all is that of the
// time stamps.
func TestMeasure(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	var sent, received, lost, stamped uint64
	var sum, stamps, slack float64
	for _, m := range rowsOf(t, "-role", "measure", "-rate", "5000", "-duration", "3s", "-costs=false") {
		d := m.Report.Forth
		sent += d.Sent
		received += d.Received
		lost += d.Lost
		stamped += m.StampReceived
		stamps += m.StampMean * float64(m.StampReceived)
		if d.Err == nil {
			sum += d.Mean * float64(d.Received)
			// What the sampling leaves open, and what the clocks do.
			slack += float64(d.Received) * (d.Certain.High - d.Mean)
		}
	}
	if sent != received || received != stamped || lost != 0 || received < 5000 {
		t.Errorf("%d sent, %d received, %d lost, %d stamps", sent, received, lost, stamped)
	}
	if off := math.Abs(sum - stamps); off > 2*slack+0.5*stamps {
		t.Errorf("mean %.0f ns by points, %.0f ns by stamps, want it within %.0f",
			sum/float64(received), stamps/float64(stamped), slack/float64(received))
	}
}

// A receiver that does not keep up drops messages, and the points say so.
func TestMeasureLoss(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	var sent, received, lost uint64
	for _, m := range rowsOf(t, "-role", "measure", "-duration", "3s", "-costs=false", "-pending", "20", "-window", "2000") {
		d := m.Report.Forth
		sent += d.Sent
		received += d.Received
		lost += d.Lost - d.Extra // what came after all
	}
	if lost == 0 || lost > sent-received {
		t.Errorf("%d sent, %d received, %d reported lost", sent, received, lost)
	}
}
