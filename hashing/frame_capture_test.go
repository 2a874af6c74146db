package hashing_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

var dataDir = filepath.Join("..", "..", "shared", "data")

// record is one frame of a capture.
type record struct {
	link  hashing.LinkType
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
	link := hashing.LinkType(order.Uint32(data[20:]))
	var records []record
	for data = data[24:]; len(data) >= 16; {
		size := order.Uint32(data[8:])
		data = data[16:]
		size = min(size, uint32(len(data)))
		// Each frame's capacity ends with it, so that a read beyond it panics.
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

// identifiers identify by seed 7, by kind of link.
var identifiers = map[hashing.LinkType]*hashing.Identifier{}

// checkIdentifier checks that an Identifier agrees with a Frame.
func checkIdentifier(t testing.TB, link hashing.LinkType, frame []byte, f *hashing.Frame, err error) {
	t.Helper()
	if identifiers[link] == nil {
		identifiers[link] = hashing.NewIdentifier(7, link, hashing.DefaultTunnels)
	}
	var packet [1]hashing.Packet
	var flow [1]hashing.Flow
	n := identifiers[link].Frames([][]byte{frame}, packet[:], flow[:], nil)
	if (n == 1) != (err == nil) || n == 1 && (packet[0] != f.Digest(7) || flow[0] != f.Tuple.Flow(7)) {
		t.Errorf("link %d, frame %x: %d identified as %#x of %#x; want %#x of %#x, %v", link, frame,
			n, packet[0], flow[0], f.Digest(7), f.Tuple.Flow(7), err)
	}
}

// checkAgainstReference parses one frame with both parsers, and a packet also
// behind Ethernet and up to three tags, and reports where they differ. It
// returns Parse's error.
func checkAgainstReference(t testing.TB, link hashing.LinkType, frame []byte) error {
	t.Helper()
	const seed = 7
	if link == hashing.LinkRaw && len(frame) > 0 {
		kind := []byte{0x08, 0x00}
		if frame[0]>>4 == 6 {
			kind = []byte{0x86, 0xdd}
		}
		for _, tags := range []string{"", "8100 0064 ", "88a8 0001 8100 0064 ", "8100 0001 8100 0002 8100 0003 "} {
			checkAgainstReference(t, hashing.LinkEthernet, slices.Concat(unhex(macs+tags), kind, frame))
		}
	}
	var f hashing.Frame
	err := f.Parse(link, frame)
	checkIdentifier(t, link, frame, &f, err)
	want, wantErr := slowParse(link, frame)
	if !errors.Is(err, wantErr) {
		t.Errorf("link %d, frame %x: error %v, reference %v", link, frame, err, wantErr)
		return err
	}
	if err != nil {
		if f != (hashing.Frame{}) {
			t.Errorf("link %d, frame %x: error %v and yet a frame %+v", link, frame, err, f)
		}
		return err
	}
	if f.Tuple != want.tuple || f.Length != want.length || f.Fragment != want.fragment || f.Cut != want.cut || int(f.Tunnels) != want.tunnels {
		t.Errorf("link %d, frame %x:\n got %v length %d, fragment %v, cut %v, tunnels %d\nwant %v length %d, fragment %v, cut %v, "+
			"tunnels %d", link, frame,
			f.Tuple, f.Length, f.Fragment, f.Cut, f.Tunnels, want.tuple, want.length, want.fragment, want.cut, want.tunnels)
	}
	if got := f.Append([]byte{1}); f.Digest(seed) != hashing.Digest(seed, want.hashed) || !bytes.Equal(got[1:], want.hashed) {
		t.Errorf("link %d, frame %x: digest %#x of %x, reference %x", link, frame, f.Digest(seed), got[1:], want.hashed)
	}
	return nil
}

// refused reports whether an error is one of Parse's.
func refused(err error) bool {
	return slices.Contains([]error{hashing.ErrNotIP, hashing.ErrTruncated, hashing.ErrMalformed, hashing.ErrLink}, err)
}

func TestFrameStrangeCaptures(t *testing.T) {
	var frames, parsed int
	links := make(map[hashing.LinkType]int)
	for path, records := range strangeCaptures(t) {
		for i, r := range records {
			frames++
			if err := checkAgainstReference(t, r.link, r.frame); err == nil {
				parsed++
				links[r.link]++
			} else if !refused(err) {
				t.Errorf("%s frame %d: error %v is none of the package's", path, i, err)
			}
		}
	}
	t.Logf("%d frames, %d parsed; by link type %v", frames, parsed, links)
	for _, link := range []hashing.LinkType{hashing.LinkNull, hashing.LinkEthernet, hashing.LinkRaw, hashing.LinkCooked, hashing.LinkIPv4,
		hashing.LinkIPv6} {
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
	var sum uint64
	frames, packets := make([][]byte, len(all)), make([]hashing.Packet, len(all))
	for i, r := range all {
		frames[i] = r.frame
	}
	sip := hashing.SipHashFromKey([16]byte{1})
	identifier := hashing.NewIdentifier(1, hashing.LinkEthernet, hashing.DefaultTunnels)
	allocs := testing.AllocsPerRun(2, func() {
		for _, r := range all {
			if f.Parse(r.link, r.frame) == nil {
				var buf [72]byte
				sum += uint64(f.Digest(1)) + uint64(f.Tuple.Flow(1)) + uint64(sip.Flow(&f.Tuple)) + sip.Bytes(f.Append(buf[:0]))
			}
		}
		sum += uint64(identifier.Frames(frames, packets, nil, nil))
	})
	if allocs != 0 {
		t.Errorf("%v allocations for %d frames", allocs, len(all))
	}
}

// twoPoint returns a capture of a two-point set.
func twoPoint(t *testing.T, set, point string) []record {
	t.Helper()
	path := filepath.Join(dataDir, "twopoint", set, point+".pcap.gz")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("captures not here: %v", err)
	}
	return readCapture(t, path)
}

// TestFrameTwoPoints holds digests to real traffic that nothing changed
// between the points: what leaves the queue entered it.
func TestFrameTwoPoints(t *testing.T) {
	heavy(t)
	for _, set := range []string{"tbf400m_512k", "tbf300m_2m", "htb2_reorder"} {
		t.Run(set, func(t *testing.T) {
			inside := make(map[hashing.Packet]int)
			for point, step := range map[string]int{"ingress": +1, "egress": -1} {
				var f hashing.Frame
				for _, r := range twoPoint(t, set, point) {
					if f.Parse(r.link, r.frame) == nil {
						inside[f.Digest(1)] += step
					}
				}
			}
			if t.Logf("%d distinct digests", len(inside)); len(inside) < 1000 {
				t.Error("nothing was compared")
			}
			for digest, n := range inside {
				if n < 0 {
					t.Errorf("digest %#x is more frequent at the egress than at the ingress", digest)
				}
			}
		})
	}
}

// TestFrameDistinct holds digests to whole frames on real traffic: no two
// inputs collide, and few frames that differ are taken for one. (Those are
// packets that were captured on two hops of their way, frames that differ in
// their padding, and some whose payload a fuzzer changed.)
func TestFrameDistinct(t *testing.T) {
	heavy(t)
	frames := make(map[string]bool)
	inputs := make(map[string]bool)
	digests := make(map[hashing.Packet]bool)
	var f hashing.Frame
	for _, r := range twoPoint(t, "tbf400m_512k", "ingress") {
		if f.Parse(r.link, r.frame) != nil || frames[string(r.frame)] {
			continue
		}
		slow, _ := slowParse(r.link, r.frame)
		frames[string(r.frame)] = true
		inputs[string(slow.hashed)] = true
		digests[f.Digest(1)] = true
	}
	t.Logf("%d distinct frames with IP, %d distinct inputs, %d distinct digests", len(frames), len(inputs), len(digests))
	if len(digests) != len(inputs) {
		t.Errorf("%d distinct inputs have %d distinct digests", len(inputs), len(digests))
	}
	if taken := len(frames) - len(digests); taken > len(frames)/1000 {
		t.Errorf("%d of %d distinct frames are taken for another", taken, len(frames))
	}
}
