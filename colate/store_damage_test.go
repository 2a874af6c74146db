package colate

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// What Append acknowledged survives a crash, whether that left some bytes of what it did not acknowledge, or none.
func TestCrash(t *testing.T) {
	files := newMemory()
	s := openStore(t, files, StoreOptions{segmentBytes: int64(sizeOf(t, 0, 2))})
	fill(t, s, 0, 5) // the fifth begins the third segment
	live := files.names[segmentName(2)]
	synced := live.synced
	fill(t, s, 5, 6)
	live.synced = synced // as if it had never come to that
	size := sizeOf(t, 5, 6)
	for keep := 0; keep <= size; keep++ {
		after := openStore(t, files.crash(keep), StoreOptions{})
		want := 5 + keep/size
		if got, _ := contents(t, after); !slices.Equal(got, numbers(0, want)) {
			t.Fatalf("%d bytes of the last epoch left: epochs %v, want %d", keep, got, want)
		}
		wantDamages := 1
		if keep%size == 0 {
			wantDamages = 0
		}
		if got := after.damages(); len(got) != wantDamages || wantDamages == 1 && !is(got[0].Err, 2, int64(synced), int64(keep)) {
			t.Fatalf("%d bytes of the last epoch left: damages %v", keep, got)
		}
		fill(t, after, 10, 11)
		if got, _ := contents(t, after); !slices.Contains(got, 10) {
			t.Fatal("nothing can be appended after a crash")
		}
	}
}

// A store with any byte changed, or cut anywhere, gives back every epoch but the one that was hit, or those behind the cut, and says so.
func TestEveryByte(t *testing.T) {
	files := newMemory()
	s := openStore(t, files, StoreOptions{})
	fill(t, s, 0, 3)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	name := segmentName(0)
	whole := files.names[name].data
	var ends []int
	for i := range 3 {
		ends = append(ends, sizeOf(t, 0, i+1))
	}
	damaged := func(data []byte) (found []int, reports int) {
		after := newMemory()
		after.names[name] = &memoryFile{fs: after, data: data}
		opened := openStore(t, after, StoreOptions{})
		found, reports = contents(t, opened)
		return found, reports + len(opened.damages())
	}
	for at := range whole {
		hit, _ := slices.BinarySearch(ends, at+1)
		for _, flip := range []byte{0x01, 0x10, 0xff} {
			changed := slices.Clone(whole)
			changed[at] ^= flip
			got, reports := damaged(changed)
			want := slices.DeleteFunc(numbers(0, 3), func(i int) bool { return i == hit })
			if !slices.Equal(got, want) || reports != 1 {
				t.Fatalf("byte %d changed by %#x: epochs %v, want %v; %d reports", at, flip, got, want, reports)
			}
		}
		if got, _ := damaged(whole[:at]); !slices.Equal(got, numbers(0, hit)) {
			t.Fatalf("cut at %d: epochs %v", at, got)
		}
	}
}

// Damage may hold what looks like the beginning of a frame, more than once.
func TestFalseFrames(t *testing.T) {
	frame := frame(epochAt(t, 0))
	junk := append([]byte("..."+frameMagic+frameMagic+"...."+frameMagic), frame[4:20]...)
	files := newMemory()
	files.names[segmentName(0)] = &memoryFile{fs: files, data: append(junk, frame...)}
	s := openStore(t, files, StoreOptions{ReadOnly: true})
	got, _ := contents(t, s)
	damages := s.damages()
	if !slices.Equal(got, numbers(0, 1)) || len(damages) != 1 || !is(damages[0].Err, 0, 0, int64(len(junk))) {
		t.Errorf("epochs %v, damages %v; want the first %d bytes", got, damages, len(junk))
	}
}

// Crafted files do not make a store read more than a few times what is there: heads of frames without their payloads, and frames apart.
func TestAmplification(t *testing.T) {
	head := frame(epochAt(t, 0))[:frameSize]
	files := newMemory()
	heads := bytes.Repeat(head, 4000)
	heads = append(heads, frame(epochAt(t, 1))[:frameSize]...)
	files.names[segmentName(0)] = &memoryFile{fs: files, data: heads}
	s := openStore(t, files, StoreOptions{ReadOnly: true})
	contents(t, s)
	if most := int64(10 * len(heads)); files.read > most {
		t.Errorf("%d bytes read of %d", files.read, len(heads))
	}
	var apart []byte
	for i := range 1000 {
		apart = append(append(apart, frame(epochAt(t, i))...), 'H')
	}
	files.names[segmentName(0)] = &memoryFile{fs: files, data: apart}
	files.read = 0
	if s := openStore(t, files, StoreOptions{ReadOnly: true}); files.read > int64(2*len(apart)) || s.Summary().Epochs != 1000 {
		t.Errorf("%d bytes read of %d, %d epochs", files.read, len(apart), s.Summary().Epochs)
	}
}

func FuzzSegment(f *testing.F) {
	good := append(frame(epochAt(f, 1)), frame(epochAt(f, 2))...)
	f.Add(good)
	f.Add(good[1:])
	f.Add(good[:len(good)-1])
	f.Add(append([]byte(frameMagic), good...))
	f.Add(append(bytes.Repeat([]byte("H"), 1<<16-3), frame(epochAt(f, 3))...))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, files := &segment{number: 1}, newMemory()
		files.names[segmentName(1)] = &memoryFile{fs: files, data: data}
		if err := s.scan(files); err != nil {
			t.Fatal(err)
		}
		// Entries and damages cover the segment, once.
		covered := int64(0)
		for _, e := range s.entries {
			covered += frameSize + int64(e.length)
		}
		for _, d := range s.damages {
			bytes := int64(0)
			fmt.Sscanf(d.Err.Error(), "colate: "+segmentName(1)+": %d", &bytes)
			covered += bytes
		}
		if covered != int64(len(data)) || s.size != covered {
			t.Errorf("%d of %d bytes accounted for", covered, len(data))
		}
	})
}
