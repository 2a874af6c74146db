package kernel

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/queue/trace"
)

func closeDescriptor(d int) { syscall.Close(d) }

var dataDir = filepath.Join("..", "..", "..", "shared", "data")

// testConfig has every bit of a cell in its encoding.
var testConfig = Config{
	Seed:  0x123456789abcdef0,
	Clock: Boot,
	LDA: lda.Config{Banks: [4]lda.Bank{{Rows: 512, Shift: 0}, {Rows: 64, Shift: 2}, {Rows: 32, Shift: 5}}, SumBits: 64,
		DigestBits: 27},
}

// A twin does in Go what a Point does in the kernel, with hashing.Frame, which has nothing in common with the
// program.
type twin struct {
	point *Point
	want  *Interval
	link  hashing.LinkType
	run   runner
	now   int64

	frames, refused int
	total           struct{ Counted, NotIP, Malformed, Truncated, Deep uint64 }
}

func newTwin(t *testing.T, p *Point, hook Hook, link hashing.LinkType) *twin {
	want, err := newInterval(p.config.LDA)
	if err != nil {
		t.Fatal(err)
	}
	return &twin{point: p, want: want, link: link, run: runner{program: p.loadTest(t, hook, link == hashing.LinkRaw, true)}, now: 1e18}
}

// update gives one frame to both.
func (w *twin) update(frame []byte) error {
	w.now += 1234567
	w.frames++
	w.point.setTime(w.now)
	if _, err := w.run.run(frame, 1); err == syscall.EINVAL {
		w.refused++ // as newer kernels do with pieces of IP headers
		return nil
	} else if err != nil {
		return fmt.Errorf("frame %x: %w", frame, err)
	}
	w.expect(frame)
	return nil
}

// expect gives one frame to the twin in Go.
func (w *twin) expect(frame []byte) {
	var f hashing.Frame
	switch err := f.ParseWith(w.link, frame, &hashing.Tunnels{}); {
	case err == nil:
	case errors.Is(err, hashing.ErrNotIP):
		w.want.Counters.NotIP++
		w.total.NotIP++
		return
	case errors.Is(err, hashing.ErrTruncated):
		w.want.Counters.Truncated++
		w.total.Truncated++
		return
	default:
		w.want.Counters.Malformed++
		w.total.Malformed++
		return
	}
	if w.link == hashing.LinkEthernet && beyond(frame) {
		w.want.Counters.Deep++
		w.total.Deep++
		return
	}
	w.total.Counted++
	w.want.Aggregator.Update(Digest(w.point.config.Seed, &f), w.now)
}

// beyond reports whether an Ethernet frame, which carries IP, has a kind of tag that the program does not
// follow.
func beyond(frame []byte) bool {
	for at := 12; ; at += 4 {
		switch kind := binary.BigEndian.Uint16(frame[at:]); {
		case slices.Contains(vlanTypes, kind):
			continue
		case kind == typeMPLS || kind == typeMPLS2:
			for at += 2; frame[at+2]&1 == 0; at += 4 {
			}
			return frame[at+4]>>4 == 0 // a pseudowire
		default:
			return slices.Contains(rareTypes, kind) || kind <= 1500 // SNAP
		}
	}
}

// compare reads the kernel's interval and says how it differs, if it does. Both begin anew.
func (w *twin) compare(t *testing.T) (differs bool) {
	t.Helper()
	got, err := w.point.Rotate()
	if err != nil {
		t.Fatal(err)
	}
	a, _ := got.Aggregator.MarshalBinary()
	b, _ := w.want.Aggregator.MarshalBinary()
	refusals := func(c Counters) Counters {
		// hashing.Frame looks at LLC headers byte by byte, and follows any number of labels.
		c.NotIP += c.Truncated + c.Deep
		c.Truncated, c.Deep, c.Segments = 0, 0, 0
		return c
	}
	differs = !bytes.Equal(a, b) || refusals(got.Counters) != refusals(w.want.Counters)
	if err := w.point.Release(got); err != nil {
		t.Fatal(err)
	}
	w.want.Reset()
	return differs
}

// check gives frames to both, and finds one that they identify differently.
func (w *twin) check(t *testing.T, frames [][]byte) {
	t.Helper()
	const batch = 50000
	for len(frames) > 0 {
		some := frames[:min(batch, len(frames))]
		frames = frames[len(some):]
		for w.differ(t, some) {
			if len(some) == 1 {
				t.Fatalf("link %d: differs: %s", w.link, hex.EncodeToString(some[0]))
			}
			half := some[:len(some)/2]
			if w.differ(t, half) {
				some = half
			} else {
				some = some[len(some)/2:]
			}
		}
	}
}

// differ gives frames to both, and reports whether their results differ.
func (w *twin) differ(t *testing.T, frames [][]byte) bool {
	t.Helper()
	for _, frame := range frames {
		if err := w.update(frame); err != nil {
			t.Fatal(err)
		}
	}
	return w.compare(t)
}

// report says what was compared, and fails if that was little.
func (w *twin) report(t *testing.T, hook Hook) {
	t.Logf("%v, link %d: %d frames, %d of them not taken by hand: %+v", hook, w.link, w.frames, w.refused, w.total)
	if w.refused > w.frames/10 {
		t.Error("more than a tenth was not compared")
	}
}

// captures returns the frames of all captures of a kind of link, each capture as far as it is one, and as the
// kernel takes frames by hand.
func captures(t *testing.T) map[hashing.LinkType][][]byte {
	if _, err := os.Stat(dataDir); err != nil {
		t.Skipf("captures not here: %v", err)
	}
	frames := make(map[hashing.LinkType][][]byte)
	err := filepath.WalkDir(dataDir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.Contains(path, ".pcap") {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		var source io.Reader = file
		if strings.HasSuffix(path, ".gz") {
			if source, err = gzip.NewReader(file); err != nil {
				return err
			}
		}
		reader, err := trace.NewReader(source)
		for n := 0; err == nil && n < mostOfOne; n++ {
			var r trace.Record
			if r, err = reader.Next(); err == nil {
				frames[r.Link] = append(frames[r.Link], bytes.Clone(r.Frame))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return frames
}

// mostOfOne is how many frames of a capture are tried: those of a queue are alike.
const mostOfOne = 3_000

const (
	leastByHand = 15 // the kernel wants more than an Ethernet header
	mostByHand  = 3000
)

// byHand returns the frames that the kernel takes.
func byHand(frames [][]byte) (fit [][]byte) {
	for _, f := range frames {
		if len(f) >= leastByHand {
			fit = append(fit, f[:min(len(f), mostByHand)])
		}
	}
	return fit
}

func TestDifferentialCaptures(t *testing.T) {
	t.Parallel()
	p := newPoint(t, testConfig)
	for link, frames := range captures(t) {
		if link == 228 || link == 229 { // raw IPv4 or IPv6
			link = hashing.LinkRaw
		}
		if link != hashing.LinkEthernet && link != hashing.LinkRaw {
			continue
		}
		frames = byHand(frames)
		t.Logf("link %d: %d frames", link, len(frames))
		for _, hook := range []Hook{Ingress, XDP} {
			w := newTwin(t, p, hook, link)
			w.check(t, frames)
			w.report(t, hook)
		}
	}
}
