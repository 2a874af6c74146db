//go:build linux

package main

import (
	"fmt"
	"sync"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/programs"
)

// A table has the names of the flows that passed a place, because digests do
// not reveal them: of the latest ones, and with -keep of all.
type table struct {
	sync.Mutex
	latest [1 << 13]struct { // each where its id says
		id hashing.Flow
		programs.FlowRecord
	}
	keep func(programs.FlowRecord) // nil without -keep
}

// find counts a packet of a flow that has its place, and reports whether it has.
// The caller holds the lock.
func (t *table) find(id hashing.Flow, at int64) bool {
	f := &t.latest[id%hashing.Flow(len(t.latest))]
	if f.id != id {
		return false
	}
	f.Packets++
	f.Last = at
	return true
}

// add gives a flow its place, which another one may have had, and counts a packet.
func (t *table) add(id hashing.Flow, tuple *hashing.Tuple, at int64) {
	f := &t.latest[id%hashing.Flow(len(t.latest))]
	if t.keep != nil && f.Packets > 0 {
		t.keep(f.FlowRecord)
	}
	f.id, f.FlowRecord = id, programs.FlowRecord{Tuple: *tuple, Packets: 1, First: at, Last: at}
}

// keepAll keeps what was counted so far.
func (t *table) keepAll() {
	t.Lock()
	defer t.Unlock()
	for i := range t.latest {
		if f := &t.latest[i]; f.Packets > 0 {
			t.keep(f.FlowRecord)
			f.Packets, f.First = 0, f.Last
		}
	}
}

// name returns a flow's name, if the table has it.
func (t *table) name(id hashing.Flow) string {
	t.Lock()
	defer t.Unlock()
	if f := &t.latest[id%hashing.Flow(len(t.latest))]; f.id == id {
		return programs.FlowName(&f.Tuple)
	}
	return fmt.Sprintf("%016x", uint64(id))
}
