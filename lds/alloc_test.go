package lds

import (
	"strings"
	"testing"

	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

func TestNothingAllocates(t *testing.T) {
	allocates := func(what string, f func()) {
		if n := testing.AllocsPerRun(20, f); n > 0 {
			t.Errorf("%s allocates %v times", what, n)
		}
	}
	for name, c := range shapes() {
		a, b := fill(t, c, packets(61, 500, 20))
		allocates(name+": Update", func() { a.Update(1, 2, 3) })
		allocates(name+": Estimate", func() { _, _ = Estimate(b, b, hashing.Flow(hashing.Word(1, 0))); a.Packets(1) })
		allocates(name+": Merge and Reset", func() { _ = a.Merge(b); a.Reset() })
	}
	all, _ := tableTraffic(8, 400, 64, 0.01)
	up, down := observeTable(t, TableConfig{Flows: 64, SumBits: 56, DigestBits: 16}, all, 0)
	allocates("a table", func() {
		for _, p := range all[:100] {
			up.Update(p.flow, p.packet, p.sent)
			_, _ = EstimateTable(up, down, p.flow)
		}
		_ = up.Merge(down)
		up.Reset()
	})
}

// What no constructor made has no cells. Whatever reads or writes it says so.
func TestZeroValuesPanic(t *testing.T) {
	var s, other Sketch
	var table Table
	var a Accumulator
	for name, f := range map[string]func(){
		"Update":        func() { s.Update(1, 2, 3) },
		"Packets":       func() { s.Packets(1) },
		"Merge":         func() { _ = s.Merge(&other) },
		"AppendBinary":  func() { _, _ = s.AppendBinary(nil) },
		"Estimate":      func() { _, _ = Estimate(&s, &other, 1) },
		"Decode":        func() { _, _ = Decode(t.Context(), &s, &other, nil, joint.Options{}) },
		"Table.Update":  func() { table.Update(1, 2, 3) },
		"Table.Hold":    func() { table.Hold([]hashing.Flow{1}) },
		"Table.Merge":   func() { _ = table.Merge(&table) },
		"Table.Append":  func() { _, _ = table.AppendBinary(nil) },
		"EstimateTable": func() { _, _ = EstimateTable(&table, &table, 1) },
		"Add":           func() { _ = a.Add(0, 1, &s, &other) },
		"a.Estimate":    func() { _, _ = a.Estimate(1) },
		"a.Decode":      func() { _, _ = a.Decode(t.Context(), nil, joint.Options{}) },
		"nil Estimate":  func() { _, _ = Estimate(nil, mustNew(t, lossless), 1) },
		"nil Decode":    func() { _, _ = Decode(t.Context(), mustNew(t, lossless), nil, nil, joint.Options{}) },
		"nil Merge":     func() { _ = mustNew(t, lossless).Merge(nil) },
		"nil Table":     func() { _, _ = EstimateTable(nil, nil, 1) },
		"nil Add":       func() { _ = mustAccumulate(t, lossless).Add(0, 1, nil, nil) },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.HasSuffix(text, "did not make") {
					t.Errorf("%s: %q", name, text)
				}
			}()
			f()
		}()
	}
}
