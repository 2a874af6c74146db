package trace

// A window holds packets in the order of their times, and those of one time in
// the order in which they were added.
type window struct {
	records []Record
	taken   int // of the records, from the first on
}

func (w *window) empty() bool { return w.taken == len(w.records) }

// first is the earliest packet of a window that is not empty.
func (w *window) first() *Record { return &w.records[w.taken] }

// take removes it.
func (w *window) take() Record {
	rec := w.records[w.taken]
	w.records[w.taken] = Record{}
	w.taken++
	return rec
}

// add puts a packet in its place, which is near the end.
func (w *window) add(rec Record) {
	if w.taken > len(w.records)/2 {
		w.records = w.records[:copy(w.records, w.records[w.taken:])]
		w.taken = 0
	}
	w.records = append(w.records, rec)
	i := len(w.records) - 1
	for ; i > w.taken && rec.Time < w.records[i-1].Time; i-- {
		w.records[i] = w.records[i-1]
	}
	w.records[i] = rec
}
