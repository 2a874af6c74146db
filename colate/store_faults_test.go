package colate

import (
	"errors"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

// A disk that fills up costs the epoch that no longer fits, which can be appended when there is room again, and leaves no litter.
func TestFullDisk(t *testing.T) {
	for room := range sizeOf(t, 0, 2) + 1 {
		files := newMemory()
		s := openStore(t, files, StoreOptions{})
		files.room = room
		written := 0
		for i := range 2 {
			if err := s.Append(epochAt(t, i)); err == nil {
				written++
			} else if !errors.Is(err, errFull) {
				t.Fatal(err)
			} else {
				break
			}
		}
		want, _ := slices.BinarySearch([]int{sizeOf(t, 0, 1), sizeOf(t, 0, 2)}, room+1)
		if written != want {
			t.Fatalf("%d bytes of room: %d epochs", room, written)
		}
		used := 0
		for _, f := range files.names {
			used += len(f.data)
		}
		if used != sizeOf(t, 0, written) {
			t.Fatalf("%d bytes of room: %d bytes in %d files for %d epochs", room, used, len(files.names), written)
		}
		files.room = -1
		fill(t, s, written, 3)
		if got, damages := contents(t, s); !slices.Equal(got, numbers(0, 3)) || damages != 0 || len(s.damages()) != 0 {
			t.Fatalf("%d bytes of room: epochs %v, damages %v", room, got, s.damages())
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if got, _ := contents(t, openStore(t, files.crash(0), StoreOptions{})); !slices.Equal(got, numbers(0, 3)) {
			t.Fatalf("%d bytes of room: after a crash, epochs %v", room, got)
		}
	}
}

// A segment that cannot be read is reported, and does not stop the rest. Nor is it reported once it can be.
func TestUnreadableSegment(t *testing.T) {
	files := newMemory()
	s := openStore(t, files, StoreOptions{segmentBytes: 1})
	fill(t, s, 0, 3)
	files.bad, files.locked = segmentName(1), false
	reader, failures := openStore(t, files, StoreOptions{ReadOnly: true}), 0
	for _, err := range s.Epochs(0, 5000) {
		if err != nil {
			failures++
			if !errors.Is(err, errBad) {
				t.Errorf("%v", err)
			}
		}
	}
	opened := openStore(t, files, StoreOptions{})
	if got, _ := contents(t, opened); !slices.Equal(got, []int{0, 2}) || failures != 1 {
		t.Errorf("epochs %v, %d errors", got, failures)
	}
	if d := opened.damages(); len(d) != 1 || !is(d[0].Err, 1, 0, 0) || !errors.Is(d[0].Err, errBad) || len(reader.damages()) != 1 {
		t.Errorf("damages %v", d)
	}
	if files.bad = ""; len(reader.damages()) > 0 || reader.Summary().Epochs != 3 {
		t.Errorf("what can be read again: %+v", reader.Summary())
	}
	fill(t, opened, 3, 4)
	if _, err := opened.DropBefore(2000); err != nil {
		t.Error(err)
	}
}

// What fails may be done again, but once a sync has failed, nothing is promised any more, whatever a later one says.
func TestFaults(t *testing.T) {
	files := newMemory()
	s := openStore(t, files, StoreOptions{segmentBytes: 1})
	fill(t, s, 0, 2)
	fault := errors.New("the disk is on fire")
	fails := func(name string, err error) {
		t.Helper()
		if !errors.Is(err, fault) {
			t.Errorf("%s: %v, want the disk's error", name, err)
		}
	}
	files.fail = fault
	fails("Append", s.Append(epochAt(t, 2)))
	_, err := s.DropBefore(1500)
	fails("DropBefore", err)
	files.fail = nil
	fill(t, s, 2, 3)
	files.failSync = fault
	fails("Append", s.Append(epochAt(t, 3)))
	files.failSync = nil
	fails("Append after a sync that failed", s.Append(epochAt(t, 3)))
	fails("Close after a sync that failed", s.Close())
	s = openStore(t, files.crash(0), StoreOptions{segmentBytes: 1})
	if got, _ := contents(t, s); !slices.Equal(got, numbers(0, 3)) {
		t.Errorf("after a crash: epochs %v, want those that were synced", got)
	}
	fill(t, s, 3, 5)
	if got, _ := contents(t, openStore(t, s.files.(*memory).crash(0), StoreOptions{})); !slices.Equal(got, numbers(0, 5)) {
		t.Errorf("opened again: epochs %v", got)
	}
}

// What goes wrong when two stores are asked is reported with its place, and the rest is answered, wherever in
// an epoch the damage is, also in how often its counters are folded.
func TestQueryDamage(t *testing.T) {
	from, to := int64(sizeOf(t, 0, 1)), int64(sizeOf(t, 0, 2))
	for _, at := range []int64{from + frameSize + 58, from + frameSize + foldAt} {
		var stores [2]*Store
		var files [2]*memory
		for i := range stores {
			files[i] = newMemory()
			stores[i] = openStore(t, files[i], StoreOptions{})
			fill(t, stores[i], 0, 4)
		}
		files[1].names[segmentName(0)].data[at] ^= 3
		path := Path{Up: stores[0], Down: stores[1]}
		_, c, err := path.EstimateAll(t.Context(), records(1, 2), 0, 5000)
		if err != nil || c.Epochs != 3 || len(c.Missing) != 1 {
			t.Fatalf("%+v, %v; want three pairs, and one missing", c, err)
		}
		m := c.Missing[0]
		if m.Start != 1000 || m.End != 2000 || !errors.Is(m.Err, estimate.ErrEncoding) || !is(m.Err, 0, from, to-from) {
			t.Errorf("missing %+v", m)
		}
		if q, err := newQuery(path, 0, 5000); err != nil || q.config.fold != 0 {
			t.Errorf("counters are folded %d times, %v", q.config.fold, err)
		}
	}
}
