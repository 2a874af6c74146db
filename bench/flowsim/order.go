package flowsim

import (
	"cmp"
	"iter"
	"slices"

	"github.com/hoplag/hoplag/internal/heap"
)

// InOrder returns all packets of all flows, in the order in which they are sent; of those sent at once, the
// earlier flow's first. It takes some 30 times as long as going through the flows one by one, which is enough
// for anything that only adds.
func (t *Traffic) InOrder() iter.Seq2[*Flow, Packet] {
	return func(yield func(*Flow, Packet) bool) {
		var flows heap.Heap[head]
		for i := range t.Flows {
			c := t.Flows[i].cursor()
			flows = append(flows, head{c.next(), c})
		}
		// A sorted slice is a heap, and flows that have not started stay at its bottom.
		slices.SortFunc(flows, compare)
		for len(flows) > 0 {
			first := flows[0]
			if !yield(first.flow, first.packet) {
				return
			}
			if first.more() {
				first.packet = first.next()
				flows.Replace(first)
			} else {
				flows.Pop()
			}
		}
	}
}

// A head is a flow's next packet, with the cursor that draws the following ones.
type head struct {
	packet Packet
	cursor
}

// Before orders heads in a heap.
func (a head) Before(b head) bool { return compare(a, b) < 0 }

func compare(a, b head) int {
	return cmp.Or(cmp.Compare(a.packet.Sent, b.packet.Sent), cmp.Compare(a.flow.index, b.flow.index))
}
