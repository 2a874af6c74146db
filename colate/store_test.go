package colate

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

func TestStore(t *testing.T) {
	files := dir(filepath.Join(t.TempDir(), "made", "when written"))
	options := StoreOptions{segmentBytes: int64(sizeOf(t, 0, 3))}
	s := openStore(t, files, options)
	empty, _ := New(storeConfig)
	if err := s.Append(empty); err != nil || s.Summary().Epochs != 0 {
		t.Errorf("an epoch without packets: %v, %d kept", err, s.Summary().Epochs)
	}
	fill(t, s, 0, 10)
	if got, _ := contents(t, s); !slices.Equal(got, numbers(0, 10)) {
		t.Errorf("before Close: epochs %v", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// Opened again, it goes on in a segment of its own.
	s = openStore(t, files, options)
	fill(t, s, 10, 12)
	want := Coverage{Epochs: 12, Bytes: int64(sizeOf(t, 0, 12)), Start: 0, End: 12000}
	if got := s.Summary(); !reflect.DeepEqual(got, want) || len(s.segments) < 4 {
		t.Errorf("summary %+v, want %+v", got, want)
	}
	reader := openStore(t, files, StoreOptions{ReadOnly: true})
	if err := reader.Append(epochAt(t, 1)); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("appending to a reader: %v", err)
	}
	if _, err := reader.DropBefore(1); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("dropping from a reader: %v", err)
	}
	if _, err := openFiles(files, StoreOptions{Age: -1}); !errors.Is(err, estimate.ErrConfig) {
		t.Errorf("negative age: %v", err)
	}
}

// A store that is opened to be read makes no directory, and changes nothing.
func TestReadOnlyChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing")
	if _, err := OpenStore(path, StoreOptions{ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("opening what is not there: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a reader made a directory: %v", err)
	}
	files := newMemory()
	s := openStore(t, files, StoreOptions{})
	fill(t, s, 0, 3) // and not closed
	before, _ := files.list()
	files.fail = errors.New("nothing is to be changed")
	reader := openStore(t, files, StoreOptions{ReadOnly: true})
	if got, _ := contents(t, reader); !slices.Equal(got, numbers(0, 3)) {
		t.Errorf("epochs %v", got)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
	if after, _ := files.list(); !slices.Equal(after, before) {
		t.Errorf("files %v, before %v", after, before)
	}
}

// While one writer writes, no other does, of this process or through other files; and a segment is made once, whatever happens.
func TestTwoWriters(t *testing.T) {
	path := t.TempDir()
	s := openStore(t, dir(path), StoreOptions{})
	fill(t, s, 0, 12)
	if _, err := OpenStore(path, StoreOptions{}); !errors.Is(err, ErrLocked) {
		t.Errorf("a second writer: %v, want ErrLocked", err)
	}
	if _, err := dir(path).create(segmentName(0)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a segment that is there is made again: %v", err)
	}
	fill(t, s, 12, 13)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	second := openStore(t, dir(path), StoreOptions{})
	fill(t, second, 13, 14)
	if got, _ := contents(t, second); !slices.Equal(got, numbers(0, 14)) {
		t.Errorf("epochs %v", got)
	}

	// Where files cannot be locked, each has segments of its own.
	files := newMemory()
	one := openStore(t, files, StoreOptions{})
	files.locked = false
	two := openStore(t, files, StoreOptions{})
	for i := range 6 {
		fill(t, []*Store{one, two}[i%2], i, i+1)
	}
	if err := errors.Join(one.Close(), two.Close()); err != nil {
		t.Fatal(err)
	}
	if got, _ := contents(t, openStore(t, files, StoreOptions{})); !slices.Equal(got, numbers(0, 6)) {
		t.Errorf("of two writers: epochs %v", got)
	}
}

// A reader that refreshes sees what was written and removed since. The tail that its writer is about to write is no damage.
func TestRefresh(t *testing.T) {
	files := newMemory()
	s := openStore(t, files, StoreOptions{segmentBytes: int64(sizeOf(t, 0, 2))})
	reader := openStore(t, files, StoreOptions{ReadOnly: true})
	for i := range 9 {
		fill(t, s, i, i+1)
		live := files.names[segmentName(s.segments[len(s.segments)-1].number)]
		whole := live.data
		live.data = append(slices.Clone(whole), frame(epochAt(t, 99))[:5+7*i]...)
		files.read = 0
		if reader.Summary(); files.read > int64(3*sizeOf(t, 0, 2)) {
			t.Errorf("to see one more epoch, %d bytes were read", files.read)
		}
		if got, _ := contents(t, reader); !slices.Equal(got, numbers(0, i+1)) || len(reader.damages()) != 0 {
			t.Fatalf("after epoch %d: %v, damages %v", i, got, reader.damages())
		}
		live.data = whole
	}
	if n, err := s.DropBefore(4000); err != nil || n != 4 {
		t.Fatalf("%d dropped, %v", n, err)
	}
	if got, damages := contents(t, reader); !slices.Equal(got, numbers(4, 9)) || damages != 0 {
		t.Errorf("of what was removed, a reader says %v, %d damages", got, damages)
	}
	if got := reader.Summary(); got.Epochs != 5 {
		t.Errorf("%+v", got)
	}
}
