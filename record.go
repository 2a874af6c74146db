package hoplag

import (
	"bytes"
	"compress/flate"
	"crypto/hmac"
	"crypto/sha256"
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
//	sizes      4 × 4: first to last point, of all packets and of the encoding of
//	           flows, and the same back; 0: no packets
//	packets    all packets, packed as in package lda, and the same back
//	flows      DEFLATE of the encodings of flows, if there is one
//
// This lies between the head and the checksum of package wire, followed by the
// first tagSize bytes of the HMAC-SHA256 of all that.
type record struct {
	session        uint64
	after, through int64
	parts          [2]part // by direction
}

// A part is one direction of a checked record.
type part struct {
	packed []byte      // all packets, nil if there were none
	flows  *lds.Sketch // nil without Config.Flows
}

const (
	recordMagic   = "HLPC"
	recordVersion = 2
	tagSize       = 16
)

// A sealer encodes and signs with a key, and checks and decodes.
type sealer struct {
	config   Config
	cells    lda.Config
	identity uint64
	key      []byte
}

func newSealer(c Config) sealer {
	return sealer{config: c, cells: c.lda(), identity: hashing.Fingerprint(c.seed()), key: c.deriveKey("records")}
}

// tag appends its HMAC to a message.
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

// record encodes what was counted in each direction.
func (s *sealer) record(session uint64, after, through int64, counted [2]*tally) []byte {
	b := s.begin(recordMagic)
	b = binary.BigEndian.AppendUint64(b, session)
	b = binary.BigEndian.AppendUint64(b, uint64(s.config.Cut))
	b = binary.BigEndian.AppendUint64(b, uint64(after))
	b = binary.BigEndian.AppendUint64(b, uint64(through))
	sizes := len(b)
	b = append(b, make([]byte, 4*4)...)
	var flows []byte
	for i, t := range counted {
		if t == nil || t.empty() {
			continue
		}
		before := len(b)
		b = t.all.AppendPacked(b, (after+1)*int64(s.config.Cut))
		binary.BigEndian.PutUint32(b[sizes+8*i:], uint32(len(b)-before))
		if t.flows != nil {
			before = len(flows)
			flows = must(t.flows.AppendBinary(flows)) // never fails
			binary.BigEndian.PutUint32(b[sizes+8*i+4:], uint32(len(flows)-before))
		}
	}
	if len(flows) > 0 {
		var deflated bytes.Buffer
		w, _ := flate.NewWriter(&deflated, flate.BestSpeed) // fails for bad levels only
		w.Write(flows)
		w.Close()
		b = append(b, deflated.Bytes()...)
	}
	return s.seal(b)
}

// decode decodes and checks a record of a point of the same Config. It keeps
// no reference to data.
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
	packed := [2][]byte{r.Bytes(sizes[0]), r.Bytes(sizes[2])}
	deflated := r.Bytes(r.Len())
	if err := r.Close(); err != nil {
		return record{}, fmt.Errorf("hoplag: record: %w", err)
	}
	if cut != s.config.Cut {
		return record{}, fmt.Errorf("hoplag: record: %w: Cut is %v at the other point and %v here", estimate.ErrMismatch, cut, s.config.Cut)
	}
	if rec.after >= rec.through {
		return record{}, fmt.Errorf("hoplag: record: %w: from cut %d to %d", estimate.ErrEncoding, rec.after, rec.through)
	}
	for i, p := range packed {
		if len(p) == 0 {
			continue
		}
		if err := s.cells.CheckPacked(p); err != nil {
			return record{}, fmt.Errorf("hoplag: record: Cells: %w", err)
		}
		rec.parts[i].packed = bytes.Clone(p)
	}
	if err := s.decodeFlows(&rec.parts, deflated, sizes[1], sizes[3]); err != nil {
		return record{}, fmt.Errorf("hoplag: record: %w", err)
	}
	return rec, nil
}

// decodeFlows decodes the flows of both directions, in the given number of
// bytes.
func (s *sealer) decodeFlows(parts *[2]part, deflated []byte, forth, back int) error {
	if s.config.Flows == 0 {
		return nil // what the other point knows about flows is of no use here
	}
	plain := flate.NewReader(bytes.NewReader(deflated))
	columns := s.config.lds()
	for i, size := range [2]int{forth, back} {
		if size == 0 {
			continue
		}
		if want := columns.EncodedSize(); size != want {
			const differ = "%w: %d bytes of flows, want %d: are Flows the same at both points?"
			return fmt.Errorf(differ, estimate.ErrMismatch, size, want)
		}
		data := make([]byte, size)
		if _, err := io.ReadFull(plain, data); err != nil {
			return fmt.Errorf("%w: %v", estimate.ErrEncoding, err)
		}
		flows := new(lds.Sketch)
		if err := flows.UnmarshalBinary(data); err != nil {
			return err
		}
		if got := flows.Config(); got != columns {
			return fmt.Errorf("%w: Flows differ: %+v at the other point and %+v here", estimate.ErrMismatch, got, columns)
		}
		parts[i].flows = flows
	}
	if n, _ := plain.Read(make([]byte, 1)); n > 0 || forth+back == 0 && len(deflated) > 0 {
		return fmt.Errorf("%w: bytes left over", estimate.ErrEncoding)
	}
	return nil
}
