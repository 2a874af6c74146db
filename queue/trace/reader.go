package trace

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"

	"github.com/hoplag/hoplag/hashing"
)

// MaxFrame is the largest frame, in bytes, that is read or written. It is the
// largest snap length of the usual capture programs.
const MaxFrame = 256 << 10

// bufferSize bounds what a record takes in a file: a frame, its header and,
// in pcapng, its options.
const bufferSize = 2 * MaxFrame

// NoTime is the Time of a record whose capture gives none, as a simple packet
// block of pcapng, or an impossible one: a fraction of a second that is a
// second or more, or a date beyond the range of int64 nanoseconds.
const NoTime = math.MinInt64

// ErrFormat says that the bytes are not a capture that this package reads, or
// contradict their own format. Where a capture merely ends too early the error
// is [io.ErrUnexpectedEOF] instead.
var ErrFormat = errors.New("malformed capture")

// A Record is one captured packet.
type Record struct {
	Time   int64        // nanoseconds since the Unix epoch, or NoTime
	Link   hashing.Link // what Frame begins with
	Length int          // bytes the packet had on the link; at least len(Frame), at most 2^31-1
	Frame  []byte       // the bytes captured; valid until the next call
}

// A Reader streams the packets of one capture. It belongs to one goroutine at
// a time.
type Reader struct {
	buf    *bufio.Reader
	order  order
	ng     bool          // pcapng; otherwise pcap
	pcap   pcapFile      // what the file's header says, if pcap
	ifaces []ngInterface // of the current section, if pcapng

	offset  int64 // of the record being read, in the decompressed file
	packets int64 // delivered
	pending int   // size of the last record, which holds the last Frame
	err     error // what ended the reading, returned ever after
}

// NewReader returns a Reader of the capture that src holds from its first
// byte on, and reads the capture's header. An error wraps [ErrFormat],
// [io.ErrUnexpectedEOF] where src ends within the header, or src's own.
//
// src is read in large pieces, and possibly beyond the last packet returned.
func NewReader(src io.Reader) (*Reader, error) {
	raw := bufio.NewReader(src)
	magic, err := raw.Peek(2)
	if err != nil && err != io.EOF {
		return nil, err
	}
	src = raw
	if string(magic) == "\x1f\x8b" {
		if src, err = newUnzip(raw); err != nil {
			return nil, fmt.Errorf("gzip header: %w", early(err))
		}
	}
	r := &Reader{buf: bufio.NewReaderSize(src, bufferSize)}
	if err := r.start(); err != nil {
		return nil, err
	}
	return r, nil
}

// start finds out the format and reads the file's header.
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
// At the end of the capture the error is io.EOF. Any other names the packet
// (the first is 1) and where in the decompressed file the record at fault
// begins, and wraps [io.ErrUnexpectedEOF] where the file is cut off,
// [ErrFormat], or the error of the underlying reader. All packets before it
// have then been delivered. An error is final: every later call returns it
// again.
func (r *Reader) Next() (Record, error) {
	if r.err != nil {
		return Record{}, r.err
	}
	// The last record is in the buffer, so that this cannot fail.
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

// All returns an iterator over the packets that are left, each valid until
// the next. An error, as of [Reader.Next], is the last that it yields, with a
// zero Record; io.EOF is not yielded.
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
func (r *Reader) record(size int, time int64, link hashing.Link, length uint32, frame []byte) (Record, error) {
	r.pending = size
	return Record{Time: time, Link: link, Length: max(int(min(length, math.MaxInt32)), len(frame)), Frame: frame}, nil
}

// peek returns the next n bytes of a record, n ≤ bufferSize, and leaves them
// in the buffer. io.EOF is returned only where there is no byte left at all
// and the file, if compressed, is whole.
func (r *Reader) peek(n int) ([]byte, error) {
	b, err := r.buf.Peek(n)
	if err == io.EOF && len(b) > 0 || err == io.ErrUnexpectedEOF {
		err = fmt.Errorf("cut off, %d of at least %d bytes: %w", len(b), n, io.ErrUnexpectedEOF)
	}
	return b, err
}

// early makes io.EOF, where more was to come, io.ErrUnexpectedEOF.
func early(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// An order is a byte order: true is big-endian.
type order bool

func (big order) uint16(b []byte) uint16 {
	if big {
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}

func (big order) uint32(b []byte) uint32 {
	if big {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

func (big order) uint64(b []byte) uint64 {
	if big {
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}
