package colate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

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
	other.Identity++
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
