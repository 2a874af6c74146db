package colate

import (
	"errors"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

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
