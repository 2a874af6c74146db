package hashing_test

import (
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

var dataDir = filepath.Join("..", "..", "shared", "data")

// record is one frame of a capture.
type record struct {
	link  hashing.Link
	frame []byte
}

// readCapture reads a whole pcap file, as far as it is one: the captures made
// to break dissectors also break readers. This package knows no other, and
// must not learn of the one that is built on it.
func readCapture(t testing.TB, path string) []record {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var source io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if source, err = gzip.NewReader(file); err != nil {
			t.Fatal(err)
		}
	}
	data, err := io.ReadAll(source)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) < 24 {
		return nil
	}
	var order binary.ByteOrder = binary.LittleEndian
	if data[0] == 0xa1 {
		order = binary.BigEndian
	}
	switch order.Uint32(data) {
	case 0xa1b2c3d4, 0xa1b23c4d:
	default:
		return nil
	}
	link := hashing.Link(order.Uint32(data[20:]))
	var records []record
	for data = data[24:]; len(data) >= 16; {
		size := order.Uint32(data[8:])
		data = data[16:]
		size = min(size, uint32(len(data)))
		// A capacity that ends with the frame makes a look beyond it panic.
		records = append(records, record{link, data[:size:size]})
		data = data[size:]
	}
	return records
}

// strangeCaptures returns every frame of the captures made to break
// dissectors, by file.
func strangeCaptures(t testing.TB) map[string][]record {
	t.Helper()
	root := filepath.Join(dataDir, "encapsulation")
	if _, err := os.Stat(root); err != nil {
		t.Skipf("captures not here: %v", err)
	}
	captures := make(map[string][]record)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			captures[path] = readCapture(t, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return captures
}

// checkAgainstReference parses one frame with both parsers and reports where
// they differ. It returns Parse's error.
func checkAgainstReference(t testing.TB, link hashing.Link, frame []byte) error {
	t.Helper()
	const seed = 7
	var f hashing.Frame
	err := f.Parse(link, frame)
	want, wantErr := slowParse(link, frame)
	if err != wantErr {
		t.Errorf("link %d, frame %x: error %v, reference %v", link, frame, err, wantErr)
		return err
	}
	if err != nil {
		if f != (hashing.Frame{}) {
			t.Errorf("link %d, frame %x: error %v and yet a frame %+v", link, frame, err, f)
		}
		return err
	}
	if f.Tuple != want.tuple || f.Length != want.length || f.Fragment != want.fragment || f.Cut != want.cut {
		t.Errorf("link %d, frame %x:\n got %v length %d, fragment %v, cut %v\nwant %v length %d, fragment %v, cut %v", link, frame,
			f.Tuple, f.Length, f.Fragment, f.Cut, want.tuple, want.length, want.fragment, want.cut)
	}
	if got, want := f.Digest(seed), hashing.Digest(seed, want.hashed); got != want {
		t.Errorf("link %d, frame %x: digest %#x, reference %#x", link, frame, got, want)
	}
	return nil
}

func TestFrameStrangeCaptures(t *testing.T) {
	var frames, parsed int
	links := make(map[hashing.Link]int)
	for path, records := range strangeCaptures(t) {
		for i, r := range records {
			frames++
			switch err := checkAgainstReference(t, r.link, r.frame); err {
			case nil:
				parsed++
				links[r.link]++
			case hashing.ErrNotIP, hashing.ErrTruncated, hashing.ErrMalformed, hashing.ErrLink:
			default:
				t.Errorf("%s frame %d: error %v is none of the package's", path, i, err)
			}
		}
	}
	t.Logf("%d frames, %d parsed; by link type %v", frames, parsed, links)
	for _, link := range []hashing.Link{hashing.LinkNull, hashing.LinkEthernet, hashing.LinkRaw, hashing.LinkCooked, hashing.LinkIPv4, hashing.LinkIPv6} {
		if links[link] == 0 {
			t.Errorf("no frame of link type %d was parsed", link)
		}
	}
}

func TestFrameAllocatesNothing(t *testing.T) {
	var all []record
	for _, records := range strangeCaptures(t) {
		all = append(all, records...)
	}
	var f hashing.Frame
	var sum hashing.Packet
	allocs := testing.AllocsPerRun(1, func() {
		for _, r := range all {
			if f.Parse(r.link, r.frame) == nil {
				sum += f.Digest(1)
			}
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations for %d frames", allocs, len(all))
	}
}

// TestFrameTwoPoints holds digests to real traffic that nothing changed
// between the points: what leaves the queue entered it, digests collide
// nowhere, and few frames that differ are taken for one. (Those are packets
// that were captured on two hops of their way, frames that differ in their
// padding, and some whose payload a fuzzer changed.)
func TestFrameTwoPoints(t *testing.T) {
	for _, set := range []string{"tbf400m_512k", "tbf300m_2m", "htb2_reorder"} {
		t.Run(set, func(t *testing.T) {
			dir := filepath.Join(dataDir, "twopoint", set)
			if _, err := os.Stat(dir); err != nil {
				t.Skipf("captures not here: %v", err)
			}
			in := countDigests(t, filepath.Join(dir, "ingress.pcap.gz"))
			out := countDigests(t, filepath.Join(dir, "egress.pcap.gz"))
			more := 0
			for digest, n := range out.digests {
				if n > in.digests[digest] {
					more++
				}
			}
			if more > 0 {
				t.Errorf("%d digests are more frequent at the egress than at the ingress", more)
			}
		})
	}
}

type digestCount struct {
	frames, notIP, refused, cut int
	distinct                    map[string]bool // frames with IP
	hashed                      map[string]bool // by the reference parser
	digests                     map[hashing.Packet]int
}

func countDigests(t *testing.T, path string) digestCount {
	c := digestCount{
		distinct: make(map[string]bool),
		hashed:   make(map[string]bool),
		digests:  make(map[hashing.Packet]int),
	}
	var f hashing.Frame
	for _, r := range readCapture(t, path) {
		c.frames++
		switch err := f.Parse(r.link, r.frame); {
		case errors.Is(err, hashing.ErrNotIP):
			c.notIP++
			continue
		case err != nil:
			c.refused++
			continue
		}
		if f.Cut {
			c.cut++
		}
		c.digests[f.Digest(1)]++
		if !c.distinct[string(r.frame)] {
			c.distinct[string(r.frame)] = true
			want, _ := slowParse(r.link, r.frame)
			c.hashed[string(want.hashed)] = true
		}
	}
	t.Logf("%s: %d frames, %d not IP, %d refused, %d cut; %d distinct IP frames, %d distinct digests",
		filepath.Base(path), c.frames, c.notIP, c.refused, c.cut, len(c.distinct), len(c.digests))
	if len(c.digests) != len(c.hashed) {
		t.Errorf("%d distinct inputs have %d distinct digests", len(c.hashed), len(c.digests))
	}
	if taken := len(c.distinct) - len(c.digests); taken > len(c.distinct)/1000 {
		t.Errorf("%d of %d distinct frames share a digest with another", taken, len(c.distinct))
	}
	return c
}
