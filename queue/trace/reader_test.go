package trace

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// small returns small captures of every format, by name, whose packets are known.
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

func TestReadGzip(t *testing.T) {
	file := small(t)["pcapng BigEndian"]
	want := must(read(bytes.NewReader(file)))(t)
	for cut := range file {
		check(t, must(read(bytes.NewReader(zip(t, file[:cut], file[cut:]))))(t), want)
	}

	whole := zip(t, file)
	whole[len(whole)-5] ^= 1 // of the checksum
	got, err := read(bytes.NewReader(whole))
	if !errors.Is(err, gzip.ErrChecksum) {
		t.Errorf("broken checksum: %v", err)
	}
	check(t, got, want)
}

// A capture cut off anywhere gives the packets that are whole, and says that it is cut off unless the cut is
// where a packet or block ends.
func TestReadTruncated(t *testing.T) {
	for name, file := range small(t) {
		want := must(read(bytes.NewReader(file)))(t)
		for cut := range file {
			checkReader(t, file[:cut])
			got, err := read(bytes.NewReader(file[:cut]))
			check(t, got, want[:min(len(got), len(want))])
			if strings.Contains(name, "gzip") && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s cut at %d: %v", name, cut, err)
			}
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
	checkRefused(t, io.ErrUnexpectedEOF, []refusal{
		{"empty", nil, "0 of 4 bytes"},
		{"three bytes", pcap[:3], "3 of 4 bytes"},
		{"half a header", pcap[:12], "cut off, 12 of at least 24 bytes"},
		{"half a packet header", packet[:30], "packet 1, at byte 24: cut off, 6 of at least 16 bytes"},
		{"half a packet", append(packet, packet[24:42]...), "packet 2, at byte 43: cut off, 18 of at least 19 bytes"},
		{"half a member behind gzip", append(slices.Clone(zipped), zipped[:5]...), "cut off"},
		{"half a gzip trailer", zipped[:len(zipped)-4], "packet 2, at byte 43: cut off, 0 of at least 16 bytes"},
		{"half a gzip header", zipped[:5], "gzip header"},
	})
	checkRefused(t, ErrFormat, []refusal{
		{"text", []byte("# not a capture at all"), "23206e6f"},
		{"a longer record header", pcapFileHead(o, 0xa1b2cd34, 1), "a1b2cd34"},
		{"a new version", old, "version 2.5"},
		{"a link type that is none", wide, "link type 65536"},
		{"a hostile length", words(o, packet, 0, 0, 1<<32-1, 0), "packet 2, at byte 43: malformed capture: " +
			"captured length 4294967295"},
		{"a length of one too many", words(o, packet, 0, 0, maxFrame+1, 0), "captured length 262145, at most 262144"},
	})
	checkRefused(t, gzip.ErrHeader, []refusal{
		{"a gzip header that is none", []byte("\x1f\x8b\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), "gzip header"},
		{"bytes behind gzip", append(slices.Clone(zipped), "and more than a header"...), "packet 2, at byte 43: gzip: invalid header"},
		{"bytes behind gzip and zeros", append(slices.Clone(zipped), "\x00\x00and more"...), "gzip: invalid header"},
	})
}

// A refusal is a file that is refused, and what the error says.
type refusal struct {
	name string
	file []byte
	say  string
}

func checkRefused(t *testing.T, want error, list []refusal) {
	t.Helper()
	for _, c := range list {
		if _, err := read(bytes.NewReader(c.file)); !errors.Is(err, want) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v; want %v, saying %q", c.name, err, want, c.say)
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

// A loop over all packets yields the error that ended it, and may be left early.
func TestAll(t *testing.T) {
	file := small(t)["pcap nanos BigEndian"]
	for cut, want := range []error{nil, io.ErrUnexpectedEOF} {
		r, err := NewReader(bytes.NewReader(file[:len(file)-cut]))
		for range r.All() {
			break
		}
		n := 0
		for _, err = range r.All() {
			n++
		}
		if n != 1 || !errors.Is(err, want) {
			t.Errorf("cut by %d: %d packets after the first, %v", cut, n, err)
		}
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
		r := must(NewReader(src))(t)
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
