package main

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/hoplag/hoplag/hashing"
)

// A flowRecord is what a flow collector knows about one flow.
type flowRecord struct {
	tuple       hashing.Tuple
	packets     uint64 // that arrived
	first, last int64  // at either point, ns
}

// A flowTable stands for a flow collector: which flows there were, when, and how large.
type flowTable map[hashing.Tuple]flowRecord

// add adds to what is known about a flow.
func (t flowTable) add(r flowRecord) {
	if known, ok := t[r.tuple]; ok {
		r.packets += known.packets
		r.first, r.last = min(r.first, known.first), max(r.last, known.last)
	}
	t[r.tuple] = r
}

// flowsFile has the flows of a recording: protocol, ends, and what a flowRecord has.
const flowsFile = "flows.csv"

// write writes the flows to a directory, largest first.
func (t flowTable) write(dir string) error {
	flows := slices.SortedFunc(maps.Values(t), func(a, b flowRecord) int {
		return cmp.Or(cmp.Compare(b.packets, a.packets), cmp.Compare(a.first, b.first),
			bytes.Compare(a.tuple.Append(nil), b.tuple.Append(nil)))
	})
	var file bytes.Buffer
	w := csv.NewWriter(&file)
	for _, f := range flows {
		w.Write([]string{
			fmt.Sprint(f.tuple.Proto), f.tuple.Source().String(), f.tuple.Destination().String(),
			fmt.Sprint(f.packets), fmt.Sprint(f.first), fmt.Sprint(f.last),
		})
	}
	w.Flush()
	return os.WriteFile(filepath.Join(dir, flowsFile), file.Bytes(), 0o666)
}

// readFlows reads what write wrote.
func readFlows(dir string) (flows []flowRecord, err error) {
	text, err := os.ReadFile(filepath.Join(dir, flowsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: nothing was recorded in %s", err, dir)
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord = 6
	rows, other := r.ReadAll()
	if err := cmp.Or(err, other); err != nil {
		return nil, fmt.Errorf("%s: %w", flowsFile, err)
	}
	for _, row := range rows {
		var f flowRecord
		var errs [6]error
		var proto uint64
		var ends [2]netip.AddrPort
		proto, errs[0] = strconv.ParseUint(row[0], 10, 8)
		ends[0], errs[1] = netip.ParseAddrPort(row[1])
		ends[1], errs[2] = netip.ParseAddrPort(row[2])
		f.packets, errs[3] = strconv.ParseUint(row[3], 10, 64)
		f.first, errs[4] = strconv.ParseInt(row[4], 10, 64)
		f.last, errs[5] = strconv.ParseInt(row[5], 10, 64)
		if err := errors.Join(errs[:]...); err != nil {
			return nil, fmt.Errorf("%s: %w", flowsFile, err)
		}
		f.tuple = hashing.MakeTuple(uint8(proto), ends[0], ends[1])
		flows = append(flows, f)
	}
	return flows, nil
}
