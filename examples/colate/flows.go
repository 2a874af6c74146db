package main

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/queue/trace"
)

// flow is what a flow collector knows about one flow.
type flow struct {
	tuple       hashing.Tuple
	packets     uint64 // that arrived
	first, last int64  // at either point, ns
}

// flowsFile is the file with the flows of a recording.
const flowsFile = "flows.csv"

type flowTable struct{ flows map[hashing.Tuple]*flow }

func newFlowTable() *flowTable { return &flowTable{map[hashing.Tuple]*flow{}} }

func (t *flowTable) update(at trace.Point, tuple *hashing.Tuple, now int64) {
	f := t.flows[*tuple]
	if f == nil {
		f = &flow{tuple: *tuple, first: now, last: now}
		t.flows[*tuple] = f
	}
	f.first, f.last = min(f.first, now), max(f.last, now)
	if at == trace.Egress {
		f.packets++
	}
}

// write writes the flows to the directory's flows.csv, largest first.
func (t *flowTable) write(dir string) error {
	var flows []*flow
	for _, f := range t.flows {
		flows = append(flows, f)
	}
	slices.SortFunc(flows, func(a, b *flow) int {
		return cmp.Or(cmp.Compare(b.packets, a.packets), cmp.Compare(a.first, b.first), strings.Compare(name(&a.tuple), name(&b.tuple)))
	})
	file, err := os.Create(filepath.Join(dir, flowsFile))
	if err != nil {
		return err
	}
	w := csv.NewWriter(file)
	for _, f := range flows {
		w.Write([]string{name(&f.tuple), strconv.FormatUint(f.packets, 10), strconv.FormatInt(f.first, 10), strconv.FormatInt(f.last, 10)})
	}
	w.Flush()
	return errors.Join(w.Error(), file.Close())
}

// readFlows reads the directory's flows.csv.
func readFlows(dir string) ([]flow, error) {
	file, err := os.Open(filepath.Join(dir, flowsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: nothing was recorded in %s", err, dir)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r := csv.NewReader(file)
	r.FieldsPerRecord = 4
	var flows []flow
	for {
		row, err := r.Read()
		if err == io.EOF {
			return flows, nil
		}
		if err != nil {
			return nil, err
		}
		var f flow
		var errs [4]error
		f.tuple, errs[0] = parseName(row[0])
		f.packets, errs[1] = strconv.ParseUint(row[1], 10, 64)
		f.first, errs[2] = strconv.ParseInt(row[2], 10, 64)
		f.last, errs[3] = strconv.ParseInt(row[3], 10, 64)
		if err := errors.Join(errs[:]...); err != nil {
			return nil, fmt.Errorf("flows.csv: %w", err)
		}
		flows = append(flows, f)
	}
}

// list prints the flows of a directory.
func list(dir string, top int, stdout io.Writer) error {
	flows, err := readFlows(dir)
	if err != nil {
		return err
	}
	if top > 0 {
		flows = flows[:min(top, len(flows))]
	}
	for _, f := range flows {
		fmt.Fprintf(stdout, "%8d packets  %s to %s  %s\n", f.packets,
			time.Unix(0, f.first).UTC().Format(time.RFC3339Nano), time.Unix(0, f.last).UTC().Format(time.RFC3339Nano), name(&f.tuple))
	}
	return nil
}

var protocols = map[string]uint8{"icmp": 1, "tcp": 6, "udp": 17, "ipv6-icmp": 58}

// name formats a 5-tuple as -flow takes it.
func name(t *hashing.Tuple) string {
	protocol := strconv.Itoa(int(t.Proto))
	for word, number := range protocols {
		if number == t.Proto {
			protocol = word
		}
	}
	return fmt.Sprintf("%s %v %v", protocol, t.Source(), t.Destination())
}

func parseName(s string) (hashing.Tuple, error) {
	bad := func(err error) (hashing.Tuple, error) {
		return hashing.Tuple{}, fmt.Errorf("flow %q: %w", s, err)
	}
	fields := strings.Fields(s)
	if len(fields) != 3 {
		return bad(errors.New("want a protocol, a source and a destination, as in \"tcp 10.0.0.1:80 10.0.0.2:1234\""))
	}
	protocol, ok := protocols[fields[0]]
	if !ok {
		number, err := strconv.ParseUint(fields[0], 10, 8)
		if err != nil {
			return bad(errors.New("the protocol is tcp, udp, icmp, ipv6-icmp or a number"))
		}
		protocol = uint8(number)
	}
	src, err := netip.ParseAddrPort(fields[1])
	if err != nil {
		return bad(err)
	}
	dst, err := netip.ParseAddrPort(fields[2])
	if err != nil {
		return bad(err)
	}
	return hashing.MakeTuple(protocol, src, dst), nil
}
