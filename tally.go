package hoplag

import "github.com/hoplag/hoplag/lda"

// A tally adds up the packets of one direction between two cuts.
type tally struct {
	all   *lda.Aggregator
	words []uint64 // room for its cells
}

func newTally(c *Config) *tally {
	all, err := lda.New(c.lda())
	if err != nil {
		panic(err) // the Config was validated
	}
	return &tally{all: all}
}

func (t *tally) add(entries []entry) {
	for i := range entries {
		t.all.Update(entries[i].packet, entries[i].time)
	}
}

// merge adds another tally of the same Config.
func (t *tally) merge(o *tally) {
	if err := t.all.Merge(o.all); err != nil {
		panic(err)
	}
}

func (t *tally) reset() { t.all.Reset() }

// empty reports whether nothing was counted.
func (t *tally) empty() bool { return t.packets() == 0 }

// packets is how many were counted.
func (t *tally) packets() uint64 {
	var n uint64
	t.words = t.all.AppendCells(t.words[:0])
	for i := 1; i < len(t.words); i += 2 {
		n += t.words[i] & (1<<32 - 1)
	}
	return n
}
