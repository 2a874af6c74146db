package trace

import "github.com/hoplag/hoplag/internal/heap"

// How much a window holds at most, of packets and of their bytes. Times that
// stand still, or frames of 256 KiB, would else hold any memory; 10^6 packets
// in MaxBackstep are 10 million a second.
const (
	maxHeld      = 1 << 20
	maxHeldBytes = 128 << 20
	maxSpareSize = 4 << 10 // of a buffer that is kept for another frame
)

// A window holds packets and gives them back in the order of their times, and
// those of one time in the order in which they were added.
type window struct {
	heap  heap.Heap[held]
	added uint64
	bytes int      // of the buffers of frames, spare ones included
	spare [][]byte // to be used again
}

// held is a packet with its place.
type held struct {
	Record
	place uint64
}

// Before makes a heap's first packet the earliest.
func (h held) Before(o held) bool {
	return h.Time < o.Time || h.Time == o.Time && h.place < o.place
}

func (w *window) empty() bool { return len(w.heap) == 0 }

// full tells whether a packet must go before another comes.
func (w *window) full() bool { return len(w.heap) >= maxHeld || w.bytes >= maxHeldBytes }

// first is the earliest packet of a window that is not empty.
func (w *window) first() *Record { return &w.heap[0].Record }

// take removes it. Its Frame is to be given back.
func (w *window) take() Record { return w.heap.Pop().Record }

// add puts a packet in its place. It copies the frame.
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

// giveBack takes a frame that is not needed any more.
func (w *window) giveBack(frame []byte) {
	if cap(frame) <= maxSpareSize {
		w.spare = append(w.spare, frame)
		return
	}
	w.bytes -= cap(frame)
}
