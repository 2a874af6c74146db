package colate

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/internal/wire"
)

// A segment is a file of frames, one after the other:
//
//	magic "HCLG" · payload length 4 · length of its head 4 · start 8 · end 8 · CRC-32C of all these 4
//	payload: an encoded epoch (codec.go), or, if the head has no length, an
//	encoded clock.History
//
// Only the Store that made a segment appends to it. A complete segment ends
// with an index, which says where its frames are, and with the place of the
// index:
//
//	magic "HCLI" · version 2
//	frames 4 · for each: offset of the payload 8 · payload length 4 · length of its head 4 · start 8 · end 8
//	damages 4 · for each: offset 8 · bytes 8
//	CRC-32C 4
//	offset of the index 8 · magic "HCLX" 4
//
// The index is a convenience: without it the segment is read from the start.
const (
	frameMagic = "HCLG"
	frameSize  = 32

	indexMagic   = "HCLI"
	indexVersion = 2
	entrySize    = 32
	damageSize   = 16
	trailerMagic = "HCLX"
	trailerSize  = 12

	segmentSuffix = ".colate"
)

// segment is what a Store knows about a file.
type segment struct {
	number   uint64
	size     int64 // of the known frames and damages
	complete bool
	unread   bool // because of the file system, not of what is in the file
	entries  []entry
	damages  []Damage
}

// epochs returns the number of epochs.
func (s *segment) epochs() (n int) {
	for i := range s.entries {
		if !s.entries[i].clock() {
			n++
		}
	}
	return n
}

// entry says where an epoch is, and its span.
type entry struct {
	segment    uint64
	offset     int64 // of the payload
	length     uint32
	head       uint32
	start, end int64
}

// clock reports whether the entry is a clock history instead of an epoch.
func (e *entry) clock() bool { return e.head == 0 }

func (e *entry) overlaps(from, to int64) bool { return e.start <= to && e.end > from }

// A Damage is a part of a store's files that holds no whole epoch.
type Damage struct {
	File          string
	Offset, Bytes int64
	Reason        error // nil if known only from an index
}

// String returns where the damage is and its reason.
func (d Damage) String() string {
	s := fmt.Sprintf("%s: %d bytes from %d", d.File, d.Bytes, d.Offset)
	if d.Reason != nil {
		s += ": " + d.Reason.Error()
	}
	return s
}

func segmentName(number uint64) string { return fmt.Sprintf("%016x%s", number, segmentSuffix) }

// numberOf returns the number in a name that segmentName made.
func numberOf(name string) (uint64, bool) {
	number, err := strconv.ParseUint(strings.TrimSuffix(name, segmentSuffix), 16, 64)
	return number, err == nil && name == segmentName(number)
}

// appendFrame appends an epoch's frame.
func appendFrame(dst []byte, r *Recorder) ([]byte, entry) {
	start, end, _ := r.Span()
	e := entry{head: uint32(r.headSize()), start: start, end: end}
	return seal(dst, r, e), e
}

// appendClock appends the frame of a history that is not empty.
func appendClock(dst []byte, h *clock.History) []byte {
	start, end, _ := h.Span()
	return seal(dst, h, entry{start: start, end: end})
}

// seal appends the frame of an entry whose length and place are still unknown.
func seal(dst []byte, payload encoding.BinaryAppender, e entry) []byte {
	from := len(dst)
	dst = append(dst, make([]byte, frameSize)...)
	dst, _ = payload.AppendBinary(dst) // which does not fail
	head := append(dst[from:from], frameMagic...)
	head = binary.BigEndian.AppendUint32(head, uint32(len(dst)-from-frameSize))
	head = binary.BigEndian.AppendUint32(head, e.head)
	head = binary.BigEndian.AppendUint64(head, uint64(e.start))
	head = binary.BigEndian.AppendUint64(head, uint64(e.end))
	binary.BigEndian.AppendUint32(head, crc32.Checksum(head, castagnoli))
	return dst
}

// parseFrame reads the head of a frame at an offset. It reports false unless
// the whole frame ends before the given end.
func parseFrame(head []byte, number uint64, offset, end int64) (entry, bool) {
	be := binary.BigEndian
	if len(head) < frameSize || string(head[:4]) != frameMagic || crc32.Checksum(head[:28], castagnoli) != be.Uint32(head[28:]) {
		return entry{}, false
	}
	e := entry{
		segment: number, offset: offset + frameSize, length: be.Uint32(head[4:]), head: be.Uint32(head[8:]),
		start: int64(be.Uint64(head[12:])), end: int64(be.Uint64(head[20:])),
	}
	return e, e.head <= e.length && int64(e.length) <= end-e.offset
}

// scan reads a segment up to size, from where its known part ends, and adds
// what it finds. Anything but a whole frame is damage. After damage it looks
// for the next frame at every byte, so that one bad byte costs at most one
// epoch. It returns only errors of reading.
func (s *segment) scan(f io.ReaderAt, size int64) error {
	var payload []byte
	head := make([]byte, frameSize)
	finder := finder{file: f, number: s.number}
	for s.size < size {
		head = head[:min(frameSize, size-s.size)]
		if err := readFull(f, head, s.size); err != nil {
			return err
		}
		e, ok := parseFrame(head, s.number, s.size, size)
		if !ok {
			next, err := finder.find(s.size+1, size)
			if err != nil {
				return err
			}
			s.damage(next, fmt.Errorf("%w: not the beginning of a whole frame", estimate.ErrEncoding))
			continue
		}
		if int64(cap(payload)) < int64(e.length) {
			payload = make([]byte, e.length)
		}
		payload = payload[:e.length]
		if err := readFull(f, payload, e.offset); err != nil {
			return err
		}
		end := e.offset + int64(e.length)
		if err := e.check(payload); err != nil {
			s.damage(end, err)
			continue
		}
		s.entries = append(s.entries, e)
		s.size = end
	}
	return nil
}

// damage records that there is no frame between the known part and end.
func (s *segment) damage(end int64, reason error) {
	if last := len(s.damages) - 1; last >= 0 && s.damages[last].Offset+s.damages[last].Bytes == s.size {
		s.damages[last].Bytes += end - s.size
	} else {
		s.damages = append(s.damages, Damage{File: segmentName(s.number), Offset: s.size, Bytes: end - s.size, Reason: reason})
	}
	s.size = end
}

// A finder finds frames. It keeps what it has read, so that many frames in a
// small part of the file are not read one by one.
type finder struct {
	file   io.ReaderAt
	number uint64 // of the segment
	at     int64  // of data in the file
	data   []byte
	buffer []byte
}

// find returns the first offset, starting at from, of the head of a whole
// frame, or size.
func (f *finder) find(from, size int64) (int64, error) {
	for from < size {
		part, err := f.read(from, size)
		if err != nil {
			return 0, err
		}
		for at := 0; ; at++ {
			next := bytes.Index(part[at:], []byte(frameMagic))
			if next < 0 || at+next+frameSize > len(part) {
				break
			}
			at += next
			if _, ok := parseFrame(part[at:], f.number, from+int64(at), size); ok {
				return from + int64(at), nil
			}
		}
		if from+int64(len(part)) == size {
			break
		}
		from += int64(len(part) - frameSize + 1) // a head may span the end
	}
	return size, nil
}

// read returns the data that follows an offset: at least a head, if one fits
// before size.
func (f *finder) read(from, size int64) ([]byte, error) {
	end := f.at + int64(len(f.data))
	if from >= f.at && from < end && (end == size || end-from >= frameSize) {
		return f.data[from-f.at:], nil
	}
	if f.buffer == nil {
		f.buffer = make([]byte, 1<<16)
	}
	f.at, f.data = from, f.buffer[:min(int64(len(f.buffer)), size-from)]
	err := readFull(f.file, f.data, from)
	if err != nil {
		f.data = nil
	}
	return f.data, err
}

// open reads and checks the head of the entry's payload.
func (e *entry) open(head []byte) (*epochHead, error) {
	h, err := openHead(head)
	if err != nil {
		return nil, err
	}
	if h.start != e.start || h.start+h.config.Period != e.end || h.offsets[len(h.offsets)-1] != int64(e.length) {
		return nil, fmt.Errorf("%w: frame and epoch disagree about their span or length", estimate.ErrEncoding)
	}
	return h, nil
}

// check verifies all checksums of a payload.
func (e *entry) check(payload []byte) error {
	if e.clock() {
		_, err := e.history(payload)
		return err
	}
	h, err := e.open(payload[:e.head])
	if err != nil {
		return err
	}
	for i := range len(h.offsets) - 1 {
		if !sealedBlock(payload[h.offsets[i]:h.offsets[i+1]]) {
			return fmt.Errorf("%w: checksum of block %d of counters", estimate.ErrEncoding, i)
		}
	}
	return nil
}

// history decodes a payload that is a history.
func (e *entry) history(payload []byte) (*clock.History, error) {
	h := new(clock.History)
	if err := h.UnmarshalBinary(payload); err != nil {
		return nil, err
	}
	if start, end, ok := h.Span(); !ok || start != e.start || end != e.end {
		return nil, fmt.Errorf("%w: frame and history disagree about their span", estimate.ErrEncoding)
	}
	return h, nil
}

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

// appendIndex appends the segment's index and trailer.
func (s *segment) appendIndex(dst []byte) []byte {
	be, start := binary.BigEndian, len(dst)
	dst = wire.Begin(dst, indexMagic, indexVersion)
	dst = be.AppendUint32(dst, uint32(len(s.entries)))
	for _, e := range s.entries {
		dst = be.AppendUint64(dst, uint64(e.offset))
		dst = be.AppendUint32(dst, e.length)
		dst = be.AppendUint32(dst, e.head)
		dst = be.AppendUint64(dst, uint64(e.start))
		dst = be.AppendUint64(dst, uint64(e.end))
	}
	dst = be.AppendUint32(dst, uint32(len(s.damages)))
	for _, d := range s.damages {
		dst = be.AppendUint64(dst, uint64(d.Offset))
		dst = be.AppendUint64(dst, uint64(d.Bytes))
	}
	dst = wire.Seal(dst, start)
	dst = be.AppendUint64(dst, uint64(s.size))
	return append(dst, trailerMagic...)
}

// readIndex reads the index of a segment of the given total size, if it has
// one.
func readIndex(f io.ReaderAt, number uint64, size int64) (*segment, error) {
	none := fmt.Errorf("%w: no index", estimate.ErrEncoding)
	trailer := make([]byte, trailerSize)
	if size < trailerSize {
		return nil, none
	}
	if err := readFull(f, trailer, size-trailerSize); err != nil {
		return nil, err
	}
	at := int64(binary.BigEndian.Uint64(trailer))
	if string(trailer[8:]) != trailerMagic || at < 0 || at > size-trailerSize {
		return nil, none
	}
	data := make([]byte, size-trailerSize-at)
	if err := readFull(f, data, at); err != nil {
		return nil, err
	}
	return parseIndex(data, number, at)
}

// parseIndex parses the index of a segment whose frames have the given size.
// Frames follow one another, so that no part of the segment is named twice.
func parseIndex(data []byte, number uint64, size int64) (*segment, error) {
	bad := func(what string) error { return fmt.Errorf("%w: %s", estimate.ErrEncoding, what) }
	r, err := wire.Open(data, indexMagic, indexVersion)
	if err != nil {
		return nil, err
	}
	s := &segment{number: number, size: size, complete: true}
	count := r.Uint32()
	if int64(count)*entrySize > int64(r.Len()) {
		return nil, bad("index ends early")
	}
	free := int64(0)
	for range count {
		e := entry{
			segment: number, offset: int64(r.Uint64()), length: r.Uint32(), head: r.Uint32(),
			start: int64(r.Uint64()), end: int64(r.Uint64()),
		}
		if e.offset < free+frameSize || e.offset > size || int64(e.length) > size-e.offset || e.head > e.length {
			return nil, bad("index points outside its segment, or twice to one place")
		}
		free = e.offset + int64(e.length)
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
		return nil, err
	}
	return s, nil
}
