package hoplag

// A history is the latest cuts of a point, encoded, for followers to fetch.
type history struct {
	limit, size int // bytes
	cuts        []stored
}

type stored struct {
	session uint64
	through int64
	wall    int64 // timeline.wall in the session
	data    []byte
}

// latest returns the latest cut, or the zero value.
func (h *history) latest() stored {
	if len(h.cuts) == 0 {
		return stored{}
	}
	return h.cuts[len(h.cuts)-1]
}

// add keeps a cut, and drops the oldest ones if there is no room.
func (h *history) add(s stored) {
	h.cuts = append(h.cuts, s)
	h.size += len(s.data)
	for h.size > h.limit && len(h.cuts) > 1 {
		h.size -= len(h.cuts[0].data)
		h.cuts = h.cuts[1:]
	}
}

// since returns the cuts after a position, as many as fit the limit but at
// least one, and whether there are more. A follower without any cuts begins
// with the latest; one whose cuts are gone continues with the oldest there is.
func (h *history) since(at position, limit int) (found []stored, more bool) {
	cuts := h.cuts
	if at == (position{}) && len(cuts) > 0 {
		cuts = cuts[len(cuts)-1:]
	}
	for i := len(cuts) - 1; i >= 0; i-- {
		if cuts[i].session == at.session && cuts[i].through <= at.through {
			cuts = cuts[i+1:]
			break
		}
	}
	size := 0
	for i := range cuts {
		if size += len(cuts[i].data); size > limit && i > 0 {
			return cuts[:i], true
		}
	}
	return cuts, false
}

// A position says how far a follower has a point's cuts. The zero value means
// that it has none.
type position struct {
	session uint64
	through int64
}
