package lda

import (
	"fmt"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/wire"
)

// The control packets, section III's and V's, are records of package wire
// with the body, big-endian:
//
//	kind          1 byte
//	fingerprint   8, of the Config of the interval
//	session       8
//	interval      8
//	part, parts   2, 2; zero but for parts of a synopsis
//	payload       of a part: its bytes of the synopsis' encoding
//	              of feedback: packets sent 8, packets lost 8
const (
	frameMagic   = "HLDC"
	frameVersion = 2
	frameHead    = 1 + 8 + 8 + 8 + 2 + 2
	frameSize    = wire.Overhead + frameHead // without payload
	maxParts     = 1<<16 - 1
)

// kind is what a frame is.
type kind uint8

const (
	startMarker kind = iota + 1
	endMarker
	part
	feedback
)

// frame is a control packet.
type frame struct {
	kind                           kind
	fingerprint, session, interval uint64
	part, parts                    uint16
	payload                        []byte
}

func (f *frame) append(dst []byte) []byte {
	start := len(dst)
	dst = wire.Begin(dst, frameMagic, frameVersion)
	dst = append(dst, byte(f.kind))
	for _, v := range [...]uint64{f.fingerprint, f.session, f.interval} {
		dst = wire.AppendUint(dst, v, 8)
	}
	dst = wire.AppendUint(dst, uint64(f.part), 2)
	dst = wire.AppendUint(dst, uint64(f.parts), 2)
	dst = append(dst, f.payload...)
	return wire.Seal(dst, start)
}

// parse reads a frame. Its payload is that of data.
func (f *frame) parse(data []byte) error {
	r, err := wire.Open(data, frameMagic, frameVersion)
	if err != nil {
		return fmt.Errorf("lda: control packet: %w", err)
	}
	*f = frame{
		kind:        kind(r.Uint8()),
		fingerprint: r.Uint64(),
		session:     r.Uint64(),
		interval:    r.Uint64(),
		part:        r.Uint16(),
		parts:       r.Uint16(),
	}
	f.payload = r.Bytes(r.Len())
	if err := r.Close(); err != nil {
		return fmt.Errorf("lda: control packet: %w", err)
	}
	ok := false
	switch f.kind {
	case startMarker, endMarker:
		ok = f.part == 0 && f.parts == 0 && len(f.payload) == 0
	case part:
		ok = f.part < f.parts
	case feedback:
		ok = f.part == 0 && f.parts == 0 && len(f.payload) == 16
	}
	if !ok || f.interval == 1<<64-1 { // which has no next one
		return fmt.Errorf("lda: control packet: %w: kind %d, interval %d, part %d of %d, %d bytes of payload",
			estimate.ErrEncoding, f.kind, f.interval, f.part, f.parts, len(f.payload))
	}
	return nil
}

// Fingerprint identifies a Config in control packets.
func (c *Config) Fingerprint() uint64 {
	var buf [8 + 3 + 2*MaxBanks]byte
	return uint64(hashing.Digest(0, c.append(buf[:0])))
}

// partBounds returns where part i of a synopsis of size bytes begins and ends.
func partBounds(size, i, parts int) (from, to int) {
	at := func(i int) int { return int(uint64(size) * uint64(i) / uint64(parts)) }
	return at(i), at(i + 1)
}
