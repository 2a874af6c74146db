package main

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/hoplag/hoplag/hashing"
)

// A flow is what a flow collector knows about one.
type flow struct {
	tuple       hashing.Tuple
	packets     uint64
	first, last int64
}

// A table lists the flows that passed one ring, because digests do not reveal
// names.
type table struct {
	sync.Mutex
	flows  map[hashing.Flow]*flow
	limit  int
	untold uint64 // packets of flows without room in the table
}

func newTable(limit int) *table { return &table{flows: map[hashing.Flow]*flow{}, limit: limit} }

// add counts a packet. The caller holds the lock.
func (t *table) add(id hashing.Flow, tuple *hashing.Tuple, at int64) {
	f := t.flows[id]
	if f == nil {
		if len(t.flows) >= t.limit {
			t.untold++
			return
		}
		f = &flow{tuple: *tuple, first: at}
		t.flows[id] = f
	}
	f.packets++
	f.first, f.last = min(f.first, at), max(f.last, at)
}

// forget makes room: it forgets what was last seen before a time.
func (t *table) forget(before int64) {
	t.Lock()
	defer t.Unlock()
	maps.DeleteFunc(t.flows, func(_ hashing.Flow, f *flow) bool { return f.last < before })
}

// find returns what any of the tables knows about a flow.
func find(tables []*table, id hashing.Flow) (flow, bool) {
	for _, t := range tables {
		t.Lock()
		f := t.flows[id]
		if f != nil {
			defer t.Unlock()
			return *f, true
		}
		t.Unlock()
	}
	return flow{}, false
}

// writeFlows writes the flows that arrived, largest first, where
// examples/colate finds them.
func writeFlows(dir string, from, to []*table) error {
	all := map[hashing.Flow]*flow{}
	for i, t := range slices.Concat(to, from) {
		t.Lock()
		for id, f := range t.flows {
			a := all[id]
			switch {
			case a != nil:
				a.first, a.last = min(a.first, f.first), max(a.last, f.last)
			case i < len(to):
				a = &flow{tuple: f.tuple, first: f.first, last: f.last}
				all[id] = a
			}
			if i < len(to) {
				a.packets += f.packets
			}
		}
		t.Unlock()
	}
	flows := slices.SortedFunc(maps.Values(all), func(a, b *flow) int {
		return cmp.Or(-cmp.Compare(a.packets, b.packets), cmp.Compare(a.first, b.first))
	})
	path := filepath.Join(dir, "flows.csv")
	file, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	w := csv.NewWriter(file)
	for _, f := range flows {
		w.Write([]string{name(&f.tuple), strconv.FormatUint(f.packets, 10), strconv.FormatInt(f.first, 10), strconv.FormatInt(f.last, 10)})
	}
	w.Flush()
	if err := errors.Join(w.Error(), file.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

var protocols = map[string]uint8{"icmp": 1, "tcp": 6, "udp": 17, "ipv6-icmp": 58}

// name formats a 5-tuple as examples/colate takes it.
func name(t *hashing.Tuple) string {
	protocol := strconv.Itoa(int(t.Proto))
	for word, number := range protocols {
		if number == t.Proto {
			protocol = word
		}
	}
	return fmt.Sprintf("%s %v %v", protocol, t.Source(), t.Destination())
}
