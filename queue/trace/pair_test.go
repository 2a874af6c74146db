package trace

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

// capture writes packets of one byte, all of one link type, at the times, and reads them again.
func capture(t testing.TB, link hashing.LinkType, times ...int64) *Reader {
	t.Helper()
	return must(NewReader(bytes.NewReader(CaptureFile(link, times...))))(t)
}

// CaptureFile returns the file, for the examples, too.
func CaptureFile(link hashing.LinkType, times ...int64) []byte {
	b := pcapFileHead(binary.LittleEndian, pcapNanos, uint32(link))
	for i, at := range times {
		b = pcapRecord(binary.LittleEndian, b, uint32(at/1e9), uint32(at%1e9), 1, string([]byte{byte(i)}))
	}
	return b
}

// A sighting is what a Pair yields, less the link type and length.
type sighting struct {
	side  Side
	time  int64
	index byte // of the packet in its capture
}

func drain(p *Pair) ([]sighting, error) {
	var all []sighting
	for {
		side, rec, err := p.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, sighting{side, rec.Time, rec.Frame[0]})
	}
}

// The order is the same as that of sorting everything at once.
func TestPairSorts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		var sides [2]*Reader
		var want []sighting
		for side := range sides {
			// Packets of few different times, each written by up to maxBackstep later than its time.
			times := make([]int64, random.IntN(250))
			late := map[int]int64{}
			order := make([]int, len(times))
			for i := range times {
				times[i] = random.Int64N(50) * maxBackstep / 10
				late[i] = times[i] + random.Int64N(maxBackstep)
				order[i] = i
			}
			slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(late[a], late[b]) })
			written := []int64{0} // so that neither is empty
			for _, i := range order {
				written = append(written, times[i])
			}
			for i, at := range written {
				want = append(want, sighting{Side(side), at, byte(i)})
			}
			sides[side] = capture(t, 1, written...)
		}
		slices.SortStableFunc(want, func(a, b sighting) int { return cmp.Compare(a.time, b.time) })
		pair := NewPair(sides[0], sides[1])
		got, err := drain(pair)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v\n got %v\nwant %v", err, got, want)
		}
		if _, _, err := pair.Next(); err != io.EOF {
			t.Fatalf("after the end: %v", err)
		}
	}
}

// Times before 1970 are times like any other.
func TestPairBeforeTheEpoch(t *testing.T) {
	o := binary.LittleEndian
	file := ngIface(o, ngSection(o, nil), 1, 0, ngOption(o, 14, o.AppendUint64(nil, 1<<64-10)...)...)
	file = ngEnhanced(o, file, 0, 1, 1, "x")
	r := must(NewReader(bytes.NewReader(file)))(t)
	got, err := drain(NewPair(capture(t, 1, 1e9), r))
	if want := []sighting{{Egress, -10e9 + 1000, 'x'}, {Ingress, 1e9, 0}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

func TestPairErrors(t *testing.T) {
	reader := func(file []byte) *Reader { return must(NewReader(bytes.NewReader(file)))(t) }
	files := small(t)
	good := []int64{1e9, 2e9, 3e9}
	whole := CaptureFile(1, good...)
	tests := []struct {
		name    string
		in, out *Reader
		packets int // delivered before
		want    error
		say     string
	}{
		{"no ingress", capture(t, 1), capture(t, 1, good...), 0, ErrEmpty, "ingress capture: no packets"},
		{"no egress", capture(t, 1, good...), capture(t, 1), 0, ErrEmpty, "egress capture: no packets"},
		{"both empty", capture(t, 1), capture(t, 2), 0, ErrEmpty, "ingress"},
		{"clock set back", capture(t, 1, 1e9, 2e9, 2e9-maxBackstep-1), capture(t, 1, good...), 3, ErrTime,
			"ingress capture: packet 3: unusable time: 100000001 ns earlier"},
		{"no time", capture(t, 1, 1, 1), reader(files["pcapng BigEndian"]), 4, ErrTime, "egress capture: packet 3: unusable time: missing"},
		{"link types", capture(t, 1, good...), capture(t, 201, good...), 0, ErrLink,
			"egress capture: packet 1: link types that cannot be compared: 201, where another has 1"},
		{"link types, neither known", capture(t, 201, good...), capture(t, 202, good...), 0, ErrLink, "202, where another has 201"},
		{"cut off", capture(t, 1, good...), reader(whole[:len(whole)-1]), 4, io.ErrUnexpectedEOF,
			"egress capture: packet 3, at byte 58: cut off, 16 of at least 17 bytes"},
	}
	for _, test := range tests {
		p := NewPair(test.in, test.out)
		got, err := drain(p)
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.say) {
			t.Errorf("%s: %v; want %v, saying %q", test.name, err, test.want, test.say)
		}
		if len(got) != test.packets {
			t.Errorf("%s: %d packets delivered, want %d", test.name, len(got), test.packets)
		}
		if _, _, again := p.Next(); again != err {
			t.Errorf("%s: after %v: %v", test.name, err, again)
		}
	}
}

// Captures of two link types can be compared if both carry IP, or if they are the same.
func TestPairLinkTypes(t *testing.T) {
	for _, links := range [][2]hashing.LinkType{
		{hashing.LinkEthernet, 113}, {hashing.LinkRaw, hashing.LinkEthernet}, {201, 201},
	} {
		got, err := drain(NewPair(capture(t, links[0], 1, 2), capture(t, links[1], 3, 4)))
		if err != nil || len(got) != 4 {
			t.Errorf("%v: %d packets, %v", links, len(got), err)
		}
	}
}

// A capture that breaks off costs no packet that both captures have, wherever it does, and whichever it is.
func TestPairBroken(t *testing.T) {
	const packets, size, delay = 8, pcapRecordSize + 1, 25
	var times, later []int64
	for i := range int64(packets) {
		times, later = append(times, 10*i), append(later, 10*i+delay)
	}
	in, out := CaptureFile(1, times...), CaptureFile(1, later...)
	for _, c := range []struct {
		name  string
		files [2][]byte
		cuts  [2]int
	}{
		{"ingress", [2][]byte{in, out}, [2]int{1, 0}},
		{"egress", [2][]byte{in, out}, [2]int{0, 1}},
		{"one file twice", [2][]byte{in, in}, [2]int{1, 1}},
	} {
		for cut := 1; cut < (packets-1)*size; cut++ {
			var readers [2]*Reader
			var whole [2]int // packets
			for i, file := range c.files {
				file = file[:len(file)-cut*c.cuts[i]]
				whole[i] = (len(file) - pcapHeaderSize) / size
				readers[i] = must(NewReader(bytes.NewReader(file)))(t)
			}
			pair := NewPair(readers[0], readers[1])
			all, err := drain(pair)
			if breaks := cut%size != 0; breaks != errors.Is(err, io.ErrUnexpectedEOF) || breaks != (pair.Broken(Ingress) || pair.Broken(Egress)) {
				t.Errorf("%s, %d bytes less: %v", c.name, cut, err)
			}
			var seen [2][packets]bool
			for _, s := range all {
				seen[s.side][s.index] = true
			}
			for i := range min(whole[0], whole[1]) {
				if !seen[0][i] || !seen[1][i] {
					t.Errorf("%s, %d bytes less: packet %d is in both and was not seen: %v", c.name, cut, i, all)
				}
			}
		}
	}
}
