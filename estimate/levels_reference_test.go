package estimate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hoplag/hoplag/estimate"
)

// A slowState is a cell at a cut, packet by packet: who is outstanding, and
// how often, below zero where more copies came than went; and who came and
// went since the beginning, but for groups that were handed out.
type slowState struct {
	outstanding    map[uint32]int
	sent, received []passage
	cut            uint32
	passed         bool
}

// slowLevels is Levels among sets of packets, above all readable, and tells
// with t when a group's packets are not the same at both points.
func slowLevels(t *testing.T, cells []intervalCell) []estimate.Group {
	t.Helper()
	anchors := []slowState{{outstanding: map[uint32]int{}}}
	now := anchors[0]
	var groups []estimate.Group
	for k, cell := range cells {
		now = now.after(cell)
		back := -1
		for i, a := range anchors {
			if cmp.Equal(a.outstanding, now.outstanding) {
				back = i
			}
		}
		if back < 0 {
			now.cut, now.passed = uint32(k+1), false
			anchors = append(slowForget(anchors), now)
			continue
		}
		a := &anchors[back]
		g := estimate.Group{From: a.cut, To: uint32(k + 1)}
		whole := map[uint32]int{}
		for _, p := range now.received[len(a.received):] {
			g.Sum += p.received
			g.Packets++
			whole[p.id]++
		}
		for _, p := range now.sent[len(a.sent):] {
			g.Sum -= p.sent
			g.Sent += uint64(p.sent)
			whole[p.id]--
		}
		for id, n := range whole {
			if n != 0 {
				t.Fatalf("packet %d is not whole in a group", id)
			}
		}
		a.cut = uint32(k + 1)
		if g.Packets > 0 {
			a.passed = true
			groups = append(groups, g)
		}
		now, anchors = *a, anchors[:back+1]
	}
	return groups
}

// after is the state an interval later.
func (s slowState) after(cell intervalCell) slowState {
	next := slowState{outstanding: map[uint32]int{}}
	for id, n := range s.outstanding {
		next.outstanding[id] = n
	}
	for _, p := range cell.sent {
		next.outstanding[p.id]++
	}
	for _, p := range cell.received {
		next.outstanding[p.id]--
	}
	for id, n := range next.outstanding {
		if n == 0 {
			delete(next.outstanding, id)
		}
	}
	next.sent = append(s.sent[:len(s.sent):len(s.sent)], cell.sent...)
	next.received = append(s.received[:len(s.received):len(s.received)], cell.received...)
	return next
}

// slowForget makes room for one more of four states.
func slowForget(anchors []slowState) []slowState {
	if len(anchors) < 4 {
		return anchors
	}
	drop := 1
	for _, a := range anchors[1:] {
		if a.passed {
			drop = 0
		}
	}
	return append(append([]slowState(nil), anchors[:drop]...), anchors[drop+1:]...)
}
