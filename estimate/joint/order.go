package joint

// cellBlock is how many cells make a block of inOrder. Flows of the same cell should
// not follow one another: each waits for the one before.
const cellBlock = 32

// inOrder returns the problem with its flows sorted by size, largest first, and
// the original index of each. This order needs the fewest iterations. Flows of
// similar size are sorted by blocks of their first cell, so that one access of
// each flow is to memory that was read just before.
func (p *Problem) inOrder() (*Problem, []uint32) {
	width, flows := p.Rows*p.CellsPerRow, len(p.Packets)
	order := make([]uint32, flows)
	for f := range order {
		order[f] = uint32(f)
	}
	order = sorted(order, len(p.Sum), func(f uint32) int { return int(p.Cells[int(f)*width] >> 5) })
	order = sorted(order, sizeCount, func(f uint32) int { return sizeCount - 1 - sizeOf(p.Packets[f]) })
	q := *p
	q.Packets = taken(p.Packets, order, 1)
	q.Doubt = taken(p.Doubt, order, 1)
	q.Cells = taken(p.Cells, order, width)
	q.Parts = taken(p.Parts, order, width)
	return &q, order
}

// sorted returns the list sorted by a key below the given number. It is stable.
func sorted(list []uint32, keys int, key func(uint32) int) []uint32 {
	at := make([]uint32, keys+1)
	for _, x := range list {
		at[key(x)+1]++
	}
	for k := 1; k < keys; k++ {
		at[k] += at[k-1]
	}
	out := make([]uint32, len(list))
	for _, x := range list {
		k := key(x)
		out[at[k]] = x
		at[k]++
	}
	return out
}

// taken returns a list that has width items a flow, in the given order of flows.
func taken[T any](list []T, order []uint32, width int) []T {
	if list == nil {
		return nil
	}
	out := make([]T, 0, len(list))
	for _, f := range order {
		at := int(f) * width
		out = append(out, list[at:at+width]...)
	}
	return out
}

// putBack undoes taken for a list that has one item a flow.
func putBack[T any](list []T, order []uint32) []T {
	if list == nil {
		return nil
	}
	out := make([]T, len(list))
	for i, f := range order {
		out[f] = list[i]
	}
	return out
}

// putBack puts the flows of a result back into their original order.
func (r *Result) putBack(order []uint32) {
	r.Mean, r.StdDev = putBack(r.Mean, order), putBack(r.StdDev, order)
	r.Deviation, r.Freedom = putBack(r.Deviation, order), putBack(r.Freedom, order)
	r.Usable, r.Share = putBack(r.Usable, order), putBack(r.Share, order)
}
