package colate

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
)

// An epochReader reads epochs of a store, only as much of each as requested.
// It keeps a segment open until it needs another.
type epochReader struct {
	store  *Store
	file   openFile
	number uint64

	data, scratch []byte
	words         []uint64
	bytes         int64 // bytes read
}

func (r *epochReader) close() {
	if r.file != nil {
		r.file.Close()
		r.file = nil
	}
}

// read returns a part of an entry's payload, valid until the next call.
func (r *epochReader) read(e *entry, from, to int64) ([]byte, error) {
	if r.file == nil || r.number != e.segment {
		r.close()
		f, err := r.store.files.Open(segmentName(e.segment))
		if err != nil {
			return nil, err
		}
		r.file, r.number = f, e.segment
	}
	if int64(cap(r.data)) < to-from {
		r.data = make([]byte, to-from)
	}
	r.data = r.data[:to-from]
	r.bytes += to - from
	return r.data, readFull(r.file, r.data, e.offset+from)
}

// head reads the head of an epoch.
func (r *epochReader) head(e *entry) (*epochHead, error) {
	data, err := r.read(e, 0, int64(e.head))
	if err != nil {
		return nil, err
	}
	return e.open(data)
}

// whole reads all of an epoch.
func (r *epochReader) whole(e *entry) (*Recorder, error) {
	data, err := r.read(e, 0, int64(e.length))
	if err != nil {
		return nil, err
	}
	if _, err := e.open(data[:e.head]); err != nil {
		return nil, err
	}
	return decodeEpoch(data)
}

// add adds the counters at these places, in order, to the corresponding sums.
// Of counters to be folded, it adds 2^fold for each place. It reads blocks
// together if many are needed.
func (r *epochReader) add(e *entry, h *epochHead, at []uint32, order []uint32, sums []uint64, fold uint8) error {
	c := &h.config
	size := c.blockSize()
	if len(r.words) < size {
		r.words = make([]uint64, size)
	}
	// More than one block in four: read all of them at once.
	if 4*distinct(at, order, size>>fold+1) > c.blocks() {
		data, err := r.read(e, int64(e.head), int64(e.length))
		if err != nil {
			return err
		}
		return r.addBlocks(h, at, order, sums, fold, func(block int) ([]byte, error) {
			return data[h.offsets[block]-int64(e.head) : h.offsets[block+1]-int64(e.head)], nil
		})
	}
	return r.addBlocks(h, at, order, sums, fold, func(block int) ([]byte, error) {
		return r.read(e, h.offsets[block], h.offsets[block+1])
	})
}

// distinct returns the number of blocks that the places are in.
func distinct(at, order []uint32, size int) int {
	n, last := 0, -1
	for _, i := range order {
		if block := int(at[i]) / size; block != last {
			n, last = n+1, block
		}
	}
	return n
}

func (r *epochReader) addBlocks(h *epochHead, at, order []uint32, sums []uint64, fold uint8,
	block func(int) ([]byte, error)) error {
	size, last := h.config.blockSize(), -1
	for _, i := range order {
		first := int(at[i]) << fold
		for k := first; k < min(first+1<<fold, h.config.counters()); k++ {
			if number := k / size; number != last {
				from, to := h.config.blockOf(number)
				data, err := block(number)
				if err != nil {
					return err
				}
				if r.scratch, err = h.codec.read(r.words[:to-from], data, r.scratch); err != nil {
					return fmt.Errorf("block %d: %w", number, err)
				}
				last = number
			}
			sums[i] += r.words[k%size]
		}
	}
	return nil
}

// errOther says that an epoch cannot be used together with others.
var errOther = fmt.Errorf("%w: recorded with another Config", estimate.ErrMismatch)
