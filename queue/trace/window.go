package trace

import "github.com/hoplag/hoplag/internal/heap"

// Limits of a window, of packets and of their bytes. Without them, constant
// times or frames of 256 KiB could take any amount of memory. 10^6 packets in
// MaxBackstep are 10 million a second.
const (
	maxHeld      = 1 << 20
	maxHeldBytes = 128 << 20
	maxSpareSize = 4 << 10 // of a buffer kept for another frame
)

// A window holds packets and returns them in the order of their times, and
// packets of one time in the order in which they were added.
type window struct {
	heap  heap.Heap[held]
	added uint64
	bytes int      // of the buffers of frames, including spare ones
	spare [][]byte // for reuse
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

// take removes the earliest packet and returns it. Give its Frame back.
func (w *window) take() Record { return w.heap.Pop().Record }

// add inserts a packet. It copies the frame.
func (w *window) add(rec Record) {
	var frame []byte
	if last := len(w.spare) - 1; last >= 0 {
		frame, w.spare = w.spare[last], w.spare[:last]
		w.bytes -= cap(frame)
	}
	rec.Frame = append(frame[:0], rec.Frame...)
	w.bytes += cap(rec.Frame)
	w.heap.Push(held{rec, w.added})
	w.added++
}

// giveBack takes a frame that is no longer needed.
func (w *window) giveBack(frame []byte) {
	if cap(frame) <= maxSpareSize {
		w.spare = append(w.spare, frame)
		return
	}
	w.bytes -= cap(frame)
}
