package hoplag

import (
	"sync"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lds"
)

// A tally adds up the packets of one direction between two cuts.
type tally struct {
	all   *lda.Aggregator
	flows *lds.Sketch // nil without Config.Flows

	// Which flows passed, at most Config.Flows.
	seen    map[hashing.Flow]struct{}
	mostly  hashing.Flow // the flow of the previous packet
	maxSeen int

	config Config // of a tally that was borrowed
}

// newTally returns an empty tally for a validated Config.
func newTally(c *Config) *tally {
	t := &tally{all: must(lda.New(c.lda()))}
	if c.Flows > 0 {
		t.flows = must(lds.New(c.lds()))
		t.seen, t.maxSeen = map[hashing.Flow]struct{}{}, c.Flows
	}
	return t
}

// borrowed has empty tallies, which pairings use only from one comparison to the
// next: if there are many pairs of points, the processor's cache has them.
var borrowed sync.Pool

// borrowTally returns an empty tally for a Config that was validated, which is
// to be given back.
func borrowTally(c *Config) *tally {
	if t, ok := borrowed.Get().(*tally); ok && t.config == *c {
		return t
	}
	t := newTally(c)
	t.config = *c
	return t
}

// giveBack empties a tally that was borrowed.
func (t *tally) giveBack() {
	t.reset()
	borrowed.Put(t)
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

func (t *tally) add(entries []entry) {
	for i := range entries {
		e := &entries[i]
		t.all.Update(e.packet, e.time)
		if e.flow == 0 || t.flows == nil {
			continue
		}
		t.flows.Update(e.flow, e.packet, e.time)
		if e.flow != t.mostly && len(t.seen) < t.maxSeen {
			t.seen[e.flow] = struct{}{}
			t.mostly = e.flow
		}
	}
}

// merge adds another tally of the same Config.
func (t *tally) merge(o *tally) {
	must(0, t.all.Merge(o.all))
	if t.flows != nil && o.flows != nil {
		must(0, t.flows.Merge(o.flows))
	}
	for f := range o.seen {
		if len(t.seen) < t.maxSeen {
			t.seen[f] = struct{}{}
		}
	}
}

func (t *tally) reset() {
	t.all.Reset()
	if t.flows != nil {
		t.flows.Reset()
	}
	clear(t.seen)
	t.mostly = 0
}

// addPart adds what passed in one direction, from a checked record.
func (t *tally) addPart(p part) {
	if p.packed != nil {
		must(0, t.all.AddPacked(p.packed))
	}
	if t.flows != nil && p.flows != nil {
		must(0, t.flows.Merge(p.flows))
	}
}

// empty reports whether nothing was counted.
func (t *tally) empty() bool { return t.all.Packets() == 0 }
