package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
)

// ngVariants returns pcapng files that each use one thing.
func ngVariants() map[string][]byte {
	files := map[string][]byte{}
	for _, o := range byteOrders {
		resolution := func(v byte) []byte { return ngOption(o, 9, v) }
		offset := func(s int64) []byte { return ngOption(o, 14, o.AppendUint64(nil, uint64(s))...) }
		comment := ngOption(o, 1, []byte("a comment")...)
		end := ngOption(o, 0)

		b := ngSection(o, nil, append(comment, end...)...)
		b = ngIface(o, b, 1, 0, resolution(9)...)
		b = ngIface(o, b, 101, 0, append(comment, resolution(128+20)...)...)
		b = ngIface(o, b, 113, 0, append(offset(1_700_000_000), end...)...)
		b = ngEnhanced(o, b, 2, 5, 5, "third", append(comment, end...)...)
		b = ngEnhanced(o, b, 0, 6, 6, "first", comment...)
		b = ngEnhanced(o, b, 1, 7<<20, 7, "second")
		files["interfaces "+o.String()] = b

		b = ngIface(o, ngSection(o, nil), 1, 4)
		b = ngSimple(o, b, 100, "four")
		b = ngSimple(o, b, 3, "thr")
		files["simple "+o.String()] = b

		// What follows the end of the options does not count.
		b = ngIface(o, ngSection(o, nil), 1, 0, append(end, resolution(9)...)...)
		b = ngEnhanced(o, b, 0, 1, 1, "x")
		files["after the end "+o.String()] = b
	}
	// A section of the other order, with interfaces of its own.
	b := bytes.Clone(files["interfaces LittleEndian"])
	b = append(b, files["interfaces BigEndian"]...)
	files["sections"] = ngIface(binary.LittleEndian, ngSection(binary.LittleEndian, b), 12, 0)
	return files
}

func TestNGErrors(t *testing.T) {
	o := binary.LittleEndian
	section := slices.Clip(ngSection(o, nil))
	iface := slices.Clip(ngIface(o, section, 1, 0))
	edit := func(file []byte, at int, v byte) []byte {
		file = bytes.Clone(file)
		file[at] = v
		return file
	}
	packet := ngEnhanced(o, iface, 0, 1, 1, "x")
	head := len(iface)
	checkRefused(t, ErrFormat, []refusal{
		{"byte order", edit(section, 8, 0), "byte-order magic 003c2b1a"},
		{"version", edit(section, 12, 2), "version 2.0"},
		{"section length", edit(section, 4, 24), "block length 24, want"},
		{"section trailer", edit(section, 24, 32), "28 at its head, 32 at its end"},
		{"second section", append(section, edit(section, 8, 0)...), "section header: malformed"},
		{"block length 0", words(o, section, 77, 0), "type 0x4d: malformed capture: block length 0, want"},
		{"block length odd", words(o, section, 77, 15, 0, 0), "block length 15, want a multiple of 4"},
		{"unknown block's trailer", words(o, section, 77, 16, 0, 20), "16 at its head, 20 at its end"},
		{"packet's trailer", edit(packet, len(packet)-4, 1), "at its end"},
		{"short packet", ngBlock(o, iface, 6, make([]byte, 16)), "too short for its type"},
		{"short obsolete packet", ngBlock(o, iface, 2, make([]byte, 16)), "too short for its type"},
		{"short simple packet", ngBlock(o, iface, 3, nil), "too short for its type"},
		{"short interface", ngBlock(o, section, 1, make([]byte, 4)), "too short for its type"},
		{"no interface", ngEnhanced(o, section, 0, 1, 1, "x"), "packet of interface 0, the section has described 0"},
		{"no such interface", ngEnhanced(o, iface, 1<<32-1, 1, 1, "x"), "interface 4294967295"},
		{"no interface, simple", ngSimple(o, section, 1, "x"), "interface 0"},
		{"interface of the section before", ngEnhanced(o, ngSection(o, iface), 0, 1, 1, "x"), "described 0"},
		{"captured length beyond the block", edit(packet, head+20, 5), "captured length 5 in a block with room for 4"},
		{"hostile captured length", edit(packet, head+23, 0xff), "captured length 4278190081"},
		{"simple packet beyond the block", ngSimple(o, iface, 5, "four"), "captured length 5"},
		{"a block too large", words(o, iface, 6, bufferSize+4), "block of 524292 bytes"},
		{"resolution of two bytes", ngIface(o, section, 1, 0, ngOption(o, 9, 6, 6)...), "resolution of 2 bytes"},
		{"resolution too fine", ngIface(o, section, 1, 0, ngOption(o, 9, 29)...), "10^-29"},
		{"offset of four bytes", ngIface(o, section, 1, 0, ngOption(o, 14, 0, 0, 0, 0)...), "offset of 4 bytes"},
		{"offset of an age", ngIface(o, section, 1, 0, ngOption(o, 14, 0, 0, 0, 0, 0, 0, 1, 0)...), "offset of 281474976710656 s"},
		{"option beyond the block", ngIface(o, section, 1, 0, 1, 0, 5, 0, 0, 0, 0, 0), "option 1 of 5 bytes, the block has 4 left"},
	})
}

func TestNGInterfacesAreBounded(t *testing.T) {
	o := binary.LittleEndian
	for n, want := range map[int]error{maxInterfaces: nil, maxInterfaces + 1: ErrFormat} {
		if _, err := read(endless(ngSection(o, nil), ngIface(o, nil, 1, 0), n)); !errors.Is(err, want) {
			t.Errorf("%d interfaces: %v", n, err)
		}
	}
}
