package rli

import "github.com/hoplag/hoplag/hashing"

// A mix says how flows take turns in a busy period. Where all packets ahead are of its own flow, a
// packet waits for its own sender only; where flows take turns, they met, and the queue grew.
type mix int32

const mixes = 4

// turns counts how often flows took turns in a period so far.
type turns struct {
	flow             hashing.Flow // of the latest packet
	packets, changes int32
}

func (t *turns) meet(f hashing.Flow) {
	if f != t.flow && t.packets > 0 {
		t.changes++
	}
	t.flow = f
	t.packets++
}

// mix returns that of the packets so far: no changes, up to one in eight packets, in two, or more.
func (t *turns) mix() mix {
	switch {
	case t.changes == 0:
		return 0
	case t.changes*8 < t.packets:
		return 1
	case t.changes*2 < t.packets:
		return 2
	}
	return 3
}
