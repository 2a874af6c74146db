package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hoplag/hoplag/examples/internal/relay"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue/trace"
)

// records returns the packets of one of the shipped captures.
func records(t *testing.T, name string) []trace.Record {
	t.Helper()
	file := relay.Must(os.Open(filepath.Join("testdata", name)))(t)
	defer file.Close()
	r := relay.Must(trace.NewReader(file))(t)
	var all []trace.Record
	for rec, err := range r.All() {
		relay.Check(t, err)
		rec.Frame = bytes.Clone(rec.Frame)
		all = append(all, rec)
	}
	return all
}

// write makes a capture file of the packets, all of one link type.
func write(t *testing.T, snaplen int, records []trace.Record) string {
	t.Helper()
	var file []byte
	words := func(values ...uint32) {
		for _, v := range values {
			file = binary.LittleEndian.AppendUint32(file, v)
		}
	}
	words(0xa1b23c4d, 2|4<<16, 0, 0, uint32(snaplen), uint32(records[0].Link)) // pcap 2.4, in nanoseconds
	for _, rec := range records {
		frame := rec.Frame[:min(len(rec.Frame), snaplen)]
		words(uint32(rec.Time/1e9), uint32(rec.Time%1e9), uint32(len(frame)), uint32(rec.Length))
		file = append(file, frame...)
	}
	path := filepath.Join(t.TempDir(), "capture.pcap")
	relay.Check(t, os.WriteFile(path, file, 0o600))
	return path
}

// failure runs the program, which must fail without results, and returns its error.
func failure(t *testing.T, args ...string) string {
	t.Helper()
	var stdout bytes.Buffer
	err := run(t.Context(), args, &stdout, io.Discard)
	if err == nil || stdout.Len() > 0 {
		t.Fatalf("twopoint %s: error %v; printed\n%s", strings.Join(args, " "), err, &stdout)
	}
	return err.Error()
}

// Clocks that disagree make delays whose sums wrap in the cells: by 25 s in the
// fullest, by 2 min in most. They are unwrapped.
func TestClocksApartAreNoHarm(t *testing.T) {
	in, out := write(t, 96, records(t, "ingress.pcap.gz")), records(t, "egress.pcap.gz")
	for _, offset := range []time.Duration{0, 25 * time.Second, 2 * time.Minute} {
		later := slices.Clone(out)
		for i := range later {
			later[i].Time += int64(offset)
		}
		w := decoded(t, "-interval", "0", "-before", in, "-after", write(t, 96, later)).Intervals[0]
		if math.Abs(w.Mean.LDA-w.Mean.Exact) > tolerance(w) {
			t.Errorf("clocks %v apart: mean %v, exact %v", offset, w.Mean.LDA, w.Mean.Exact)
		}
	}
}

// Packets that are cut too short in a capture are reported.
func TestSnapLengths(t *testing.T) {
	in, out := records(t, "ingress.pcap.gz"), records(t, "egress.pcap.gz")
	short := decoded(t, "-before", write(t, 64, in), "-after", write(t, 64, out))
	if w := short.Intervals[0]; w.Lost != decoded(t).Intervals[0].Lost || short.Cut == 0 {
		t.Errorf("cut at the same byte: %d cut, lost %+v", short.Cut, w.Lost)
	}
	if err := failure(t, "-before", write(t, 96, in), "-after", write(t, 64, out)); !strings.Contains(err, "snap length") {
		t.Errorf("different snap lengths: error %q does not say so", err)
	}
	some := slices.Clone(out)
	for i := range some {
		if i%10 == 0 {
			some[i].Frame = some[i].Frame[:40]
		}
	}
	if text := output(t, "-before", write(t, 96, in), "-after", write(t, 96, some)); !strings.Contains(text, "746 packets are cut off") {
		t.Errorf("one packet in ten is cut off at one point, which is not told in\n%s", text)
	}
}

// Packets that came out without having gone in are reported.
func TestNotes(t *testing.T) {
	in, b := records(t, "ingress.pcap.gz"), write(t, 96, records(t, "egress.pcap.gz"))
	for _, began := range []int{0, 1000} {
		text := output(t, "-before", write(t, 96, in[began:]), "-after", b)
		if strings.Contains(text, "packets came out that had not gone in") != (began > 0) {
			t.Errorf("-before began %d packets late:\n%s", began, text)
		}
	}
}

// A passing is a packet, of one byte of identity, at a point.
type passing struct {
	side trace.Side
	time int64
	id   byte
}

func meterOf(t *testing.T, all ...passing) (*report, error) {
	t.Helper()
	m := relay.Must(newMeter(1, time.Second))(t)
	for _, one := range all {
		relay.Check(t, m.update(one.side, one.time, hashing.Word(7, uint64(one.id))))
	}
	return m.report()
}

func TestTimesBeforeTheEpoch(t *testing.T) {
	const in, out, start = trace.Ingress, trace.Egress, math.MinInt64 + 1
	r := relay.Must(meterOf(t, passing{in, start, 1}, passing{out, start + 1000, 1},
		passing{in, start + 25e8, 2}, passing{out, start + 25e8 + 3000, 2}))(t)
	if r.Seconds != 2.500003 || len(r.Intervals) != 2 || r.Intervals[0].Mean.Exact != 1000 ||
		r.Intervals[1].Start != 2 || r.Intervals[1].Mean.Exact != 3000 {
		t.Errorf("%+v", r)
	}
	if r, err := meterOf(t, passing{in, start, 1}, passing{out, math.MaxInt64, 1}); err == nil || !strings.Contains(err.Error(), "292 years") {
		t.Errorf("times that differ by more than an int64 holds: %v, %v", r, err)
	}
}

// Where no packet can be told from its copies there is no exact deviation, and from a single usable cell LDA
// has none; neither is printed as zero.
func TestNoDeviation(t *testing.T) {
	r := relay.Must(meterOf(t,
		passing{trace.Ingress, 0, 1}, passing{trace.Ingress, 0, 7},
		passing{trace.Ingress, 15e8, 1}, passing{trace.Ingress, 15e8, 7},
		passing{trace.Egress, 16e8, 1}, passing{trace.Egress, 16e8, 7},
		passing{trace.Ingress, 2e9, 2}, passing{trace.Egress, 2e9 + 100, 2},
		passing{trace.Ingress, 3e9, 2}, passing{trace.Egress, 3e9 + 100, 2},
		passing{trace.Ingress, 3e9 + 100, 3}, passing{trace.Egress, 3e9 + 300, 3},
		passing{trace.Ingress, 4e9, 3}))(t)
	if first := r.Intervals[0]; first.Mean == nil || first.Mean.Exact != 16e8 || first.StdDev != nil {
		t.Errorf("one packet of each two identical ones: mean %+v, deviation %+v, want 1.6 s and none", first.Mean, first.StdDev)
	}
	if one := r.Intervals[2]; one.Mean == nil || one.StdDev != nil {
		t.Errorf("one usable cell: mean %+v, deviation %+v, want a mean and no deviation", one.Mean, one.StdDev)
	}
	if known := r.Intervals[3]; known.StdDev == nil || known.StdDev.Exact != 50 {
		t.Errorf("deviation %+v, exact 50", known.StdDev)
	}
	if last := r.Intervals[4]; last.Mean != nil || last.Problem != "none of the packets came out" {
		t.Errorf("nothing came out: %+v", last)
	}
	var text bytes.Buffer
	if err := r.writeText(&text); err != nil || strings.Count(text.String(), " - ") < 8 {
		t.Errorf("%v; want the missing figures as -, in\n%s", err, &text)
	}
}
