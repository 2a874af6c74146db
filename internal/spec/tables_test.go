package spec_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/mplane"
	"github.com/hoplag/hoplag/lds"
	"github.com/hoplag/hoplag/rli"
)

// A row of a table of SPEC.md: how often, how many bytes, what.
type row struct{ times, bytes, what string }

// tables returns the tables of records in SPEC.md by their magic.
func tables(t *testing.T) map[string][]row {
	text, err := os.ReadFile(filepath.Join("..", "..", "SPEC.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]row{}
	for _, table := range strings.Split(string(text), "| times | bytes | what |\n|---|---|---|\n")[1:] {
		table, _, _ = strings.Cut(table, "\n\n")
		var rows []row
		for line := range strings.Lines(table) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			rows = append(rows, row{strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])})
		}
		all[strings.Trim(rows[0].what, "`")] = rows
	}
	return all
}

// A walk reads a record by its table. named are the numbers that rows name, and what a table leaves to the
// text.
type walk struct {
	data  []byte
	at    int
	named map[string]int
}

var (
	named   = regexp.MustCompile(`\*([^*]+)\*`)
	version = regexp.MustCompile(`^version: (\d+)$`)
	ceiling = regexp.MustCompile(`^⌈(.+)/(\d+)⌉$`)
)

// value returns what an expression of a table stands for, or 1 for none.
func (w *walk) value(expression string) int {
	product := 1
	for _, factor := range strings.Split(expression, " × ") {
		divisor := 1
		if m := ceiling.FindStringSubmatch(factor); m != nil {
			factor, divisor = m[1], must(strconv.Atoi(m[2]))
		}
		n, known := w.named[factor]
		if !known && factor != "" {
			n = must(strconv.Atoi(factor))
		} else if !known {
			n = 1
		}
		product *= (n + divisor - 1) / divisor
	}
	return product
}

// table walks through the rows and must come to the end.
func (w *walk) table(rows []row) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("at byte %d: %v", w.at, problem)
		}
	}()
	for i := 0; i < len(rows); {
		group := i + 1
		for rows[i].times != "" && group < len(rows) && rows[group].times == rows[i].times {
			group++
		}
		for range w.value(rows[i].times) {
			for k, r := range rows[i:group] {
				w.row(r, rows[i+k+1:])
			}
		}
		i = group
	}
	w.need(w.at == len(w.data), "the table ends, of %d", len(w.data))
	return nil
}

// need panics unless a record is what its table says.
func (w *walk) need(ok bool, format string, args ...any) {
	if !ok {
		panic(fmt.Sprintf(format, args...))
	}
}

// row reads a field; after are the rows after it.
func (w *walk) row(r row, after []row) {
	size := 0
	switch r.bytes {
	case "rest":
		size = len(w.data) - w.at
		for _, r := range after {
			size -= w.value(r.times) * w.value(r.bytes)
		}
	case "varint":
		_, size = binary.Uvarint(w.data[w.at:])
		w.need(size > 0, "%s: no varint", r.what)
	default:
		size = w.value(r.bytes)
	}
	w.need(size >= 0 && size <= len(w.data)-w.at, "%s: %d bytes of %d", r.what, size, len(w.data)-w.at)
	field := w.data[w.at : w.at+size]
	w.at += size
	number := 0
	for _, b := range field[:min(size, 8)] {
		number = number<<8 | int(b)
	}
	switch m := version.FindStringSubmatch(r.what); {
	case strings.HasPrefix(r.what, "`"):
		w.need(string(field) == strings.Trim(r.what, "`"), "%s: it is %q", r.what, field)
	case m != nil:
		w.need(m[1] == strconv.Itoa(number), "%s: it is %d", r.what, number)
	case strings.HasPrefix(r.what, "CRC-32C"):
		sum := crc32.Checksum(w.data[:w.at-size], crc32.MakeTable(crc32.Castagnoli))
		w.need(sum == binary.BigEndian.Uint32(field), "%s: it is %x, want %08x", r.what, field, sum)
	}
	if m := named.FindStringSubmatch(r.what); m != nil && size <= 8 {
		w.named[m[1]] = number
	}
}

// A sample is a real record, with the numbers that its table leaves to the text.
type sample struct {
	magic string
	data  []byte
	named map[string]int
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// foldAt is where an epoch says how its 600 counters are folded.
const foldAt = 39

// synopses are records of the four designs.
func synopses() []sample {
	aggregator := must(lda.New(lda.DefaultConfig))
	flows := must(lds.New(lds.Config{Rows: 2, Columns: 7, Spread: 1, SumBits: 40, DigestBits: 12,
		Rates: [lds.MaxRows]float64{1, 0.5}}))
	table := must(lds.NewTable(lds.TableConfig{Flows: 8, SumBits: 40, DigestBits: 12}))
	counters := colate.DefaultConfig
	counters.Counters, counters.PerFlow = 600, 4
	recorder := must(colate.New(counters))
	receive := rli.DefaultConfig
	receive.Flows = 16
	receiver := must(rli.NewReceiver(receive))
	for i := range int64(100) {
		at := 1_800_000_000_000_000_000 + 1000*i
		p := hashing.Word(1, uint64(i))
		aggregator.Update(p, at)
		flows.Update(hashing.Flow(i%3), p, at)
		table.Update(hashing.Flow(i%3+1), p, at)
		recorder.Update(hashing.Flow(i%3), p, at)
		receiver.Update(hashing.Flow(i%3), 100, at)
		if i%10 == 9 {
			receiver.Reference(rli.ReferencePacket{Sequence: uint64(i / 10), Sent: at - 500}, at+1)
		}
	}
	injector := must(rli.NewInjector(rli.InjectorConfig{Every: 1}))
	plain := injector.Append(nil, rli.ReferencePacket{Sequence: 1}, 2)
	injector.SetKey([16]byte{1})
	plan := must(new(mplane.Network).Plan(nil, nil))
	report := mplane.Report{Interval: 2, Monitor: 3, Measurements: make([]mplane.Measurement, 2)}
	epoch := must(recorder.MarshalBinary())
	return []sample{
		{"HLDA", must(aggregator.MarshalBinary()), map[string]int{"cells": 2048 + 3*1024}},
		{"fingerprint, and the configuration as in 2.3:", aggregator.AppendPacked(nil, 0), map[string]int{}},
		{"HLDS", must(flows.MarshalBinary()), map[string]int{}},
		{"HLDT", must(table.MarshalBinary()), map[string]int{}},
		{"HREF", plain, map[string]int{"tagged": 0}},
		{"HREF", injector.Append(nil, rli.ReferencePacket{Sequence: 2}, 3), map[string]int{"tagged": 1}},
		{"HCLT", epoch, map[string]int{"blocks": (((600-1)>>epoch[foldAt] + 1) + 255) / 256}},
		{"HRLI", must(receiver.MarshalBinary()), map[string]int{}},
		{"HLMS", must(plan.Datagrams(report, mplane.Key{}))[0], map[string]int{"tagged": 0}},
		{"HLMS", must(plan.Datagrams(report, mplane.NewKey("key")))[0], map[string]int{"tagged": 1}},
	}
}

// segment is a frame of a store's only segment.
func segment(t *testing.T) []sample {
	dir := t.TempDir()
	store := must(colate.OpenStore(dir, colate.StoreOptions{}))
	config := colate.DefaultConfig
	config.Counters, config.PerFlow = 600, 4
	recorder := must(colate.New(config))
	for epoch := range int64(3) {
		recorder.Update(1, 2, 1_800_000_000_000_000_000+epoch*config.Period)
		if err := store.Append(recorder); err != nil {
			t.Fatal(err)
		}
		recorder.Reset()
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	names := must(filepath.Glob(filepath.Join(dir, "*.colate")))
	data := must(os.ReadFile(names[0]))
	frame := 32 + int(binary.BigEndian.Uint32(data[4:]))
	return []sample{{"HCLG", data[:frame], map[string]int{}}}
}

// frontDoor are the messages of two points.
func frontDoor(t *testing.T) (all []sample) {
	synctest.Test(t, func(t *testing.T) {
		config := hoplag.Config{Key: hoplag.NewKey("a secret of the test"), Name: "a", Flows: 10}
		a, b := must(hoplag.NewPoint(config)), must(hoplag.NewPoint(config))
		defer a.Close()
		defer b.Close()
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex // for all
		ask := func(_ context.Context, request []byte) ([]byte, error) {
			reply, err := b.Answer(request)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, sample{"HLPQ", bytes.Clone(request), map[string]int{}}, sample{"HLPA", bytes.Clone(reply), map[string]int{}})
			return reply, err
		}
		go func() {
			for i := range 800 {
				id := binary.BigEndian.AppendUint64(nil, uint64(i))
				b.Record(0, time.Now(), b.Packet(id))
				time.Sleep(10 * time.Millisecond)
				if i%10 != 7 { // others are lost
					a.Record(0, time.Now(), a.Packet(id))
				}
			}
			cancel()
		}()
		go func() {
			for record := range b.Records(ctx) {
				mu.Lock()
				all = append(all, sample{"HLPC", bytes.Clone(record), map[string]int{}})
				mu.Unlock()
			}
		}()
		for range a.Follow(ctx, ask) {
		}
		synctest.Wait()
	})
	return all
}

// Real records match the page's tables, field by field, to the last byte.
func TestSpecTables(t *testing.T) {
	all := tables(t)
	samples := slices.Concat(synopses(), segment(t), frontDoor(t))
	var s spec
	s.makeControl()
	for _, c := range s.Control {
		samples = append(samples, sample{"HOPC", must(hex.DecodeString(c.Packet)), map[string]int{"tagged": min(len(c.Key), 1)}})
	}
	seen := map[string]bool{}
	for _, sample := range samples {
		seen[sample.magic] = true
		w := walk{sample.data, 0, sample.named}
		if all[sample.magic] == nil {
			t.Fatalf("SPEC.md has no table of %s", sample.magic)
		}
		if err := w.table(all[sample.magic]); err != nil {
			t.Errorf("%s: %v", sample.magic, err)
		}
	}
	for magic := range all {
		if !seen[magic] {
			t.Errorf("no record was held to the table of %s", magic)
		}
	}
}

// A record that is a byte too long, or has another version, is refused.
func TestSpecTablesBite(t *testing.T) {
	rows := tables(t)["HLDA"]
	data := synopses()[0].data
	for name, bad := range map[string][]byte{
		"longer": append(bytes.Clone(data), 0), "shorter": data[:len(data)-1],
		"another version": append(append(bytes.Clone(data[:4]), 9), data[5:]...),
	} {
		w := walk{bad, 0, map[string]int{"cells": 2048 + 3*1024}}
		if w.table(rows) == nil {
			t.Errorf("%s: it passes", name)
		}
	}
}
