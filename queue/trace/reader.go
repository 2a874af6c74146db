package trace

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"

	"github.com/hoplag/hoplag/hashing"
)

// maxFrame is the size in bytes of the largest frame that can be read. It is the largest snap length of the
// usual capture programs.
const maxFrame = 256 << 10

// bufferSize bounds what a record takes in a file: a frame, its header and, in pcapng, its options.
const bufferSize = 2 * maxFrame

// NoTime is the Time of a record without a usable time. The capture may give none, as in a simple packet block
// of pcapng, or an impossible one: a fraction that is a second or more, or a date beyond the range of int64
// nanoseconds.
const NoTime = math.MinInt64

// ErrFormat means that the bytes are not a capture that this package reads, or contradict their own format. If
// a capture merely ends too early, the error is [io.ErrUnexpectedEOF] instead.
var ErrFormat = errors.New("malformed capture")

// A Record is one captured packet.
type Record struct {
	Time   int64            // nanoseconds since the Unix epoch, or NoTime
	Link   hashing.LinkType // what Frame begins with
	Length int              // bytes the packet had on the link; at least len(Frame), at most 2^31-1
	Frame  []byte           // the captured bytes; valid until the next call
}

// A Reader streams the packets of one capture. It is not safe for concurrent use, and the zero value panics.
type Reader struct {
	buf    *bufio.Reader
	order  binary.ByteOrder
	ng     bool          // pcapng; otherwise pcap
	pcap   pcapFile      // what the file's header says, if pcap
	ifaces []ngInterface // of the current section, if pcapng

	offset  int64 // of the record being read, in the decompressed file
	packets int64 // delivered
	pending int   // size of the last record, which holds the last Frame
	err     error // what ended the reading, returned from then on
}

// NewReader reads the header of the capture in src, which must begin at its first byte, and returns a Reader of
// the capture. An error wraps [ErrFormat], [io.ErrUnexpectedEOF] if src ends within the header, or the error of
// src.
//
// NewReader reads src in large pieces, possibly beyond the last packet returned.
func NewReader(src io.Reader) (*Reader, error) {
	raw := bufio.NewReader(src)
	magic, err := raw.Peek(2)
	if err != nil && err != io.EOF {
		return nil, err
	}
	src = raw
	if string(magic) == "\x1f\x8b" {
		if src, err = gzip.NewReader(raw); err != nil {
			return nil, fmt.Errorf("gzip header: %w", early(err))
		}
	}
	r := &Reader{buf: bufio.NewReaderSize(src, bufferSize)}
	if err := r.start(); err != nil {
		return nil, err
	}
	return r, nil
}

// start detects the format and reads the file's header.
func (r *Reader) start() error {
	magic, err := r.buf.Peek(4)
	if err != nil {
		return fmt.Errorf("cut off in its magic number, %d of 4 bytes: %w", len(magic), early(err))
	}
	if binary.BigEndian.Uint32(magic) == ngSectionHeader {
		r.ng = true
		if err := r.section(); err != nil {
			return fmt.Errorf("pcapng section header: %w", early(err))
		}
		return nil
	}
	if err := r.pcapHeader(); err != nil {
		return fmt.Errorf("pcap header: %w", early(err))
	}
	return nil
}

// Next returns the next packet. Its Frame is valid until the next call.
//
// At the end of the capture the error is io.EOF. Any other error names the packet (the first is 1) and where in
// the decompressed file its record begins. It wraps [io.ErrUnexpectedEOF] if the file is cut off, [ErrFormat],
// or the error of the underlying reader. It comes after all earlier packets. An error is final: every later
// call returns it again.
func (r *Reader) Next() (Record, error) {
	if r.err != nil {
		return Record{}, r.err
	}
	// The last record is in the buffer, so this cannot fail.
	r.buf.Discard(r.pending)
	r.offset += int64(r.pending)

	var rec Record
	var err error
	if r.ng {
		rec, err = r.nextNG()
	} else {
		rec, err = r.nextPcap()
	}
	if err != nil {
		if err != io.EOF {
			err = fmt.Errorf("packet %d, at byte %d: %w", r.packets+1, r.offset, err)
		}
		r.err = err
		return Record{}, err
	}
	r.packets++
	return rec, nil
}

// All returns an iterator over the remaining packets, each valid until the next. An error of [Reader.Next]
// other than io.EOF comes last, with a zero Record.
func (r *Reader) All() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for {
			rec, err := r.Next()
			if err == io.EOF || !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// record makes a Record, holding on to size bytes until the next call.
func (r *Reader) record(size int, time int64, link hashing.LinkType, length uint32, frame []byte) (Record, error) {
	r.pending = size
	return Record{Time: time, Link: link, Length: max(int(min(length, math.MaxInt32)), len(frame)), Frame: frame}, nil
}

// peek returns the next n bytes of a record, n ≤ bufferSize, and leaves them in the buffer. It returns io.EOF
// only if no byte is left at all and the file, if compressed, is whole.
func (r *Reader) peek(n int) ([]byte, error) {
	b, err := r.buf.Peek(n)
	if err == io.EOF && len(b) > 0 || err == io.ErrUnexpectedEOF {
		err = fmt.Errorf("cut off, %d of at least %d bytes: %w", len(b), n, io.ErrUnexpectedEOF)
	}
	return b, err
}

// early turns io.EOF into io.ErrUnexpectedEOF, where more data should follow.
func early(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
