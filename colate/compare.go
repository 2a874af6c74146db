package colate

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
)

// A comparison is what two points say epoch by epoch, of some counters in a table, and of samples.
type comparison struct {
	config  Config // without the fields in which points may differ
	table   *cellTable
	flush   func() // takes the table's epochs that count
	samples *sampling
	common  common
	epochs  int // pairs added
	missing int // pairs in which only one point has packets
	unread  int // pairs that could not be read
}

// add adds a pair of epochs, whose counters at these places the table has. Add them in order of time.
func (c *comparison) add(at []uint32, up, down *Recorder, s span) {
	for i, k := range at {
		c.table.put(i, up.words[k], down.words[k])
	}
	c.samples.add(up, down, s)
	c.end(s, up.packets, down.packets, true)
}

// end finishes a pair of epochs that was put into the table. A point without packets may have
// had none, or have lost its records. An epoch that does not count only helps to settle others.
func (c *comparison) end(s span, up, down uint64, counts bool) {
	switch {
	case !counts || up == 0 && down == 0:
	case up > 0 && down > 0:
		c.epochs++
	default:
		c.missing++
	}
	if up > 0 && down == 0 {
		c.table.blank |= 1 << c.table.epochs
	}
	c.table.end(s, counts, counts && up+down > 0, c.flush)
}

// read returns what part of the pairs could be read.
func (c *comparison) read() float64 {
	pairs := float64(c.epochs + c.missing)
	return pairs / max(pairs+float64(c.unread), 1)
}

// pair returns what two points recorded in one epoch, folded alike, and when that was.
// It returns [estimate.ErrMismatch] if the Configs or the times of the epochs differ.
func pair(up, down *Recorder) (*Recorder, *Recorder, span, error) {
	if err := made(up, down); err != nil {
		return nil, nil, span{}, err
	}
	up, down = alike(up, down)
	a, b := span{up.start, up.start + up.config.Period}, span{down.start, down.start + down.config.Period}
	switch {
	case !up.config.like(&down.config):
		return nil, nil, a, fmt.Errorf("colate: %w: epochs of %+v and %+v", estimate.ErrMismatch, up.config, down.config)
	case up.packets == 0:
		a = b
	case down.packets > 0 && a != b:
		return nil, nil, a, fmt.Errorf("colate: %w: epochs of %d to %d ns and %d to %d", estimate.ErrMismatch, a.start, a.end, b.start, b.end)
	}
	return up, down, a, nil
}
