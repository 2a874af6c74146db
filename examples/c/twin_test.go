// Package c checks that the C twin of an LDA point does what Go does.
package c

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/queue/trace"
)

// compile builds the C point.
func compile(t *testing.T) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		cc, err = exec.LookPath("gcc")
	}
	if err != nil {
		t.Skip("no C compiler here")
	}
	point := filepath.Join(t.TempDir(), "point")
	if out, err := exec.Command(cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-o", point,
		filepath.Join("src", "point.c")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return point
}

// plain reports whether a frame is one that the C point reads: IP on Ethernet, without extension headers.
func plain(frame []byte) bool {
	at := 12
	for len(frame) >= at+6 && (binary.BigEndian.Uint16(frame[at:]) == 0x8100 || binary.BigEndian.Uint16(frame[at:]) == 0x88a8) {
		at += 4
	}
	if len(frame) < at+2+20 {
		return false
	}
	switch binary.BigEndian.Uint16(frame[at:]) {
	case 0x0800:
		return binary.BigEndian.Uint16(frame[at+4:]) > 0
	case 0x86dd:
		return len(frame) >= at+2+40 && !bytes.ContainsRune([]byte{0, 43, 44, 51, 60}, rune(frame[at+8])) &&
			binary.BigEndian.Uint16(frame[at+6:]) > 0
	}
	return false
}

// Over a capture, the C point gives every packet the same identity and encodes
// the same bytes, which hold every cell.
func TestTwin(t *testing.T) {
	point := compile(t)
	for i, capture := range captures(t) {
		seed := []uint64{0x123456789abcdef0, 0x6a09e667f3bcc909}[i%2] // the second one is replaced
		t.Run(filepath.Base(filepath.Dir(capture))+"/"+filepath.Base(capture), func(t *testing.T) {
			config := lda.DefaultConfig
			config.Identity = hashing.Fingerprint(seed)
			frames, want, encoded := measure(t, capture, seed, config)
			cmd := exec.Command(point, fmt.Sprint(seed), "-v")
			cmd.Env = append(os.Environ(), fmt.Sprintf("IDENTITY=%d", config.Identity))
			cmd.Stdin = bytes.NewReader(frames)
			var out, told bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &told
			if err := cmd.Run(); err != nil {
				t.Fatal(err)
			}
			compare(t, want, &told)
			if !bytes.Equal(out.Bytes(), encoded) {
				t.Errorf("the encodings of %d and %d bytes differ", out.Len(), len(encoded))
			}
		})
	}
}

// captures are the two that ship, and others where there are any.
func captures(t *testing.T) []string {
	shipped := filepath.Join("..", "twopoint", "testdata")
	others, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "data", "twopoint", "*", "*gress.pcap.gz"))
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{filepath.Join(shipped, "ingress.pcap.gz"), filepath.Join(shipped, "egress.pcap.gz")}, others...)
}

// measure feeds a capture to an aggregator, and returns the frames as the C
// point reads them, the identity of each packet, and its encoding.
func measure(t *testing.T, capture string, seed uint64, config lda.Config) (frames []byte, told []string, encoded []byte) {
	t.Helper()
	file, errOpen := os.Open(capture)
	reader, errRead := trace.NewReader(bufio.NewReader(file))
	a, errNew := lda.New(config)
	if err := errors.Join(errOpen, errRead, errNew); err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for p, err := range reader.All() {
		if err != nil {
			t.Fatal(err)
		}
		if len(told) == 20_000 {
			break
		}
		var f hashing.Frame
		if !plain(p.Frame) || f.ParseWith(hashing.LinkEthernet, p.Frame, &hashing.Tunnels{}) != nil {
			continue
		}
		frames = binary.BigEndian.AppendUint64(frames, uint64(p.Time))
		frames = binary.BigEndian.AppendUint32(frames, uint32(len(p.Frame)))
		frames = append(frames, p.Frame...)
		id := f.Digest(seed)
		a.Update(id, p.Time)
		told = append(told, fmt.Sprintf("%016x", uint64(id)))
	}
	encoded, err := a.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return frames, told, encoded
}

// compare holds the identities that the C point tells, one a line, against what they should be.
func compare(t *testing.T, want []string, told io.Reader) {
	t.Helper()
	lines := bufio.NewScanner(told)
	n := 0
	for ; lines.Scan(); n++ {
		if n >= len(want) || !strings.HasPrefix(lines.Text(), want[n]+" ") {
			t.Fatalf("packet %d: %s, want %s", n, lines.Text(), want[min(n, len(want)-1)])
		}
	}
	if n != len(want) {
		t.Errorf("%d packets, want %d", n, len(want))
	}
}

// A stream that is cut off gives what came before, and says so; a seed that is no number is an error; and so is
// an output that cannot be written.
func TestEndings(t *testing.T) {
	point := compile(t)
	frames, _, _ := measure(t, captures(t)[0], 7, lda.DefaultConfig)
	for name, c := range map[string]struct {
		seed   string
		input  []byte
		code   int
		output int
	}{
		"whole":   {"7", frames, 0, lda.DefaultConfig.EncodedSize()},
		"cut off": {"7", frames[:len(frames)-1], 1, lda.DefaultConfig.EncodedSize()},
		"no seed": {"seven", frames, 2, 0},
	} {
		var out, told bytes.Buffer
		cmd := exec.Command(point, c.seed)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(c.input), &out, &told
		if _ = cmd.Run(); cmd.ProcessState.ExitCode() != c.code || out.Len() != c.output || (told.Len() > 0) != (c.code > 0) {
			t.Errorf("%s: %v, %d bytes, %q", name, cmd.ProcessState, out.Len(), &told)
		}
	}
}
