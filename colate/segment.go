package colate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/wire"
)

// A segment is a file of frames, one after the other: a head of fixed size, and an encoded epoch. Opening it
// means going from head to head, without the payloads, which have checksums of their own.
const (
	frameMagic = "HCLG"
	frameSize  = 32

	segmentSuffix = ".colate"
)

// segment is what a Store knows about a file.
type segment struct {
	number  uint64
	size    int64 // of the known frames and damages
	tail    int64 // of the damage at the end, if any
	entries []entry
	damages []Missing
	unread  error // why the rest could not be read, if it could not
}

// entry says where an epoch is, and its span.
type entry struct {
	segment    uint64
	offset     int64 // of the payload
	length     uint32
	head       uint32
	start, end int64
}

func (e *entry) damaged(reason error) error {
	return damaged(e.segment, e.offset-frameSize, frameSize+int64(e.length), reason)
}

// damaged says that a part of a segment holds no whole epoch.
func damaged(segment uint64, offset, bytes int64, reason error) error {
	return fmt.Errorf("colate: %s: %d bytes from %d: %w", segmentName(segment), bytes, offset, reason)
}

// spoil adds damage behind what is known of a segment.
func (s *segment) spoil(bytes int64, reason error) {
	s.damages = append(s.damages, Missing{Err: damaged(s.number, s.size, bytes, reason)})
	s.size, s.tail = s.size+bytes, bytes
}

func segmentName(number uint64) string { return fmt.Sprintf("%016x%s", number, segmentSuffix) }

// frameOf returns an epoch's frame, in room that it may use, and its entry except for its place.
func frameOf(room []byte, r *Recorder) ([]byte, entry) {
	be, e := binary.BigEndian, entry{head: uint32(r.config.headSize(len(r.samples)))}
	e.start, e.end, _ = r.Span()
	frame, _ := r.AppendBinary(append(room[:0], make([]byte, frameSize)...)) // which does not fail
	head := be.AppendUint32(append(frame[:0], frameMagic...), uint32(len(frame)-frameSize))
	head = be.AppendUint64(be.AppendUint64(be.AppendUint32(head, e.head), uint64(e.start)), uint64(e.end))
	wire.Seal(head, 0)
	return frame, e
}

// parseFrame reads the head of a frame at an offset. It reports false unless the whole frame ends before the given end.
func parseFrame(head []byte, number uint64, offset, end int64) (entry, bool) {
	be := binary.BigEndian
	if len(head) < frameSize || string(head[:4]) != frameMagic || crc32.Checksum(head[:28], castagnoli) != be.Uint32(head[28:]) {
		return entry{}, false
	}
	e := entry{number, offset + frameSize, be.Uint32(head[4:]), be.Uint32(head[8:]), int64(be.Uint64(head[12:])), int64(be.Uint64(head[20:]))}
	return e, e.head <= e.length && int64(e.length) <= end-e.offset
}

// scan reads a segment from where its known part ends, and adds what it finds. Anything but a whole frame is damage. After damage
// it looks for the next frame at every byte, so that one bad byte costs at most one epoch. It returns only errors of the file system.
func (s *segment) scan(files fileSystem) error {
	const much = 1 << 16
	f, err := files.open(segmentName(s.number))
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	var read []byte // of the file, up to at least the end of a head
	for at, from := s.size, s.size; s.size < size; at++ {
		if n := min(frameSize, size-at); at+n > from+int64(len(read)) {
			if at > s.size { // in damage
				n = min(much, size-at)
			}
			from, read = at, slices.Grow(read[:0], int(n))[:n]
			if _, err := f.ReadAt(read, at); err != nil {
				return err
			}
		}
		e, ok := parseFrame(read[at-from:], s.number, at, size)
		if at > s.size && (ok || at == size) {
			s.spoil(at-s.size, fmt.Errorf("%w: not the beginning of a whole frame", estimate.ErrEncoding))
		}
		if ok {
			s.entries = append(s.entries, e)
			s.size, s.tail = e.offset+int64(e.length), 0
			at = s.size - 1
		}
	}
	return nil
}

// forgetTail forgets damage at the end, which a writer may be about to complete.
func (s *segment) forgetTail() {
	if s.tail > 0 {
		s.size, s.tail, s.damages = s.size-s.tail, 0, s.damages[:len(s.damages)-1]
	}
}

// An epochReader reads parts of encoded epochs, into room that it keeps. It keeps a segment of a store open until it needs another.
type epochReader struct {
	store   *Store
	segment uint64
	open    io.Closer
	file    io.ReaderAt
	from    int64 // where the epoch begins in it
	epoch   epochHead
	bytes   int64 // read so far
	data    []byte
	rows    []row
	words   []uint64
}

// rowRoom is how many bytes behind a block invalid data may make a row end.
const rowRoom = 32

// part returns a part of the epoch, with room for a row behind it, valid until the next call.
func (r *epochReader) part(from, to int64) ([]byte, error) {
	n := int(to - from)
	r.data = slices.Grow(r.data[:0], n+rowRoom)[:n]
	r.bytes += to - from
	_, err := r.file.ReadAt(r.data, r.from+from)
	return r.data, err
}

func (r *epochReader) close() {
	if r.open != nil {
		r.open.Close()
		r.open = nil
	}
}

// head goes to an epoch, and returns its head, valid until the next call.
func (r *epochReader) head(e *entry) (*epochHead, error) {
	if r.open == nil || r.segment != e.segment {
		r.close()
		f, err := r.store.files.open(segmentName(e.segment))
		if err != nil {
			return nil, err
		}
		r.file, r.open, r.segment = f, f, e.segment
	}
	r.from = e.offset
	data, err := r.part(0, int64(e.head))
	if err != nil {
		return nil, err
	}
	h := &r.epoch
	if err = h.open(data); err == nil && (h.start != e.start || h.start+h.config.Period != e.end || h.size() != int64(e.length)) {
		err = fmt.Errorf("%w: frame and epoch disagree about their span or length", estimate.ErrEncoding)
	}
	return h, err
}

// each calls f for the counters at these places, in order. Of counters to be folded, it adds up 2^fold for each place.
func (r *epochReader) each(h *epochHead, at, order []uint32, fold uint8, f func(i int, word uint64)) (err error) {
	size, last := h.config.blockSize(), -1
	for _, i := range order {
		first, sum := int(at[i])<<fold, uint64(0)
		for k := first; k < min(first+1<<fold, h.config.counters()); k++ {
			if block := k / size; block != last {
				last = block
				if r.words, err = h.readCounters(r.words[:0], block, r); err != nil {
					return err
				}
			}
			sum += r.words[k%size]
		}
		f(int(i), sum)
	}
	return nil
}

// A fileSystem is the directory in which a [Store] keeps its files: a dir, or in tests others, which fail.
type fileSystem interface {
	// lock makes the directory if it is missing, and keeps other writers out until the lock is closed, or returns ErrLocked.
	lock() (io.Closer, error)
	list() (names []string, err error) // in order
	// open opens a file for reading, and create one that does not exist for appending too. Errors match fs.ErrNotExist and fs.ErrExist.
	open(name string) (openFile, error)
	create(name string) (openFile, error)
	remove(name string) error
	sync() error // makes the effects of create and remove survive a crash
}

// An openFile is an open file of a fileSystem. Write appends, also behind what Truncate left.
type openFile interface {
	io.ReaderAt
	io.WriteSeeker
	io.Closer
	Truncate(size int64) error
	Sync() error
}

// ErrLocked means that a store already has a writer.
var ErrLocked = errors.New("the store already has a writer")

// A dir is a directory, as a fileSystem. Only a writer creates it.
type dir string

func (d dir) path(name string) string { return filepath.Join(string(d), name) }

func (d dir) lock() (io.Closer, error) {
	if err := os.MkdirAll(string(d), 0o777); err != nil {
		return nil, err
	}
	// The file stays, and is empty.
	f, err := os.OpenFile(d.path("LOCK"), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (d dir) list() (names []string, err error) {
	entries, err := os.ReadDir(string(d))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (d dir) open(name string) (openFile, error) { return os.Open(d.path(name)) }

func (d dir) create(name string) (openFile, error) {
	return os.OpenFile(d.path(name), os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o666)
}

func (d dir) remove(name string) error { return os.Remove(d.path(name)) }

func (d dir) sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
