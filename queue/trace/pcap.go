package trace

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/hoplag/hoplag/hashing"
)

// A pcap file is a header of 24 bytes,
//
//	magic (4) · version (2, 2) · time zone (4) · accuracy (4) · snap length (4) · link type (4)
//
// and records, each a header of 16 bytes and the frame:
//
//	seconds (4) · fraction (4) · captured length (4) · original length (4) · frame
//
// The magic number tells the byte order and whether fractions are microseconds or nanoseconds.
const (
	pcapMicros     = 0xa1b2c3d4
	pcapNanos      = 0xa1b23c4d
	pcapHeaderSize = 24
	pcapRecordSize = 16

	// The link type's upper bits say whether frames end with a checksum, and how long it is.
	pcapLinkMask = 0x03ffffff
)

// A pcapFile is what a pcap header says.
type pcapFile struct {
	link  hashing.LinkType
	scale uint32 // nanoseconds in a unit of the fraction
	minor uint16 // version
}

func (r *Reader) pcapHeader() error {
	b, err := r.peek(4)
	if err != nil {
		return err
	}
	r.pcap.scale = 1
	for _, r.order = range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		switch r.order.Uint32(b) {
		case pcapMicros:
			r.pcap.scale = 1000
			return r.pcapFields()
		case pcapNanos:
			return r.pcapFields()
		}
	}
	return fmt.Errorf("%w: magic number %x is neither of pcap nor of pcapng", ErrFormat, b)
}

func (r *Reader) pcapFields() error {
	b, err := r.peek(pcapHeaderSize)
	if err != nil {
		return err
	}
	major, minor := r.order.Uint16(b[4:]), r.order.Uint16(b[6:])
	if major != 2 || minor > 4 {
		return fmt.Errorf("%w: version %d.%d, want 2.0 to 2.4", ErrFormat, major, minor)
	}
	r.pcap.minor = minor
	link := r.order.Uint32(b[20:]) & pcapLinkMask
	if link > math.MaxUint16 {
		return fmt.Errorf("%w: link type %d, at most %d", ErrFormat, link, math.MaxUint16)
	}
	r.pcap.link = hashing.LinkType(link)
	r.pending = pcapHeaderSize
	return nil
}

func (r *Reader) nextPcap() (Record, error) {
	b, err := r.peek(pcapRecordSize)
	if err != nil {
		return Record{}, err
	}
	captured, length := r.order.Uint32(b[8:]), r.order.Uint32(b[12:])
	// Before version 2.3 the lengths were the other way round; files of 2.3 have either order.
	if r.pcap.minor < 3 || r.pcap.minor == 3 && captured > length {
		captured, length = length, captured
	}
	if captured > maxFrame {
		return Record{}, fmt.Errorf("%w: captured length %d, at most %d", ErrFormat, captured, maxFrame)
	}
	size := pcapRecordSize + int(captured)
	if b, err = r.peek(size); err != nil {
		return Record{}, err
	}
	time := int64(NoTime)
	// The product does not overflow if the fraction is below a second.
	fraction := int64(r.order.Uint32(b[4:])) * int64(r.pcap.scale)
	if fraction < 1e9 {
		time = int64(r.order.Uint32(b))*1e9 + fraction
	}
	return r.record(size, time, r.pcap.link, length, b[pcapRecordSize:size:size])
}
