package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/hoplag/hoplag/hashing"
)

// An ending is what a capture ends with.
type ending string

const (
	clean ending = "clean"     // at the end of a packet or block
	cut   ending = "cut off"   // within one
	bad   ending = "malformed" // on bytes that contradict the format
)

func endingOf(err error) ending {
	switch {
	case err == nil:
		return clean
	case errors.Is(err, io.ErrUnexpectedEOF):
		return cut
	}
	return bad
}

// reference reads a whole capture, uncompressed, as literally as the formats' descriptions can be written down:
// all of the file at hand, exact rational times, nothing shared with the Reader.
func reference(file []byte) ([]Record, ending) {
	if len(file) < 4 {
		return nil, cut
	}
	if string(file[:4]) == "\x0a\x0d\x0d\x0a" {
		return referenceNG(file)
	}
	return referencePcap(file)
}

func referencePcap(file []byte) ([]Record, ending) {
	var o binary.ByteOrder
	unit := int64(1000)
	switch string(file[:4]) {
	case "\xd4\xc3\xb2\xa1":
		o = binary.LittleEndian
	case "\xa1\xb2\xc3\xd4":
		o = binary.BigEndian
	case "\x4d\x3c\xb2\xa1":
		o, unit = binary.LittleEndian, 1
	case "\xa1\xb2\x3c\x4d":
		o, unit = binary.BigEndian, 1
	default:
		return nil, bad
	}
	if len(file) < 24 {
		return nil, cut
	}
	link := o.Uint32(file[20:24]) & 0x03ffffff
	if o.Uint16(file[4:6]) != 2 || o.Uint16(file[6:8]) > 4 || link > 65535 {
		return nil, bad
	}
	var recs []Record
	for rest := file[24:]; len(rest) > 0; {
		if len(rest) < 16 {
			return recs, cut
		}
		captured, length := o.Uint32(rest[8:12]), o.Uint32(rest[12:16])
		if minor := o.Uint16(file[6:8]); minor < 3 || minor == 3 && captured > length {
			captured, length = length, captured
		}
		if captured > 262144 {
			return recs, bad
		}
		if uint64(len(rest)) < 16+uint64(captured) {
			return recs, cut
		}
		if length > math.MaxInt32 {
			length = math.MaxInt32
		}
		rec := Record{NoTime, hashing.LinkType(link), int(length), rest[16 : 16+captured]}
		if fraction := int64(o.Uint32(rest[4:8])) * unit; fraction < 1_000_000_000 {
			rec.Time = int64(o.Uint32(rest[:4]))*1_000_000_000 + fraction
		}
		if captured > length {
			rec.Length = int(captured)
		}
		recs = append(recs, rec)
		rest = rest[16+captured:]
	}
	return recs, clean
}

type referenceIface struct {
	link    uint16
	snaplen uint32
	unit    *big.Rat // seconds
	offset  int64    // seconds
}

// nanoseconds rounds a time down, before the offset is added.
func (f referenceIface) nanoseconds(units uint64) int64 {
	t := new(big.Rat).SetInt(new(big.Int).SetUint64(units))
	t.Mul(t, f.unit)
	t.Mul(t, big.NewRat(1_000_000_000, 1))
	ns := new(big.Int).Quo(t.Num(), t.Denom())
	if !ns.IsInt64() {
		return NoTime
	}
	ns.Add(ns, new(big.Int).Mul(big.NewInt(f.offset), big.NewInt(1_000_000_000)))
	if !ns.IsInt64() {
		return NoTime
	}
	return ns.Int64()
}

func referenceNG(file []byte) ([]Record, ending) {
	var recs []Record
	var o binary.ByteOrder
	var ifaces []referenceIface
	for rest := file; len(rest) > 0; {
		isSection := len(rest) >= 4 && string(rest[:4]) == "\x0a\x0d\x0d\x0a"
		least := uint64(12)
		if isSection {
			if len(rest) < 24 {
				return recs, cut
			}
			switch string(rest[8:12]) {
			case "\x4d\x3c\x2b\x1a":
				o = binary.LittleEndian
			case "\x1a\x2b\x3c\x4d":
				o = binary.BigEndian
			default:
				return recs, bad
			}
			least = 28
		} else if len(rest) < 8 {
			return recs, cut
		}
		kind, length := o.Uint32(rest[:4]), uint64(o.Uint32(rest[4:8]))
		if length < least || length%4 != 0 {
			return recs, bad
		}
		if isSection && o.Uint16(rest[12:14]) != 1 {
			return recs, bad
		}
		read := kind == 1 || kind == 2 || kind == 3 || kind == 6
		if read && length > 524288 {
			return recs, bad
		}
		if uint64(len(rest)) < length {
			return recs, cut
		}
		if uint64(o.Uint32(rest[length-4:length])) != length {
			return recs, bad
		}
		body := rest[8 : length-4]
		rest = rest[length:]
		switch {
		case isSection:
			ifaces = nil
		case kind == 1:
			f, ok := referenceInterface(o, body)
			if !ok {
				return recs, bad
			}
			ifaces = append(ifaces, f)
		case read:
			rec, ok := referencePacket(o, kind, body, ifaces)
			if !ok {
				return recs, bad
			}
			recs = append(recs, rec)
		}
	}
	return recs, clean
}

func referenceInterface(o binary.ByteOrder, body []byte) (f referenceIface, ok bool) {
	if len(body) < 8 {
		return f, false
	}
	f.link, f.snaplen = o.Uint16(body[:2]), o.Uint32(body[4:8])
	f.unit = big.NewRat(1, 1_000_000)
	for options := body[8:]; len(options) >= 4; {
		code, size := o.Uint16(options[:2]), int(o.Uint16(options[2:4]))
		if code == 0 {
			break
		}
		options = options[4:]
		full := size
		for full%4 != 0 {
			full++
		}
		if full > len(options) {
			return f, false
		}
		switch code {
		case 9:
			if size != 1 || options[0] > 28 && options[0] < 128 {
				return f, false
			}
			base := int64(10)
			if options[0] >= 128 {
				base = 2
			}
			power := new(big.Int).Exp(big.NewInt(base), big.NewInt(int64(options[0]%128)), nil)
			f.unit = new(big.Rat).SetFrac(big.NewInt(1), power)
		case 14:
			if size != 8 {
				return f, false
			}
			f.offset = int64(o.Uint64(options[:8]))
			if f.offset > 9_223_372_036 || f.offset < -9_223_372_036 {
				return f, false
			}
		}
		options = options[full:]
	}
	return f, true
}

func referencePacket(o binary.ByteOrder, kind uint32, body []byte, ifaces []referenceIface) (rec Record, ok bool) {
	var iface, captured, length uint32
	var data []byte
	switch {
	case kind == 3 && len(body) >= 4:
		if len(ifaces) == 0 {
			return rec, false
		}
		length = o.Uint32(body[:4])
		captured = length
		if most := ifaces[0].snaplen; most != 0 && most < captured {
			captured = most
		}
		data = body[4:]
	case kind != 3 && len(body) >= 20:
		iface = o.Uint32(body[:4])
		if kind == 2 {
			iface = uint32(o.Uint16(body[:2]))
		}
		captured, length = o.Uint32(body[12:16]), o.Uint32(body[16:20])
		data = body[20:]
	default:
		return rec, false
	}
	if uint64(iface) >= uint64(len(ifaces)) || captured > 262144 || (int(captured)+3)/4*4 > len(data) {
		return rec, false
	}
	rec = Record{NoTime, hashing.LinkType(ifaces[iface].link), max(int(min(length, math.MaxInt32)), int(captured)), data[:captured]}
	if kind != 3 {
		rec.Time = ifaces[iface].nanoseconds(uint64(o.Uint32(body[4:8]))<<32 | uint64(o.Uint32(body[8:12])))
	}
	return rec, true
}

// checkReader holds the Reader to the reference, and to itself when it is fed piecewise.
func checkReader(t *testing.T, file []byte) {
	t.Helper()
	got, err := read(bytes.NewReader(file))
	pieces, errPieces := read(iotest.HalfReader(bytes.NewReader(file)))
	if !slices.EqualFunc(got, pieces, same) || endingOf(err) != endingOf(errPieces) {
		t.Fatalf("%d packets, %v; in pieces %d packets, %v", len(got), err, len(pieces), errPieces)
	}
	if len(file) >= 2 && string(file[:2]) == "\x1f\x8b" {
		return // the reference does not decompress
	}
	want, end := reference(file)
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("records\n got %v\nwant %v", got, want)
	}
	if endingOf(err) != end {
		t.Errorf("ended by %v, want %s", err, end)
	}
}

func FuzzReader(f *testing.F) {
	for _, file := range small(f) {
		f.Add(file)
		f.Add(file[:len(file)-3])
	}
	for _, file := range ngVariants() {
		f.Add(file)
	}
	// Captures made to break dissectors, where they are at hand.
	odd, _ := filepath.Glob("../../../shared/data/encapsulation/tcpdump/*")
	for _, name := range odd {
		if file, err := os.ReadFile(name); err == nil {
			f.Add(file)
		}
	}
	o := binary.LittleEndian
	head := pcapFileHead(o, 0xa1b2c3d4, 0x3000_0001|1<<26) // frames with checksums
	for minor := range byte(5) {                           // before 2.3 lengths were the other way round, and in 2.3 there are both
		old := slices.Clone(head)
		old[6] = minor
		f.Add(append(words(o, slices.Clone(old), 1, 2, 3, 9), "abc"...))
		f.Add(append(words(o, slices.Clone(old), 1, 2, 9, 3), "abc"...))
	}
	for _, length := range []uint32{2, 1<<31 - 1, 1 << 31, math.MaxUint32} { // shorter than the frame, and impossible
		f.Add(pcapRecord(o, slices.Clone(head), 1, 0, length, "four"))
	}
	for _, micros := range []uint32{1_000_000, math.MaxUint32} {
		f.Add(pcapRecord(o, slices.Clone(head), 1, micros, 1, "x"))
	}
	f.Fuzz(checkReader)
}
