package colate

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/wire"
)

// A segment is a file of frames, one after the other:
//
//	magic "HCLF" · payload length 4 · first packet 8 · last packet 8 · CRC-32C of all these 4
//	payload: an encoded epoch, which ends with a CRC-32C of its own
//
// It is only ever appended to, and by the Store that made it. Once it is
// complete, an index says where its frames are:
//
//	magic "HCLI" · version 1
//	size of the segment 8
//	frames 4 · for each: offset 8 · payload length 4 · first 8 · last 8
//	damages 4 · for each: offset 8 · bytes 8
//	CRC-32C 4
//
// The index is a convenience: without it the segment is read through.
const (
	frameMagic = "HCLF"
	frameSize  = 28

	indexMagic   = "HCLI"
	indexVersion = 1
	entrySize    = 28
	damageSize   = 16

	segmentSuffix = ".colate"
	indexSuffix   = ".index"
	partSuffix    = ".part" // of an index that is being written
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// segment is what a Store knows of a file.
type segment struct {
	number  uint64
	size    int64
	entries []entry
	damages []Damage
}

// entry is where an epoch is, and its span.
type entry struct {
	segment     uint64
	offset      int64 // of the payload
	length      uint32
	first, last int64
}

// A Damage is a part of a store's files that holds no whole epoch.
type Damage struct {
	File          string
	Offset, Bytes int64
	Reason        error // nil if it is known only from an index
}

// String says where and why.
func (d Damage) String() string {
	s := fmt.Sprintf("%s: %d bytes from %d", d.File, d.Bytes, d.Offset)
	if d.Reason != nil {
		s += ": " + d.Reason.Error()
	}
	return s
}

func segmentName(number uint64) string { return fmt.Sprintf("%016x%s", number, segmentSuffix) }
func indexName(number uint64) string   { return fmt.Sprintf("%016x%s", number, indexSuffix) }

// numberOf is the number in a name that segmentName made.
func numberOf(name string) (uint64, bool) {
	number, err := strconv.ParseUint(strings.TrimSuffix(name, segmentSuffix), 16, 64)
	return number, err == nil && name == segmentName(number)
}

// appendFrame appends an epoch's frame.
func appendFrame(dst []byte, e *Epoch) ([]byte, error) {
	start := len(dst)
	dst = append(dst, make([]byte, frameSize)...)
	dst, err := e.AppendBinary(dst)
	if err != nil {
		return dst, err
	}
	length := len(dst) - start - frameSize
	if int64(length) > math.MaxUint32 {
		return dst, fmt.Errorf("colate: %w: an epoch of %d bytes, a store takes up to 2^32-1", estimate.ErrConfig, length)
	}
	head := append(dst[start:start], frameMagic...)
	head = binary.BigEndian.AppendUint32(head, uint32(length))
	head = binary.BigEndian.AppendUint64(head, uint64(e.first))
	head = binary.BigEndian.AppendUint64(head, uint64(e.last))
	binary.BigEndian.AppendUint32(head, crc32.Checksum(head, castagnoli))
	return dst, nil
}

// parseFrame reads a frame's head.
func parseFrame(head []byte) (length uint32, first, last int64, ok bool) {
	be := binary.BigEndian
	if len(head) < frameSize || string(head[:4]) != frameMagic || crc32.Checksum(head[:24], castagnoli) != be.Uint32(head[24:]) {
		return 0, 0, 0, false
	}
	return be.Uint32(head[4:]), int64(be.Uint64(head[8:])), int64(be.Uint64(head[16:])), true
}

// scan reads a segment through. What is not a whole frame is damage; after it
// the next frame is looked for at every byte, so that one bad byte costs one
// epoch at most. An error is one of reading.
func scan(f io.ReaderAt, number uint64, size int64) (*segment, error) {
	s := &segment{number: number, size: size}
	name := segmentName(number)
	var payload []byte
	damage := func(offset, end int64, reason error) {
		if last := len(s.damages) - 1; last >= 0 && s.damages[last].Offset+s.damages[last].Bytes == offset {
			s.damages[last].Bytes += end - offset
			return
		}
		s.damages = append(s.damages, Damage{File: name, Offset: offset, Bytes: end - offset, Reason: reason})
	}
	for offset := int64(0); offset < size; {
		head := make([]byte, min(frameSize, size-offset))
		if err := readFull(f, head, offset); err != nil {
			return nil, err
		}
		length, first, last, ok := parseFrame(head)
		end := offset + frameSize + int64(length)
		if !ok || end > size {
			reason := fmt.Errorf("colate: %w: not the beginning of a whole frame", estimate.ErrEncoding)
			if ok {
				reason = fmt.Errorf("colate: %w: a frame of %d bytes ends after %d", estimate.ErrEncoding, end-offset, size-offset)
			}
			next, err := findFrame(f, offset+1, size)
			if err != nil {
				return nil, err
			}
			damage(offset, next, reason)
			offset = next
			continue
		}
		if int64(cap(payload)) < int64(length) {
			payload = make([]byte, length)
		}
		payload = payload[:length]
		if err := readFull(f, payload, offset+frameSize); err != nil {
			return nil, err
		}
		e := entry{segment: number, offset: offset + frameSize, length: length, first: first, last: last}
		if _, err := e.open(payload); err != nil {
			damage(offset, end, err)
		} else {
			s.entries = append(s.entries, e)
		}
		offset = end
	}
	return s, nil
}

// findFrame returns the first offset from which on there is a head of a frame,
// or size.
func findFrame(f io.ReaderAt, from, size int64) (int64, error) {
	buffer := make([]byte, 1<<16)
	for from < size {
		part := buffer[:min(int64(len(buffer)), size-from)]
		if err := readFull(f, part, from); err != nil {
			return 0, err
		}
		for at := 0; ; at++ {
			next := bytes.Index(part[at:], []byte(frameMagic))
			if next < 0 || at+next+frameSize > len(part) {
				break
			}
			at += next
			if _, _, _, ok := parseFrame(part[at:]); ok {
				return from + int64(at), nil
			}
		}
		if from+int64(len(part)) == size {
			break
		}
		from += int64(len(part) - frameSize + 1) // a head may lie across the end
	}
	return size, nil
}

// open checks the payload of an entry.
func (e entry) open(payload []byte) (packedEpoch, error) {
	p, err := openEpoch(payload)
	if err == nil && (p.first != e.first || p.last != e.last) {
		err = fmt.Errorf("colate: %w: frame and epoch disagree about their span", estimate.ErrEncoding)
	}
	return p, err
}

func (e entry) overlaps(from, to int64) bool { return e.first <= to && e.last >= from }

// readFull reads len(b) bytes at offset, or fails.
func readFull(f io.ReaderAt, b []byte, offset int64) error {
	n, err := f.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// appendIndex appends the segment's index.
func (s *segment) appendIndex(dst []byte) []byte {
	be, start := binary.BigEndian, len(dst)
	dst = wire.Begin(dst, indexMagic, indexVersion)
	dst = be.AppendUint64(dst, uint64(s.size))
	dst = be.AppendUint32(dst, uint32(len(s.entries)))
	for _, e := range s.entries {
		dst = be.AppendUint64(dst, uint64(e.offset))
		dst = be.AppendUint32(dst, e.length)
		dst = be.AppendUint64(dst, uint64(e.first))
		dst = be.AppendUint64(dst, uint64(e.last))
	}
	dst = be.AppendUint32(dst, uint32(len(s.damages)))
	for _, d := range s.damages {
		dst = be.AppendUint64(dst, uint64(d.Offset))
		dst = be.AppendUint64(dst, uint64(d.Bytes))
	}
	return wire.Seal(dst, start)
}

// parseIndex reads the index of a segment of the given size.
func parseIndex(data []byte, number uint64, size int64) (*segment, error) {
	bad := func(what string) error { return fmt.Errorf("colate: %w: %s", estimate.ErrEncoding, what) }
	r, err := wire.Open(data, indexMagic, indexVersion)
	if err != nil {
		return nil, fmt.Errorf("colate: %w", err)
	}
	if r.Uint64() != uint64(size) {
		return nil, bad("index of a segment of another size")
	}
	s := &segment{number: number, size: size}
	count := r.Uint32()
	if int64(count)*entrySize > int64(r.Len()) {
		return nil, bad("index ends early")
	}
	for range count {
		e := entry{segment: number, offset: int64(r.Uint64()), length: r.Uint32(), first: int64(r.Uint64()), last: int64(r.Uint64())}
		if e.offset < frameSize || e.offset > size || int64(e.length) > size-e.offset {
			return nil, bad("index points outside its segment")
		}
		s.entries = append(s.entries, e)
	}
	count = r.Uint32()
	if int64(count)*damageSize > int64(r.Len()) {
		return nil, bad("index ends early")
	}
	for range count {
		s.damages = append(s.damages, Damage{File: segmentName(number), Offset: int64(r.Uint64()), Bytes: int64(r.Uint64())})
	}
	if err := r.Close(); err != nil {
		return nil, fmt.Errorf("colate: %w", err)
	}
	return s, nil
}
