package trace

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// small returns small captures of every format, by name, whose packets are
// known.
func small(t testing.TB) map[string][]byte {
	files := map[string][]byte{}
	for _, o := range byteOrders {
		micros := pcapFileHead(o, 0xa1b2c3d4, 1)
		micros = pcapRecord(o, micros, 1, 999_999, 1500, "one")
		micros = pcapRecord(o, micros, 2, 0, 0, "")
		micros = pcapRecord(o, micros, 4_294_967_295, 7, 4, "four")
		files["pcap micros "+o.String()] = micros

		nanos := pcapFileHead(o, 0xa1b23c4d, 101)
		nanos = pcapRecord(o, nanos, 1, 999_999_999, 60, "one")
		nanos = pcapRecord(o, nanos, 1, 999_999_998, 60, "before it")
		files["pcap nanos "+o.String()] = nanos

		ng := ngSection(o, nil)
		ng = ngIface(o, ng, 1, 0)
		ng = ngEnhanced(o, ng, 0, 1_999_999, 1500, "one")
		ng = ngBlock(o, ng, 0xbad, []byte("passed over"))
		ng = ngObsolete(o, ng, 0, 2_000_000, 6, "second")
		ng = ngSimple(o, ng, 3, "3rd")
		files["pcapng "+o.String()] = ng
	}
	files["pcap gzip"] = zip(t, files["pcap micros LittleEndian"])
	return files
}

func TestReadByHand(t *testing.T) {
	// Written out byte by byte, so that no builder is trusted.
	tests := []struct {
		name, bytes string
		want        []Record
	}{
		{"pcap, nanoseconds, little-endian", `
			4d3cb2a1 0200 0400 00000000 00000000 60000000 01000000
			25d7ff6a 20143129 02000000 ea050000 c0de`,
			[]Record{{0x6affd725*1e9 + 0x29311420, 1, 1514, []byte{0xc0, 0xde}}}},
		{"pcap, microseconds, big-endian", `
			a1b2c3d4 0002 0004 00000000 00000000 0000ffff 00000071
			00000001 00000002 00000001 00000003 aa`,
			[]Record{{1_000_002_000, 113, 3, []byte{0xaa}}}},
		{"pcapng, little-endian, default resolution", `
			0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000
			01000000 14000000 0100 0000 00000400 14000000
			06000000 24000000 00000000 85520300 fd8a1e2b 01000000 40000000 ab000000 24000000`,
			[]Record{{0x00035285_2b1e8afd * 1000, 1, 64, []byte{0xab}}}},
		{"pcapng, big-endian, nanoseconds and an offset of 1 s", `
			0a0d0d0a 0000001c 1a2b3c4d 0001 0000 ffffffffffffffff 0000001c
			00000001 0000002c 0065 0000 00000000
				0009 0001 09000000  000e 0008 0000000000000001  00000000  0000002c
			00000006 00000024 00000000 00000001 00000002 00000004 00000004 45000000 00000024`,
			[]Record{{1<<32 + 2 + 1e9, 101, 4, []byte{0x45, 0, 0, 0}}}},
	}
	for _, test := range tests {
		b, err := hex.DecodeString(strings.Join(strings.Fields(test.bytes), ""))
		if err != nil {
			t.Fatal(test.name, err)
		}
		got, err := read(bytes.NewReader(b))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		check(t, got, test.want)
	}
}

func TestReadGzip(t *testing.T) {
	file := small(t)["pcapng BigEndian"]
	want, err := read(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for cut := range file {
		got, err := read(bytes.NewReader(zip(t, file[:cut], file[cut:])))
		if err != nil {
			t.Fatalf("two members, cut at %d: %v", cut, err)
		}
		check(t, got, want)
	}

	whole := zip(t, file)
	whole[len(whole)-5] ^= 1 // of the checksum
	got, err := read(bytes.NewReader(whole))
	if !errors.Is(err, gzip.ErrChecksum) {
		t.Errorf("broken checksum: %v", err)
	}
	check(t, got, want)
}

// A capture cut off anywhere gives the packets that are whole, and says that
// it is cut off unless the cut is where a packet or block ends.
func TestReadTruncated(t *testing.T) {
	for name, file := range small(t) {
		want, err := read(bytes.NewReader(file))
		if err != nil {
			t.Fatal(name, err)
		}
		clean := 0
		for cut := range file {
			got, err := read(bytes.NewReader(file[:cut]))
			switch {
			case err == nil:
				clean++
			case !errors.Is(err, io.ErrUnexpectedEOF):
				t.Errorf("%s cut at %d: %v", name, cut, err)
			}
			if len(got) > len(want) {
				t.Fatalf("%s cut at %d: %d packets", name, cut, len(got))
			}
			check(t, got, want[:len(got)])
			if strings.Contains(name, "gzip") {
				continue
			}
			if whole, _ := reference(file[:cut]); len(got) != len(whole) {
				t.Errorf("%s cut at %d: %d packets, want %d", name, cut, len(got), len(whole))
			}
		}
		// After the header, after each record but the last. The pcapng
		// file has 6 blocks.
		ends := map[bool]int{false: len(want), true: 5}[strings.Contains(name, "pcapng")]
		if strings.Contains(name, "gzip") {
			ends = 0
		}
		if clean != ends {
			t.Errorf("%s: %d clean ends before the end, want %d", name, clean, ends)
		}
	}
}

func TestReadErrors(t *testing.T) {
	o := binary.BigEndian
	pcap := slices.Clip(pcapFileHead(o, 0xa1b2c3d4, 1))
	old := bytes.Clone(pcap)
	old[7] = 5
	wide := pcapFileHead(o, 0xa1b2c3d4, 1<<16)
	packet := slices.Clip(pcapRecord(o, pcap, 1, 2, 3, "abc"))
	zipped := zip(t, packet)
	tests := []struct {
		name string
		file []byte
		want error
		say  string
	}{
		{"empty", nil, io.ErrUnexpectedEOF, "0 of 4 bytes"},
		{"three bytes", pcap[:3], io.ErrUnexpectedEOF, "3 of 4 bytes"},
		{"half a header", pcap[:12], io.ErrUnexpectedEOF, "cut off, 12 of at least 24 bytes"},
		{"text", []byte("# not a capture at all"), ErrFormat, "23206e6f"},
		{"a longer record header", pcapFileHead(o, 0xa1b2cd34, 1), ErrFormat, "a1b2cd34"},
		{"a new version", old, ErrFormat, "version 2.5"},
		{"a link type that is none", wide, ErrFormat, "link type 65536"},
		{"half a packet header", packet[:30], io.ErrUnexpectedEOF, "packet 1, at byte 24: cut off, 6 of at least 16 bytes"},
		{"half a packet", append(packet, packet[24:42]...), io.ErrUnexpectedEOF, "packet 2, at byte 43: cut off, 18 of at least 19 bytes"},
		{"a hostile length", words(o, packet, 0, 0, 1<<32-1, 0), ErrFormat, "packet 2, at byte 43: malformed capture: " +
			"captured length 4294967295"},
		{"a length of one too many", words(o, packet, 0, 0, MaxFrame+1, 0), ErrFormat, "captured length 262145, at most 262144"},
		{"bytes behind gzip", append(slices.Clone(zipped), "and more"...), ErrFormat,
			"packet 2, at byte 43: malformed capture: the compressed data have ended"},
		{"bytes behind gzip and zeros", append(slices.Clone(zipped), "\x00\x00and more"...), ErrFormat, "what follows them is no gzip"},
		{"half a member behind gzip", append(slices.Clone(zipped), zipped[:5]...), io.ErrUnexpectedEOF, "cut off"},
		{"half a gzip trailer", zipped[:len(zipped)-4], io.ErrUnexpectedEOF, "packet 2, at byte 43: cut off, 0 of at least 16 bytes"},
		{"half a gzip header", zipped[:5], io.ErrUnexpectedEOF, "gzip header"},
		{"a gzip header that is none", []byte("\x1f\x8b\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), gzip.ErrHeader, "gzip header"},
	}
	for _, test := range tests {
		_, err := read(bytes.NewReader(test.file))
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.say) {
			t.Errorf("%s: %v; want %v, saying %q", test.name, err, test.want, test.say)
		}
	}
}

func TestReadErrorIsFinal(t *testing.T) {
	o := binary.LittleEndian
	packet := pcapRecord(o, pcapFileHead(o, 0xa1b2c3d4, 1), 1, 2, 3, "abc")
	broken := errors.New("broken disk")
	for _, test := range []struct {
		src  io.Reader
		want error
	}{
		{bytes.NewReader(packet), io.EOF},
		{bytes.NewReader(packet[:42]), io.ErrUnexpectedEOF},
		{io.MultiReader(bytes.NewReader(packet), iotest.ErrReader(broken)), broken},
		{io.MultiReader(bytes.NewReader(packet[:42]), iotest.ErrReader(broken)), broken},
		{iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(packet))), iotest.ErrTimeout},
		{iotest.ErrReader(broken), broken},
	} {
		r, err := NewReader(test.src)
		for err == nil {
			_, err = r.Next()
		}
		if !errors.Is(err, test.want) {
			t.Errorf("%v, want %v", err, test.want)
		}
		if r == nil {
			continue
		}
		if rec, again := r.Next(); again != err || rec.Frame != nil {
			t.Errorf("after %v: %v, %v", err, rec, again)
		}
	}
}

func TestAll(t *testing.T) {
	file := small(t)["pcap nanos BigEndian"]
	want, _ := read(bytes.NewReader(file))
	for _, cut := range []int{0, 1} {
		r, err := NewReader(bytes.NewReader(file[:len(file)-cut]))
		if err != nil {
			t.Fatal(err)
		}
		n, failed := 0, 0
		for rec, err := range r.All() {
			if err != nil {
				failed++
				continue
			}
			if !same(rec, want[n]) {
				t.Errorf("packet %d: %v, want %v", n, rec, want[n])
			}
			n++
		}
		if n != len(want)-cut || failed != cut {
			t.Errorf("cut by %d: %d packets and %d errors", cut, n, failed)
		}
	}

	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for range r.All() {
		break
	}
	if rec, err := r.Next(); err != nil || !same(rec, want[1]) {
		t.Errorf("after a loop left early: %v, %v", rec, err)
	}
}

// endless repeats b n times after head.
func endless(head, b []byte, n int) io.Reader {
	return io.MultiReader(bytes.NewReader(head), &repeater{b: b, left: n})
}

type repeater struct {
	b    []byte
	off  int
	left int
}

func (r *repeater) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && r.left > 0 {
		c := copy(p[n:], r.b[r.off:])
		n += c
		if r.off += c; r.off == len(r.b) {
			r.off = 0
			r.left--
		}
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func TestNextDoesNotAllocate(t *testing.T) {
	o := binary.LittleEndian
	frame := strings.Repeat("x", 100)
	ng := slices.Clip(ngIface(o, ngSection(o, nil), 1, 0))
	for name, src := range map[string]io.Reader{
		"pcap":   endless(pcapFileHead(o, 0xa1b2c3d4, 1), pcapRecord(o, nil, 1, 2, 3, frame), 1<<20),
		"pcapng": endless(ng, ngEnhanced(o, nil, 0, 1, 1, frame), 1<<20),
		"sections": endless(ng, ngEnhanced(o, ngBlock(o, ngIface(o, ngSection(o, nil), 1, 0), 99, make([]byte, 40)),
			0, 1, 1, frame), 1<<20),
	} {
		r, err := NewReader(src)
		if err != nil {
			t.Fatal(err)
		}
		r.Next()
		allocs := testing.AllocsPerRun(20_000, func() {
			if _, err := r.Next(); err != nil {
				t.Fatal(err)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations a packet", name, allocs)
		}
	}
}
