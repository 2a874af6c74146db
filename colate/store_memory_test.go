package colate

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// memory is a fileSystem that counts what is read, forgets on crash what was not synced, and fails when told to.
type memory struct {
	mu       sync.Mutex
	names    map[string]*memoryFile
	synced   map[string]*memoryFile // what names would be after a crash
	read     int64
	fail     error // of every change, if not nil
	failSync error
	room     int // bytes that can still be written; below 0, all
	locked   bool
	bad      string // a file that cannot be opened
}

type memoryFile struct {
	fs     *memory
	data   []byte
	synced int
}

func newMemory() *memory {
	return &memory{names: map[string]*memoryFile{}, synced: map[string]*memoryFile{}, room: -1}
}

// An unlock ends a lock.
type unlock func()

func (u unlock) Close() error { u(); return nil }

func (m *memory) lock() (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locked {
		return nil, ErrLocked
	}
	m.locked = true
	return unlock(func() { m.locked = false }), nil
}

func (m *memory) list() ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.names)), nil
}

func (m *memory) open(name string) (openFile, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch f, ok := m.names[name]; {
	case !ok:
		return nil, fs.ErrNotExist
	case name == m.bad:
		return nil, errBad
	default:
		return f, nil
	}
}

// change makes a change, if it may.
func (m *memory) change(do func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	return do()
}

func (m *memory) create(name string) (openFile, error) {
	f := &memoryFile{fs: m}
	return f, m.change(func() error {
		if m.names[name] != nil {
			return fs.ErrExist
		}
		m.names[name] = f
		return nil
	})
}

func (m *memory) remove(name string) error {
	return m.change(func() error { delete(m.names, name); return nil })
}

func (m *memory) sync() error {
	return m.change(func() error { m.synced = maps.Clone(m.names); return nil })
}

// crash returns what a disk would hold after one: what was synced and, in each file, keep bytes more.
func (m *memory) crash(keep int) *memory {
	after := newMemory()
	for name, f := range m.synced {
		n := min(f.synced+keep, len(f.data))
		after.names[name] = &memoryFile{fs: after, data: bytes.Clone(f.data[:n]), synced: n}
	}
	return after
}

func (f *memoryFile) ReadAt(b []byte, offset int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	n, err := bytes.NewReader(f.data).ReadAt(b, offset)
	f.fs.read += int64(n)
	return n, err
}

func (f *memoryFile) Write(b []byte) (n int, err error) {
	err = f.fs.change(func() error {
		if n = len(b); f.fs.room >= 0 {
			n = min(n, f.fs.room)
			f.fs.room -= n
		}
		if f.data = append(f.data, b[:n]...); n < len(b) {
			return errFull
		}
		return nil
	})
	return n, err
}

func (f *memoryFile) Sync() error {
	return f.fs.change(func() error {
		if f.fs.failSync == nil {
			f.synced = len(f.data)
		}
		return f.fs.failSync
	})
}

func (f *memoryFile) Truncate(size int64) error {
	return f.fs.change(func() error {
		if f.fs.room >= 0 {
			f.fs.room += len(f.data) - int(size)
		}
		f.data = f.data[:size]
		f.synced = min(f.synced, len(f.data))
		return nil
	})
}

func (f *memoryFile) Seek(int64, int) (int64, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return int64(len(f.data)), nil
}

func (f *memoryFile) Close() error { return nil }

var errFull, errBad = errors.New("no space left"), errors.New("bad sector")

// storeConfig has epochs of few bytes.
var storeConfig = Config{Counters: 20, PerFlow: 2, Bits: 32, CountBits: 8, DigestBits: 8, Period: 1000}

// epochAt is an epoch of two packets, at 1000·i and 500 ns later.
func epochAt(t testing.TB, i int) *Recorder {
	r, err := New(storeConfig)
	if err != nil {
		t.Fatal(err)
	}
	for half := range 2 {
		r.Update(hashing.Flow(i), hashing.Packet(hashing.Mix(uint64(i), uint64(half))), int64(i*1000+half*500))
	}
	return r
}

func openStore(t testing.TB, files fileSystem, options StoreOptions) *Store {
	t.Helper()
	s, err := openFiles(files, options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fill appends epochs from to to-1.
func fill(t testing.TB, s *Store, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := s.Append(epochAt(t, i)); err != nil {
			t.Fatal(err)
		}
	}
}

// contents reads everything and returns the numbers of the epochs and how many reports of damage there were.
func contents(t testing.TB, s *Store) (found []int, damages int) {
	t.Helper()
	for e, err := range s.Epochs(math.MinInt64, math.MaxInt64) {
		if err != nil {
			if !errors.Is(err, estimate.ErrEncoding) {
				t.Fatal(err)
			}
			damages++
			continue
		}
		first, _, _ := e.Span()
		number := int(first / 1000)
		if !bytes.Equal(encoded(t, e), encoded(t, epochAt(t, number))) {
			t.Fatalf("epoch %d came back changed", number)
		}
		found = append(found, number)
	}
	return found, damages
}

// sizeOf is how many bytes epochs from to to-1 take in a segment.
func sizeOf(t testing.TB, from, to int) int {
	size := 0
	for i := from; i < to; i++ {
		size += len(frame(epochAt(t, i)))
	}
	return size
}

func encoded(t testing.TB, r *Recorder) []byte {
	t.Helper()
	data, err := r.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func numbers(from, to int) []int {
	var all []int
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

// frame is that of an epoch.
func frame(r *Recorder) []byte {
	frame, _ := frameOf(nil, r)
	return frame
}

// damages lists what the store says is wrong with its files.
func (s *Store) damages() []Missing { return s.Summary().Missing }

// is reports whether an error is about a part of a segment.
func is(err error, segment uint64, offset, bytes int64) bool {
	return err.Error() == damaged(segment, offset, bytes, errors.Unwrap(err)).Error()
}
