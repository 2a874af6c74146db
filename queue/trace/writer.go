package trace

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/hoplag/hoplag/hashing"
)

// A Writer writes a pcap file with nanosecond timestamps. Only one goroutine
// at a time may use it. It does not buffer: each packet is one Write of the
// underlying writer, and there is nothing to flush or close. Wrap a file in a
// bufio.Writer.
type Writer struct {
	dst     io.Writer
	link    hashing.LinkType
	snaplen int
	record  []byte // reused
}

// NewWriter writes the file header for frames of one link type, and returns a
// Writer of its packets. The Writer writes the first snaplen bytes of each
// frame, 1 to [MaxFrame].
func NewWriter(dst io.Writer, link hashing.LinkType, snaplen int) (*Writer, error) {
	if snaplen < 1 || snaplen > MaxFrame {
		return nil, fmt.Errorf("snap length %d, want 1 to %d", snaplen, MaxFrame)
	}
	le := binary.LittleEndian
	b := make([]byte, 0, pcapHeaderSize)
	b = le.AppendUint32(b, pcapNanos)
	b = le.AppendUint16(b, 2) // version 2.4
	b = le.AppendUint16(b, 4)
	b = le.AppendUint64(b, 0) // time zone and accuracy, always 0
	b = le.AppendUint32(b, uint32(snaplen))
	b = le.AppendUint32(b, uint32(link))
	if _, err := dst.Write(b); err != nil {
		return nil, err
	}
	return &Writer{dst: dst, link: link, snaplen: snaplen}, nil
}

// Write writes one packet and does not keep its Frame. It refuses a Record,
// and writes nothing, if the Link is not the Writer's, the Time is not in the
// format's range (0 to 2^32 seconds), or the Length is less than len(Frame) or
// beyond 32 bits. Set the Length even if the frame is whole.
func (w *Writer) Write(rec Record) error {
	if rec.Link != w.link {
		return fmt.Errorf("link type %d in a file of link type %d", rec.Link, w.link)
	}
	if rec.Time < 0 || rec.Time/1e9 > math.MaxUint32 {
		return fmt.Errorf("time %d ns, want 0 to 2^32 s", rec.Time)
	}
	if rec.Length < len(rec.Frame) || rec.Length > math.MaxInt32 {
		return fmt.Errorf("length %d, want %d (the frame's) to %d", rec.Length, len(rec.Frame), math.MaxInt32)
	}
	frame := rec.Frame[:min(len(rec.Frame), w.snaplen)]
	le := binary.LittleEndian
	b := w.record[:0]
	b = le.AppendUint32(b, uint32(rec.Time/1e9))
	b = le.AppendUint32(b, uint32(rec.Time%1e9))
	b = le.AppendUint32(b, uint32(len(frame)))
	b = le.AppendUint32(b, uint32(rec.Length))
	b = append(b, frame...)
	w.record = b
	_, err := w.dst.Write(b)
	return err
}
