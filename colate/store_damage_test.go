package colate

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

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
