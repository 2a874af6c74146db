//go:build linux

package main

import (
	"encoding/binary"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda/kernel"
)

// randomFrame makes a frame of any kind: plain or not, cut off or not.
func randomFrame(random *rand.Rand) []byte {
	b := make([]byte, 30+random.IntN(120))
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	protocols := []byte{6, 17, 1, 58, 132, 136, 47, 44}
	binary.BigEndian.PutUint16(b[12:], []uint16{0x0800, 0x86dd, 0x8100}[random.IntN(3)])
	ip := b[14:]
	if binary.BigEndian.Uint16(b[12:]) == 0x8100 {
		copy(b[14:], []byte{0, 5, 8, 0})
		ip = b[18:]
	}
	if binary.BigEndian.Uint16(b[12:]) == 0x86dd {
		ip[0], ip[6] = 0x60, protocols[random.IntN(len(protocols))]
		binary.BigEndian.PutUint16(ip[4:], uint16(max(0, len(ip)-40)))
		return b
	}
	ip[0], ip[9] = 0x45+byte(random.IntN(2)*random.IntN(2)), protocols[random.IntN(len(protocols))]
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	binary.BigEndian.PutUint16(ip[6:], uint16(random.Uint32())&0x6001*uint16(random.IntN(2)))
	return b
}

// A tap identifies frames in bursts as a point in the kernel does one by one:
// without transport checksums, whatever the frame.
func TestTapIdentifies(t *testing.T) {
	o := &options{key: "a secret of 26 characters.", flows: 64, cut: time.Second}
	point, err := hoplag.NewPoint(o.config(place{}))
	if err != nil {
		t.Fatal(err)
	}
	defer point.Close()
	tap := newTap(place{}, o, point)
	random := rand.New(rand.NewPCG(31, 1))
	var want, got []hashing.Packet
	var frames []captured
	for i := range 20_000 {
		frame := randomFrame(random)
		var f hashing.Frame
		if f.ParseWith(hashing.LinkEthernet, frame, &hashing.Tunnels{}) == nil {
			want = append(want, kernel.Digest(tap.seed, &f))
		}
		frames = append(frames, captured{at: int64(i), frame: frame})
	}
	tap.record = func(_ hashing.Flow, _ time.Time, p ...hashing.Packet) { got = append(got, p...) }
	tap.take(iter.Seq[captured](slices.Values(frames)))
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || len(want) < 5000 {
		t.Errorf("%d identities differ from %d", len(got), len(want))
	}
	if n := tap.counted.Load(); n != uint64(len(want)) || n+tap.others.Load() != uint64(len(frames)) {
		t.Errorf("counted %d and %d others", n, tap.others.Load())
	}
}
