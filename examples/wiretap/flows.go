//go:build linux

package main

import (
	"fmt"
	"sync"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/programs"
)

// A table has the names of the latest flows that passed a place, because digests do not reveal them.
type table struct {
	sync.Mutex
	latest [1 << 13]struct { // each where its id says
		id    hashing.Flow
		tuple hashing.Tuple
	}
}

// has reports whether the table has a flow. The caller holds the lock.
func (t *table) has(id hashing.Flow) bool { return t.latest[id%hashing.Flow(len(t.latest))].id == id }

// add enters a flow, perhaps in place of another one.
func (t *table) add(id hashing.Flow, tuple *hashing.Tuple) {
	f := &t.latest[id%hashing.Flow(len(t.latest))]
	f.id, f.tuple = id, *tuple
}

// name returns a flow's name, if the table has it.
func (t *table) name(id hashing.Flow) string {
	t.Lock()
	defer t.Unlock()
	if t.has(id) {
		return programs.FlowName(&t.latest[id%hashing.Flow(len(t.latest))].tuple)
	}
	return fmt.Sprintf("%016x", uint64(id))
}
