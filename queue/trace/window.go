package trace

import (
	"bytes"

	"github.com/hoplag/hoplag/internal/heap"
)

// Limits of a window, of packets and of their bytes. Without them, constant times or frames of 256 KiB could
// take any amount of memory. 10^6 packets in maxBackstep are 10 million a second.
const (
	maxHeld      = 1 << 20
	maxHeldBytes = 128 << 20
)

// A window holds packets and returns them in the order of their times, and packets of one time in the order in
// which they were added.
type window struct {
	heap  heap.Heap[held]
	added uint64
	bytes int // of frames
}

// held is a packet with its place.
type held struct {
	Record
	place uint64
}

// Before orders packets by time, then by place.
func (h held) Before(o held) bool {
	return h.Time < o.Time || h.Time == o.Time && h.place < o.place
}

func (w *window) empty() bool { return len(w.heap) == 0 }

// full reports whether a packet must leave before another comes.
func (w *window) full() bool { return len(w.heap) >= maxHeld || w.bytes >= maxHeldBytes }

// first returns the earliest packet of a window that is not empty.
func (w *window) first() *Record { return &w.heap[0].Record }

// take removes the earliest packet and returns it.
func (w *window) take() Record {
	rec := w.heap.Pop().Record
	w.bytes -= len(rec.Frame)
	return rec
}

// add inserts a packet. It copies the frame.
func (w *window) add(rec Record) {
	rec.Frame = bytes.Clone(rec.Frame)
	w.bytes += len(rec.Frame)
	w.heap.Push(held{rec, w.added})
	w.added++
}
