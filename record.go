package hoplag

import (
	"bytes"
	"compress/flate"
	"crypto/hmac"
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/wire"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lds"
)

// A record is what a point counted between two cuts. It travels as
//
//	identity   8 bytes, of the key
//	session    8
//	cut        8, Config.Cut in nanoseconds
//	after      8, number of the cut before
//	through    8, number of this cut
//	sizes      4 × 4, of the encodings that follow; 0: no packets
//	tallies    DEFLATE of the encodings: first to last point, all packets and
//	           flows, and the same back
//
// between the head and the checksum of package wire, with the first tagSize
// bytes of the HMAC-SHA256 of all that behind it.
type record struct {
	session        uint64
	after, through int64
	forth, back    *tally // nil: no packets
}

const (
	recordMagic   = "HLPC"
	recordVersion = 1
	tagSize       = 16
)

// A sealer encodes and signs with a key, and checks and decodes.
type sealer struct {
	config   Config
	identity uint64
	key      []byte
}

func newSealer(c Config) sealer {
	return sealer{config: c, identity: hashing.Fingerprint(c.seed()), key: c.deriveKey("records")}
}

// tag appends to a message its HMAC.
func (s *sealer) tag(message []byte) []byte {
	mac := hmac.New(sha256.New, s.key)
	mac.Write(message)
	return append(message, mac.Sum(nil)[:tagSize]...)
}

// open checks a message's tag, head and identity, and returns its body.
func (s *sealer) open(data []byte, magic string) (wire.Reader, error) {
	if len(data) < tagSize {
		return wire.Reader{}, fmt.Errorf("%w: %d bytes are too few for a signed message", estimate.ErrEncoding, len(data))
	}
	message := data[:len(data)-tagSize]
	r, err := wire.Open(message, magic, recordVersion)
	if err != nil {
		return r, err
	}
	if identity := r.Uint64(); identity != s.identity {
		return r, fmt.Errorf("%w: the other point has another Key", estimate.ErrMismatch)
	}
	mac := hmac.New(sha256.New, s.key)
	mac.Write(message)
	if !hmac.Equal(mac.Sum(nil)[:tagSize], data[len(message):]) {
		return r, ErrForged
	}
	return r, nil
}

// begin begins a message.
func (s *sealer) begin(magic string) []byte {
	return binary.BigEndian.AppendUint64(wire.Begin(nil, magic, recordVersion), s.identity)
}

// seal ends a message.
func (s *sealer) seal(message []byte) []byte { return s.tag(wire.Seal(message, 0)) }

// record encodes a record.
func (s *sealer) record(r record) []byte {
	b := s.begin(recordMagic)
	b = binary.BigEndian.AppendUint64(b, r.session)
	b = binary.BigEndian.AppendUint64(b, uint64(s.config.Cut))
	b = binary.BigEndian.AppendUint64(b, uint64(r.after))
	b = binary.BigEndian.AppendUint64(b, uint64(r.through))
	var plain []byte
	for _, t := range [2]*tally{r.forth, r.back} {
		any := t != nil && !t.empty()
		before := len(plain)
		if any {
			plain = must(t.all.AppendBinary(plain)) // never fails
		}
		b = binary.BigEndian.AppendUint32(b, uint32(len(plain)-before))
		before = len(plain)
		if any && t.flows != nil {
			plain = must(t.flows.AppendBinary(plain))
		}
		b = binary.BigEndian.AppendUint32(b, uint32(len(plain)-before))
	}
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestSpeed) // fails for bad levels only
	w.Write(plain)
	w.Close()
	return s.seal(append(b, packed.Bytes()...))
}

// decode decodes a record of a point of the same Config.
func (s *sealer) decode(data []byte) (record, error) {
	r, err := s.open(data, recordMagic)
	if err != nil {
		return record{}, fmt.Errorf("hoplag: record: %w", err)
	}
	rec := record{session: r.Uint64()}
	cut := time.Duration(r.Uint64())
	rec.after, rec.through = int64(r.Uint64()), int64(r.Uint64())
	var sizes [4]int
	for i := range sizes {
		sizes[i] = r.Size()
	}
	packed := r.Bytes(r.Len())
	if err := r.Close(); err != nil {
		return record{}, fmt.Errorf("hoplag: record: %w", err)
	}
	if cut != s.config.Cut {
		return record{}, fmt.Errorf("hoplag: record: %w: Cut is %v at the other point and %v here", estimate.ErrMismatch, cut, s.config.Cut)
	}
	if rec.after >= rec.through {
		return record{}, fmt.Errorf("hoplag: record: %w: from cut %d to %d", estimate.ErrEncoding, rec.after, rec.through)
	}
	plain := flate.NewReader(bytes.NewReader(packed))
	for i, into := range [2]**tally{&rec.forth, &rec.back} {
		if *into, err = s.decodeTally(plain, sizes[2*i], sizes[2*i+1]); err != nil {
			return record{}, fmt.Errorf("hoplag: record: %w", err)
		}
	}
	if n, _ := plain.Read(make([]byte, 1)); n > 0 {
		return record{}, fmt.Errorf("hoplag: record: %w: bytes left over", estimate.ErrEncoding)
	}
	return rec, nil
}

// decodeTally decodes a tally of the Config: encodings of so many bytes.
func (s *sealer) decodeTally(r io.Reader, all, flows int) (*tally, error) {
	if all == 0 && flows == 0 {
		return nil, nil
	}
	cells := s.config.lda()
	t := &tally{all: new(lda.Aggregator)}
	if err := decodePart(r, all, cells.EncodedSize(), "Cells", t.all); err != nil {
		return nil, err
	}
	if got := t.all.Config(); got != cells {
		return nil, fmt.Errorf("%w: Cells are %+v at the other point and %+v here", estimate.ErrMismatch, got, cells)
	}
	if s.config.Flows == 0 {
		// What the other point knows of flows is of no use here.
		_, err := io.CopyN(io.Discard, r, int64(flows))
		return t, err
	}
	if flows == 0 {
		return t, nil
	}
	columns := s.config.lds()
	t.flows = new(lds.Sketch)
	if err := decodePart(r, flows, columns.EncodedSize(), "Flows", t.flows); err != nil {
		return nil, err
	}
	if got := t.flows.Config(); got != columns {
		return nil, fmt.Errorf("%w: Flows differ: %+v at the other point and %+v here", estimate.ErrMismatch, got, columns)
	}
	return t, nil
}

// decodePart decodes the next size bytes, of which there are to be want.
func decodePart(r io.Reader, size, want int, field string, into encoding.BinaryUnmarshaler) error {
	if size != want {
		return fmt.Errorf("%w: %d bytes of counters, want %d: are %s the same at both points?", estimate.ErrMismatch, size, want, field)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(r, data); err != nil {
		return fmt.Errorf("%w: %v", estimate.ErrEncoding, err)
	}
	return into.UnmarshalBinary(data)
}
