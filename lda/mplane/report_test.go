package mplane

import (
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

// aPlan is of a network.
var aPlan = &Plan{fingerprint: 0x0123456789abcdef}

func someReport() Report {
	return Report{Monitor: 3, Interval: 1_700_000_000, Measurements: []Measurement{
		{Segment: SegmentID{From: 1, To: 2, Via: 3}, Sent: 1000, Lost: 3,
			Delay: estimate.Delay{Mean: 1234.5, StdDev: 67.25, N: 890}, Error: 2.5},
		{Segment: SegmentID{From: 3, To: 5, Via: notInside, Path: 0xdeadbeef}, Sent: 10,
			Delay: estimate.Delay{Mean: -1e6, N: 10}, ahead: -2e6, aheadError: 0.5},
	}}
}

// The bytes of an encoding do not change from release to release.
func TestReportGolden(t *testing.T) {
	data, err := aPlan.encode(someReport(), NewKey("key"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "484c4d53030123456789abcdef000000006553f100000000030002" +
		"0000000100000002000000030000000000000000000003e80000000000000003000000000000037a" +
		"40934a00000000004050d000000000004004000000000000" + "00000000000000000000000000000000" +
		"0000000300000005ffffffffdeadbeef000000000000000a0000000000000000000000000000000a" +
		"c12e84800000000000000000000000000000000000000000" + "c13e8480000000003fe0000000000000"
	if got := hex.EncodeToString(data[:len(data)-tagSize-4]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(data) != len(want)/2+4+tagSize {
		t.Errorf("%d bytes with checksum and tag", len(data))
	}
	got, network, err := decodeReport(data, NewKey("key"))
	if diff := cmp.Diff(someReport(), got, cmp.AllowUnexported(Measurement{})); diff != "" || err != nil || network != aPlan.fingerprint {
		t.Errorf("%v %s", err, diff)
	}
}

// A full report fits a datagram; one measurement more takes another. An impossible one is refused.
func TestReportLimits(t *testing.T) {
	r := Report{Measurements: make([]Measurement, maxMeasurements)}
	data, err := aPlan.encode(r, NewKey("key"))
	if err != nil || len(data) > 1400 {
		t.Errorf("%d bytes, error %v", len(data), err)
	}
	r.Measurements = append(r.Measurements, Measurement{})
	if all, err := aPlan.Datagrams(r, NewKey("key")); err != nil || len(all) != 2 || string(all[0]) != string(data) {
		t.Errorf("%d measurements in %d datagrams, error %v", len(r.Measurements), len(all), err)
	}
	for name, m := range map[string]Measurement{
		"more lost than sent": {Sent: 1, Lost: 2},
		"no mean":             {Delay: estimate.Delay{Mean: math.NaN()}},
		"infinite mean":       {Delay: estimate.Delay{Mean: math.Inf(-1)}},
		"negative deviation":  {Delay: estimate.Delay{StdDev: -1}},
		"infinite error":      {Error: math.Inf(1)},
		"clock without error": {ahead: 1},
		"no clock":            {ahead: math.NaN(), aheadError: 1},
		"negative error":      {aheadError: -1},
	} {
		if _, err := aPlan.encode(Report{Measurements: []Measurement{m}}, Key{}); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func FuzzDecodeReport(f *testing.F) {
	data, err := aPlan.encode(someReport(), Key{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)-measurementSize])
	f.Fuzz(func(t *testing.T, data []byte) {
		r, network, err := decodeReport(data, Key{})
		if err != nil {
			return
		}
		again, err := (&Plan{fingerprint: network}).encode(r, Key{})
		if err != nil || string(again) != string(data) {
			t.Errorf("decoded and encoded again: %x, %v; want %x", again, err, data)
		}
	})
}

// TestMeasureFewCells: of 400 segments whose losses leave a few usable cells, the mean is off by more than 3.29
// errors in no more than 5, which chance exceeds in 4 cases of a million. The control takes LDA's standard error.
func TestMeasureFewCells(t *testing.T) {
	c := lda.Config{Banks: [4]lda.Bank{{Rows: 64, Shift: 2}}, SumBits: 40, DigestBits: 16}
	wrong, control, answers := 0, 0, 0
	for run := range uint64(400) {
		random := rand.New(rand.NewPCG(run, 9))
		up, _ := lda.New(c)
		down, _ := lda.New(c)
		var truth estimate.Moments
		for i := range int64(5000) {
			id, delay := hashing.Packet(random.Uint64()), int64(random.ExpFloat64()*1e5)
			up.Update(id, i*200_000)
			if i%100 >= 15 { // or it is lost
				down.Update(id, i*200_000+delay)
				truth.Add(float64(delay))
			}
		}
		r, err := lda.Estimate(up, down)
		if m := Measure(SegmentID{Via: 1}, &r); err == nil && m.Delay.N > 0 {
			answers++
			if off := math.Abs(m.Delay.Mean - truth.Mean()); off > 3.29*m.Error {
				wrong++
			}
			if off := math.Abs(r.Mean - truth.Mean()); off > 3.29*r.MeanError {
				control++
			}
		}
	}
	if wrong > 5 || control <= 5 || answers < 200 {
		t.Errorf("%d and %d of %d segments are off by more", wrong, control, answers)
	}
}
