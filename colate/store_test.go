package colate

import (
	"bytes"
	"errors"
	"fmt"
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

// memory is a FileSystem that counts what is read, forgets on crash what was
// not synced, and fails when told to.
type memory struct {
	mu     sync.Mutex
	names  map[string]*memoryFile
	synced map[string]*memoryFile // what names would be after a crash
	read   int64
	fail   error // of every change, if not nil
	room   int   // bytes that can still be written; below 0, all
}

type memoryFile struct {
	fs     *memory
	data   []byte
	synced int
}

func newMemory() *memory {
	return &memory{names: map[string]*memoryFile{}, synced: map[string]*memoryFile{}, room: -1}
}

func (m *memory) List() ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.names)), nil
}

func (m *memory) Open(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.names[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return f, nil
}

func (m *memory) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return nil, m.fail
	}
	f := &memoryFile{fs: m}
	m.names[name] = f
	return f, nil
}

func (m *memory) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	m.names[to] = m.names[from]
	delete(m.names, from)
	return nil
}

func (m *memory) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	if _, ok := m.names[name]; !ok {
		return fs.ErrNotExist
	}
	delete(m.names, name)
	return nil
}

func (m *memory) Sync() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	m.synced = maps.Clone(m.names)
	return nil
}

// crash returns what a disk would hold after one: of what was not synced,
// nothing but, in the files, keep bytes more each.
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
	if offset >= int64(len(f.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.data[offset:])
	f.fs.read += int64(n)
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memoryFile) Write(b []byte) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.fs.fail != nil {
		return 0, f.fs.fail
	}
	n := len(b)
	if f.fs.room >= 0 {
		n = min(n, f.fs.room)
		f.fs.room -= n
	}
	f.data = append(f.data, b[:n]...)
	if n < len(b) {
		return n, errFull
	}
	return n, nil
}

func (f *memoryFile) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.fs.fail != nil {
		return f.fs.fail
	}
	f.synced = len(f.data)
	return nil
}

func (f *memoryFile) Size() (int64, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return int64(len(f.data)), nil
}

func (f *memoryFile) Close() error { return nil }

var errFull = errors.New("no space left")

// storeConfig has epochs of few bytes.
var storeConfig = Config{Counters: 20, PerFlow: 2, Bits: 16, Vectors: 1}

// epochAt is an epoch of two packets, at 1000·i and 500 ns later.
func epochAt(t testing.TB, i int) *Epoch {
	r, err := New(storeConfig)
	if err != nil {
		t.Fatal(err)
	}
	for half := range 2 {
		r.Update(hashing.Flow(i), hashing.Packet(hashing.Mix(uint64(i), uint64(half))), int64(i*1000+half*500))
	}
	return r.Current()
}

func openStore(t testing.TB, files FileSystem, options StoreOptions) *Store {
	t.Helper()
	s, err := OpenStore(files, options)
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

// contents reads everything and returns the numbers of the epochs and how
// many reports of damage there were.
func contents(t testing.TB, s *Store) (numbers []int, damages int) {
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
		numbers = append(numbers, number)
	}
	return numbers, damages
}

func counted(from, to int) []int {
	var all []int
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

func TestStore(t *testing.T) {
	files, err := Dir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	size := storeConfig.EncodedSize() + frameSize
	s := openStore(t, files, StoreOptions{SegmentBytes: 3 * size})
	empty, _ := New(storeConfig)
	if err := s.Append(empty.Current()); err != nil || s.Summary().Epochs != 0 {
		t.Errorf("an epoch without packets: %v, %d kept", err, s.Summary().Epochs)
	}
	fill(t, s, 0, 10)
	if got, _ := contents(t, s); !slices.Equal(got, counted(0, 10)) {
		t.Errorf("before Close: epochs %v", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// Opened again, it goes on in a segment of its own.
	for range 2 {
		s = openStore(t, files, StoreOptions{SegmentBytes: 3 * size})
		if len(s.Damages()) != 0 {
			t.Errorf("damages: %v", s.Damages())
		}
	}
	fill(t, s, 10, 12)
	want := Summary{Epochs: 12, Segments: 5, Bytes: 12 * size, First: 0, Last: 11500}
	if got := s.Summary(); got != want {
		t.Errorf("summary %+v, want %+v", got, want)
	}
	reader := openStore(t, files, StoreOptions{ReadOnly: true})
	if got, _ := contents(t, reader); !slices.Equal(got, counted(0, 12)) {
		t.Errorf("a reader sees epochs %v", got)
	}
	if err := reader.Append(epochAt(t, 1)); !errors.Is(err, ErrReadOnly) {
		t.Errorf("appending to a reader: %v", err)
	}
	if _, err := reader.DropBefore(1); !errors.Is(err, ErrReadOnly) {
		t.Errorf("dropping from a reader: %v", err)
	}
	if _, err := OpenStore(files, StoreOptions{SegmentBytes: -1}); !errors.Is(err, estimate.ErrConfig) {
		t.Errorf("negative segments: %v", err)
	}
}

// Whatever was synced is there after a crash that left any number of bytes of
// what was not, and one that left none.
func TestCrash(t *testing.T) {
	size := int(storeConfig.EncodedSize() + frameSize)
	files := newMemory()
	s := openStore(t, files, StoreOptions{SegmentBytes: int64(2 * size)})
	fill(t, s, 0, 5) // the fifth begins the third segment
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	fill(t, s, 5, 6)
	for keep := 0; keep <= size; keep++ {
		after := openStore(t, files.crash(keep), StoreOptions{})
		want := 5 + keep/size
		if got, _ := contents(t, after); !slices.Equal(got, counted(0, want)) {
			t.Fatalf("%d bytes of the last epoch left: epochs %v, want %d", keep, got, want)
		}
		wantDamages := 1
		if keep%size == 0 {
			wantDamages = 0
		}
		if got := after.Damages(); len(got) != wantDamages || wantDamages == 1 && got[0].Bytes != int64(keep) {
			t.Fatalf("%d bytes of the last epoch left: damages %v", keep, got)
		}
		fill(t, after, 10, 11)
		if got, _ := contents(t, after); !slices.Contains(got, 10) {
			t.Fatal("nothing can be appended after a crash")
		}
	}
}

// A store of which any file was cut or changed at any byte gives back every
// epoch but the one that was hit, and says that one is missing.
func TestEveryByte(t *testing.T) {
	size := int(storeConfig.EncodedSize() + frameSize)
	files := newMemory()
	s := openStore(t, files, StoreOptions{SegmentBytes: int64(3 * size)})
	fill(t, s, 0, 5)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	damage := func(name string, change func([]byte) []byte) (numbers []int, reports int) {
		after := files.crash(0)
		f := after.names[name]
		f.data = change(f.data)
		opened := openStore(t, after, StoreOptions{})
		numbers, found := contents(t, opened)
		return numbers, found + len(opened.Damages())
	}
	without := func(n int) []int { return slices.DeleteFunc(counted(0, 5), func(i int) bool { return i == n }) }
	for name, f := range files.names {
		number, isSegment := numberOf(name)
		for at := range len(f.data) {
			flipped, reports := damage(name, func(data []byte) []byte { data[at] ^= 0x10; return data })
			hit := int(number)*3 + at/size
			switch {
			case !isSegment || at%size < frameSize:
				// An index can be made again, and makes heads dispensable.
				if !slices.Equal(flipped, counted(0, 5)) {
					t.Fatalf("%s changed at %d: epochs %v", name, at, flipped)
				}
			case !slices.Equal(flipped, without(hit)) || reports != 1:
				t.Fatalf("%s changed at %d: epochs %v, %d reports; want all but %d, and 1", name, at, flipped, reports, hit)
			}
			cut, reports := damage(name, func(data []byte) []byte { return data[:at] })
			want := counted(0, 5)
			if isSegment {
				end := int(number)*3 + len(f.data)/size
				want = slices.DeleteFunc(want, func(i int) bool { return i >= hit && i < end })
			}
			if !slices.Equal(cut, want) || isSegment && at%size != 0 && reports != 1 {
				t.Fatalf("%s cut at %d: epochs %v, %d reports, want %v", name, at, cut, reports, want)
			}
		}
	}
	// The same without indexes to help.
	for name, f := range files.names {
		number, isSegment := numberOf(name)
		for at := range len(f.data) {
			if !isSegment {
				break
			}
			after := files.crash(0)
			after.names[name].data[at] ^= 0x10
			for other := range after.names {
				if _, ok := numberOf(other); !ok {
					delete(after.names, other)
				}
			}
			opened := openStore(t, after, StoreOptions{})
			got, found := contents(t, opened)
			if want := without(int(number)*3 + at/size); !slices.Equal(got, want) || found != 0 || len(opened.Damages()) != 1 {
				t.Fatalf("%s changed at %d, no index: epochs %v, want %v; damages %v", name, at, got, want, opened.Damages())
			}
			// What was found is remembered.
			if again := openStore(t, after, StoreOptions{}); len(again.Damages()) != 1 {
				t.Fatalf("%s changed at %d: damages forgotten", name, at)
			}
		}
	}
}

// A disk that fills up costs the epoch that no longer fits, which can be
// appended when there is room again.
func TestFullDisk(t *testing.T) {
	size := int(storeConfig.EncodedSize() + frameSize)
	for room := range 2*size + 1 {
		files := newMemory()
		s := openStore(t, files, StoreOptions{})
		files.room = room
		written := 0
		for i := range 2 {
			if err := s.Append(epochAt(t, i)); err == nil {
				written++
			} else if !errors.Is(err, errFull) {
				t.Fatal(err)
			}
		}
		if written != room/size {
			t.Fatalf("%d bytes of room: %d epochs", room, written)
		}
		files.room = -1
		fill(t, s, written, 3)
		if got, damages := contents(t, s); !slices.Equal(got, counted(0, 3)) || damages != 0 {
			t.Fatalf("%d bytes of room: epochs %v", room, got)
		}
		left := int64(0)
		for _, d := range s.Damages() {
			left += d.Bytes
		}
		if left != int64(room%size) {
			t.Fatalf("%d bytes of room: %d bytes of damage, want %d", room, left, room%size)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if got, _ := contents(t, openStore(t, files.crash(0), StoreOptions{})); !slices.Equal(got, counted(0, 3)) {
			t.Fatalf("%d bytes of room: after a crash, epochs %v", room, got)
		}
	}
}

// A segment that no index describes, as after a crash, is read through once.
func TestIndexIsMadeAgain(t *testing.T) {
	files := newMemory()
	s := openStore(t, files, StoreOptions{})
	fill(t, s, 0, 20)
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	files = files.crash(0)
	size := openStore(t, files, StoreOptions{}).Summary().Bytes
	if files.read < size {
		t.Errorf("%d bytes read of a segment of %d without an index", files.read, size)
	}
	files.read = 0
	if got := openStore(t, files, StoreOptions{}).Summary(); got.Epochs != 20 || files.read > size/2 {
		t.Errorf("%+v, %d bytes read of a segment of %d with an index", got, files.read, size)
	}
}

// A store that is opened to be read changes nothing, not even to make an index.
func TestReadOnlyChangesNothing(t *testing.T) {
	files := newMemory()
	s := openStore(t, files, StoreOptions{})
	fill(t, s, 0, 3) // and not closed
	before, _ := files.List()
	files.fail = errors.New("nothing is to be changed")
	reader := openStore(t, files, StoreOptions{ReadOnly: true})
	if got, _ := contents(t, reader); !slices.Equal(got, counted(0, 3)) {
		t.Errorf("epochs %v", got)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
	if after, _ := files.List(); !slices.Equal(after, before) {
		t.Errorf("files %v, before %v", after, before)
	}
}

// locked is a FileSystem whose files cannot be opened.
type locked struct {
	*memory
	err error
}

func (l *locked) Open(name string) (File, error) {
	if l.err != nil {
		return nil, l.err
	}
	return l.memory.Open(name)
}

// What goes wrong when a store is asked is told, with the place.
func TestReadFaults(t *testing.T) {
	files := &locked{memory: newMemory()}
	s := openStore(t, files, StoreOptions{})
	fill(t, s, 0, 3)
	v, err := NewSubvector(storeConfig)
	if err != nil {
		t.Fatal(err)
	}
	files.err = errors.New("too many open files")
	if _, err := s.Gather(v, 0, 5000); !errors.Is(err, files.err) {
		t.Errorf("Gather: %v", err)
	}
	n := 0
	for e, err := range s.Epochs(0, 5000) {
		if n++; e != nil || !errors.Is(err, files.err) {
			t.Errorf("Epochs: %v, %v", e, err)
		}
	}
	if n != 1 {
		t.Errorf("%d errors, want one", n)
	}
	files.err = nil

	whole := int64(frameSize) + storeConfig.EncodedSize()
	files.names[segmentName(0)].data[whole+frameSize+30] ^= 1
	r, err := s.Gather(v, 0, 5000)
	if err != nil || r.Epochs != 2 || len(r.Damages) != 1 {
		t.Fatalf("%+v, %v; want two epochs and a damage", r, err)
	}
	if d := r.Damages[0]; d.File != segmentName(0) || d.Offset != whole || d.Bytes != whole || !errors.Is(d.Reason, estimate.ErrEncoding) {
		t.Errorf("%+v, want %d bytes from %d", d, whole, whole)
	}
}

// Damage may hold what looks like the beginning of a frame, more than once.
func TestFalseFrames(t *testing.T) {
	frame, err := appendFrame(nil, epochAt(t, 0))
	if err != nil {
		t.Fatal(err)
	}
	junk := append([]byte("..."+frameMagic+frameMagic+"...."+frameMagic), frame[4:20]...)
	files := newMemory()
	f, _ := files.Create(segmentName(0))
	if _, err := f.Write(append(junk, frame...)); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, files, StoreOptions{})
	got, _ := contents(t, s)
	damages := s.Damages()
	if !slices.Equal(got, counted(0, 1)) || len(damages) != 1 || damages[0].Offset != 0 || damages[0].Bytes != int64(len(junk)) {
		t.Errorf("epochs %v, damages %v; want the first %d bytes", got, damages, len(junk))
	}
}

// backwards is a FileSystem that lists its files in another order.
type backwards struct{ *memory }

func (b backwards) List() ([]string, error) {
	names, err := b.memory.List()
	slices.Reverse(names)
	return names, err
}

// In whatever order the directory has them, the last segment is the last.
func TestUnsortedDirectory(t *testing.T) {
	files := backwards{newMemory()}
	for i := range 4 {
		s := openStore(t, files, StoreOptions{SegmentBytes: 1})
		fill(t, s, 3*i, 3*i+3)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := openStore(t, files, StoreOptions{})
	if got, damages := contents(t, s); !slices.Equal(got, counted(0, 12)) || damages != 0 {
		t.Errorf("epochs %v, %d damages", got, damages)
	}
	if n, err := s.DropBefore(3000); n != 3 || err != nil {
		t.Errorf("dropped %d, %v; want the first 3", n, err)
	}
}

// Once a sync has failed, nothing is promised any more: what was appended before
// it may be lost, as here, whatever a later one says.
func TestFaults(t *testing.T) {
	files := newMemory()
	s := openStore(t, files, StoreOptions{SegmentBytes: 1})
	fill(t, s, 0, 2)
	fault := errors.New("the disk is on fire")
	files.fail = fault
	fails := func(name string, err error) {
		t.Helper()
		if !errors.Is(err, fault) {
			t.Errorf("%s: %v, want the disk's error", name, err)
		}
	}
	fails("Append", s.Append(epochAt(t, 2)))
	_, err := s.DropBeyond(0)
	fails("DropBeyond", err)
	files.fail = nil
	fails("Append after a sync that failed", s.Append(epochAt(t, 2)))
	fails("Sync after one that failed", s.Sync())
	fails("Close after a sync that failed", s.Close())
	if got, _ := contents(t, s); !slices.Equal(got, counted(0, 2)) {
		t.Errorf("after the fault: epochs %v", got)
	}

	s = openStore(t, files.crash(0), StoreOptions{SegmentBytes: 1})
	got, _ := contents(t, s)
	if !slices.Equal(got, counted(0, 1)) {
		t.Errorf("after a crash: epochs %v, want that which was synced", got)
	}
	fill(t, s, 1, 3)
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	if got, _ := contents(t, openStore(t, s.files.(*memory).crash(0), StoreOptions{})); !slices.Equal(got, counted(0, 3)) {
		t.Errorf("opened again: epochs %v", got)
	}
}

func TestRetention(t *testing.T) {
	size := storeConfig.EncodedSize() + frameSize
	files := newMemory()
	s := openStore(t, files, StoreOptions{SegmentBytes: 2 * size})
	fill(t, s, 0, 9) // segments of 2, 2, 2, 2 and 1
	check := func(what string, dropped int, err error, want, from int) {
		t.Helper()
		if got, _ := contents(t, s); err != nil || dropped != want || !slices.Equal(got, counted(from, 9)) {
			t.Errorf("%s: %d dropped, %v, epochs %v left; want %d, from %d on", what, dropped, err, got, want, from)
		}
	}
	n, err := s.DropBefore(3500)
	check("before the end of epoch 3", n, err, 2, 2)
	n, err = s.DropBefore(3501)
	check("after it", n, err, 2, 4)
	n, err = s.DropBeyond(3 * size)
	check("to the size of 3", n, err, 2, 6)
	n, err = s.DropBefore(math.MaxInt64)
	check("all but what is being written", n, err, 2, 8)
	if got := len(files.names); got != 1 {
		t.Errorf("%d files left, want 1", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	n, err = s.DropBeyond(0)
	check("all", n, err, 1, 9)
}

// A query of one flow reads the epochs of its lifetime, and no others.
func TestGatherReadsOverlapping(t *testing.T) {
	const epochs = 10_000
	files := newMemory()
	s := openStore(t, files, StoreOptions{SegmentBytes: 100_000})
	fill(t, s, 0, epochs)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files.read = 0
	s = openStore(t, files, StoreOptions{})
	if max := int64(epochs * (entrySize + 1)); files.read > max {
		t.Errorf("opening read %d bytes, want indexes alone, below %d", files.read, max)
	}
	v, err := NewSubvector(storeConfig)
	if err != nil {
		t.Fatal(err)
	}
	v.Reset(5000)
	files.read = 0
	r, err := s.Gather(v, 4_999_500, 5_001_000)
	want := Reading{Epochs: 3, Bytes: 3 * storeConfig.EncodedSize()}
	if err != nil || r.Epochs != want.Epochs || r.Bytes != want.Bytes || files.read != want.Bytes || len(r.Damages) != 0 {
		t.Errorf("%+v and %d bytes of the disk, %v; want %+v", r, files.read, err, want)
	}
	// The same as from memory.
	direct, _ := NewSubvector(storeConfig)
	direct.Reset(5000)
	for i := 4999; i <= 5001; i++ {
		if err := direct.Add(epochAt(t, i)); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(v.sums, direct.sums) || v.vectors != direct.vectors || v.epochs != direct.epochs {
		t.Error("gathered from the store it differs from what was recorded")
	}
	other := storeConfig
	other.Seed++
	o, _ := NewSubvector(other)
	if r, err := s.Gather(o, 0, 1500); err != nil || r.Other != 2 || o.Epochs() != 0 {
		t.Errorf("another Config: %+v, %v", r, err)
	}
	if err := o.Add(epochAt(t, 1)); !errors.Is(err, estimate.ErrMismatch) {
		t.Errorf("adding an epoch of another Config: %v", err)
	}
}

// Readers see whole epochs, in order and without gaps, while one writer
// appends and drops.
func TestReadersAndWriter(t *testing.T) {
	files, err := Dir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := openStore(t, files, StoreOptions{SegmentBytes: 1000})
	const epochs = 300
	var readers sync.WaitGroup
	done := make(chan struct{})
	failed := make(chan error, 4)
	for range 4 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for last := false; !last; {
				select {
				case <-done:
					last = true
				default:
				}
				previous := int64(-1)
				for e, err := range s.Epochs(math.MinInt64, math.MaxInt64) {
					if err != nil {
						failed <- err
						return
					}
					first, _, _ := e.Span()
					if previous >= 0 && first <= previous {
						failed <- fmt.Errorf("epoch at %d after %d", first, previous)
						return
					}
					previous = first
				}
				if last && previous != (epochs-1)*1000 {
					failed <- fmt.Errorf("the last epoch seen is at %d", previous)
				}
				s.Summary()
				s.Damages()
			}
		}()
	}
	for i := range epochs {
		if err := s.Append(epochAt(t, i)); err != nil {
			t.Fatal(err)
		}
		if i%50 == 49 {
			if _, err := s.DropBefore(int64(i-20) * 1000); err != nil {
				t.Fatal(err)
			}
		}
	}
	close(done)
	readers.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
}

// A reused segment number does not bring an old index back to life.
func TestStaleIndex(t *testing.T) {
	files := newMemory()
	s := openStore(t, files, StoreOptions{})
	fill(t, s, 0, 2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	delete(files.names, segmentName(0)) // retention, then a crash
	s = openStore(t, files, StoreOptions{})
	fill(t, s, 5, 7)
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	if got, _ := contents(t, openStore(t, files.crash(0), StoreOptions{})); !slices.Equal(got, counted(5, 7)) {
		t.Errorf("epochs %v", got)
	}
}

func FuzzSegment(f *testing.F) {
	frame := func(i int) []byte {
		data, err := appendFrame(nil, epochAt(f, i))
		if err != nil {
			f.Fatal(err)
		}
		return data
	}
	good := append(frame(1), frame(2)...)
	f.Add(good)
	f.Add(good[1:])
	f.Add(good[:len(good)-1])
	f.Add(append([]byte(frameMagic), good...))
	f.Add(append(bytes.Repeat([]byte("C"), 1<<16-3), frame(3)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := scan(bytes.NewReader(data), 1, int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		// Entries and damages cover the segment, once.
		covered := int64(0)
		for _, e := range s.entries {
			covered += frameSize + int64(e.length)
		}
		for _, d := range s.damages {
			covered += d.Bytes
		}
		if covered != int64(len(data)) {
			t.Errorf("%d of %d bytes accounted for", covered, len(data))
		}
		back, err := parseIndex(s.appendIndex(nil), 1, s.size)
		if err != nil || !slices.Equal(back.entries, s.entries) || len(back.damages) != len(s.damages) {
			t.Errorf("its index says otherwise: %v", err)
		}
	})
}

func FuzzIndex(f *testing.F) {
	s := &segment{number: 1, size: 1000, entries: []entry{{1, 28, 100, 3, 4}}, damages: []Damage{{Offset: 128, Bytes: 872}}}
	f.Add(s.appendIndex(nil))
	f.Add((&segment{size: 1000}).appendIndex(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, sealedOrSame(data)} {
			s, err := parseIndex(data, 1, 1000)
			if err != nil {
				if !errors.Is(err, estimate.ErrEncoding) {
					t.Errorf("%v is no ErrEncoding", err)
				}
				continue
			}
			if !bytes.Equal(s.appendIndex(nil), data) {
				t.Error("accepted what encodes otherwise")
			}
		}
	})
}
