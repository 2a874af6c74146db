package hashing_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/hashing"
)

var dataDir = filepath.Join("..", "..", "shared", "data")

// record is one frame of a capture.
type record struct {
	link  hashing.LinkType
	frame []byte
}

// strangeCaptures returns every frame of the captures made to break dissectors, as far as their files are pcap:
// they break readers, too. This package has no reader, and must not import the one that is built on it.
func strangeCaptures(t testing.TB) (records []record) {
	t.Helper()
	filepath.WalkDir(filepath.Join(dataDir, "encapsulation"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // they do not ship with the project
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		order := map[string]binary.ByteOrder{"\xa1\xb2\xc3\xd4": binary.BigEndian, "\xa1\xb2\x3c\x4d": binary.BigEndian,
			"\xd4\xc3\xb2\xa1": binary.LittleEndian, "\x4d\x3c\xb2\xa1": binary.LittleEndian}[string(data[:min(4, len(data))])]
		if order == nil || len(data) < 24 {
			return nil
		}
		link := hashing.LinkType(order.Uint32(data[20:]))
		for data = data[24:]; len(data) >= 16; {
			size := order.Uint32(data[8:])
			data = data[16:]
			size = min(size, uint32(len(data)))
			// Each frame's capacity ends with it, so that a read beyond it panics.
			records = append(records, record{link, data[:size:size]})
			data = data[size:]
		}
		return nil
	})
	return records
}

// checkIdentifier checks that an Identifier agrees with a Frame.
func checkIdentifier(t testing.TB, link hashing.LinkType, frame []byte, f *hashing.Frame, err error) {
	t.Helper()
	var packet [1]hashing.Packet
	var flow [1]hashing.Flow
	n := hashing.NewIdentifier(7, link, hashing.DefaultTunnels).Frames([][]byte{frame}, packet[:], flow[:], nil)
	if (n == 1) != (err == nil) || n == 1 && (packet[0] != f.Digest(7) || flow[0] != f.Tuple.Flow(7)) {
		t.Errorf("link %d, frame %x: %d identified as %#x of %#x; want %#x of %#x, %v", link, frame,
			n, packet[0], flow[0], f.Digest(7), f.Tuple.Flow(7), err)
	}
}

// checkAgainstReference parses one frame with both parsers, and a packet also behind Ethernet and up to three
// tags, and reports where they differ. It returns Parse's error.
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
	known := []error{nil, hashing.ErrNotIP, hashing.ErrTruncated, hashing.ErrMalformed, hashing.ErrLink}
	if !errors.Is(err, wantErr) || !slices.Contains(known, err) {
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

func TestFrameAllocatesNothing(t *testing.T) {
	all := strangeCaptures(t)
	for _, e := range encapsulations {
		all = append(all, record{e.link, unhex(e.before + e.packet)})
	}
	for _, tunnel := range tunnels {
		all = append(all, record{hashing.LinkRaw, unhex(tunnel.header(48) + v4)})
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
