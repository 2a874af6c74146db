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
	entries []entry
	damages []*damage
}

// entry says where an epoch is, and its span.
type entry struct {
	segment    uint64
	offset     int64 // of the payload
	length     uint32
	head       uint32
	start, end int64
}

// A damage is a part of a store's files that holds no whole epoch.
type damage struct {
	file          string
	offset, bytes int64
	reason        error
}

// Error says which file is damaged, where and why.
func (d *damage) Error() string {
	return fmt.Sprintf("colate: %s: %d bytes from %d: %v", d.file, d.bytes, d.offset, d.reason)
}

// Unwrap returns the reason.
func (d *damage) Unwrap() error { return d.reason }

func (e *entry) damaged(reason error) error {
	return &damage{segmentName(e.segment), e.offset - frameSize, frameSize + int64(e.length), reason}
}

// spoil adds damage behind what is known of a segment.
func (s *segment) spoil(bytes int64, reason error) {
	s.damages = append(s.damages, &damage{segmentName(s.number), s.size, bytes, reason})
	s.size += bytes
}

func segmentName(number uint64) string { return fmt.Sprintf("%016x%s", number, segmentSuffix) }

// appendFrame appends an epoch's frame, and returns its entry except for its place.
func appendFrame(dst []byte, r *Recorder) ([]byte, entry) {
	be, from := binary.BigEndian, len(dst)
	e := entry{head: uint32(r.config.headSize(len(r.samples)))}
	e.start, e.end, _ = r.Span()
	dst = append(dst, make([]byte, frameSize)...)
	dst, _ = r.AppendBinary(dst) // which does not fail
	head := append(dst[from:from], frameMagic...)
	head = be.AppendUint32(head, uint32(len(dst)-from-frameSize))
	head = be.AppendUint32(head, e.head)
	head = be.AppendUint64(head, uint64(e.start))
	head = be.AppendUint64(head, uint64(e.end))
	wire.Seal(head, 0)
	return dst, e
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
// it looks for the next frame at every byte, so that one bad byte costs at most one epoch. It returns only errors of reading.
func (s *segment) scan(f openFile) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	var head [frameSize]byte
	var rest []byte // of the file, from its first damage on
	for from := s.size; s.size < size; {
		head := head[:min(frameSize, size-s.size)]
		if err := readFull(f, head, s.size); err != nil {
			return err
		}
		if e, ok := parseFrame(head, s.number, s.size, size); ok {
			s.entries = append(s.entries, e)
			s.size = e.offset + int64(e.length)
			continue
		}
		if rest == nil {
			from, rest = s.size, make([]byte, size-s.size)
			if err := readFull(f, rest, from); err != nil {
				return err
			}
		}
		next, found := s.size, false
		for !found && next < size {
			next++
			_, found = parseFrame(rest[next-from:], s.number, next, size)
		}
		s.spoil(next-s.size, fmt.Errorf("%w: not the beginning of a whole frame", estimate.ErrEncoding))
	}
	return nil
}

// forgetTail forgets damage at the end, which a writer may be about to complete.
func (s *segment) forgetTail() {
	if n := len(s.damages); n > 0 && s.damages[n-1].offset+s.damages[n-1].bytes == s.size {
		s.size, s.damages = s.damages[n-1].offset, s.damages[:n-1]
	}
}

func readFull(f io.ReaderAt, b []byte, offset int64) error {
	_, err := io.ReadFull(io.NewSectionReader(f, offset, int64(len(b))), b)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// An epochReader reads parts of encoded epochs, into room that it keeps. It keeps a segment of a store open until it needs another.
type epochReader struct {
	store   *Store
	segment uint64
	open    io.Closer
	file    io.ReaderAt
	from    int64 // where the epoch begins in it
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
	return r.data, readFull(r.file, r.data, r.from+from)
}

func (r *epochReader) close() {
	if r.open != nil {
		r.open.Close()
		r.open = nil
	}
}

// head goes to an epoch, and reads its head.
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
	h, err := openHead(data)
	if err == nil && (h.start != e.start || h.start+h.config.Period != e.end || h.size() != int64(e.length)) {
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
	// open opens a file for reading, and create one that does not exist for
	// appending too. Errors match fs.ErrNotExist and fs.ErrExist.
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
