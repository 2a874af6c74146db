package programs

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/hoplag/hoplag/hashing"
)

// A FlowRecord is what a flow collector knows about one flow.
type FlowRecord struct {
	Tuple       hashing.Tuple
	Packets     uint64 // that arrived
	First, Last int64  // at either point, ns
}

// A FlowTable stands for a flow collector: which flows there were, when, and how
// large. The zero value is ready.
type FlowTable struct{ flows map[hashing.Tuple]FlowRecord }

// Add adds to what is known about a flow.
func (t *FlowTable) Add(r FlowRecord) {
	if t.flows == nil {
		t.flows = map[hashing.Tuple]FlowRecord{}
	}
	if known, ok := t.flows[r.Tuple]; ok {
		r.Packets += known.Packets
		r.First, r.Last = min(r.First, known.First), max(r.Last, known.Last)
	}
	t.flows[r.Tuple] = r
}

// FlowsFile is the file with the flows of a recording.
const FlowsFile = "flows.csv"

// Write writes the flows to the directory's flows.csv, largest first.
func (t *FlowTable) Write(dir string) error {
	flows := slices.SortedFunc(maps.Values(t.flows), func(a, b FlowRecord) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets), cmp.Compare(a.First, b.First), cmp.Compare(FlowName(&a.Tuple), FlowName(&b.Tuple)))
	})
	path := filepath.Join(dir, FlowsFile)
	file, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	w := csv.NewWriter(file)
	for _, f := range flows {
		w.Write([]string{
			FlowName(&f.Tuple), strconv.FormatUint(f.Packets, 10), strconv.FormatInt(f.First, 10), strconv.FormatInt(f.Last, 10),
		})
	}
	w.Flush()
	if err := errors.Join(w.Error(), file.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// ReadFlows reads the directory's flows.csv.
func ReadFlows(dir string) (flows []FlowRecord, err error) {
	file, err := os.Open(filepath.Join(dir, FlowsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: nothing was recorded in %s", err, dir)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r := csv.NewReader(file)
	r.FieldsPerRecord = 4
	for {
		row, err := r.Read()
		if err == io.EOF {
			return flows, nil
		}
		if err != nil {
			return nil, err
		}
		var f FlowRecord
		var errs [4]error
		f.Tuple, errs[0] = ParseFlow(row[0])
		f.Packets, errs[1] = strconv.ParseUint(row[1], 10, 64)
		f.First, errs[2] = strconv.ParseInt(row[2], 10, 64)
		f.Last, errs[3] = strconv.ParseInt(row[3], 10, 64)
		if err := errors.Join(errs[:]...); err != nil {
			return nil, fmt.Errorf("flows.csv: %w", err)
		}
		flows = append(flows, f)
	}
}
