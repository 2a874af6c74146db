// Package spec_test holds SPEC.md to what Go does.
package spec_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/session"
	"github.com/hoplag/hoplag/lda"
)

var updateSpec = flag.Bool("update-spec", false, "write the vectors of SPEC.md anew: only with a new version")

// spec are the vectors of SPEC.md: bytes and 64-bit numbers in hexadecimal.
type spec struct {
	Digest []struct {
		Seed, Bytes, Digest string
	}
	Fingerprint []struct{ Seed, Fingerprint string }
	LDA         struct {
		Seed, Config string
		Updates      []struct {
			Digest string
			Time   int64
		}
		Record string
	}
	Control []struct{ What, Key, Packet string }
	Packets []packet
}

// A packet is an IP packet, and the 72 bytes that identify it, or why it is refused.
type packet struct{ What, Packet, Bytes, Digest, Refused string }

func word(x uint64) string { return fmt.Sprintf("%016x", x) }

func number(word string) uint64 { return must(strconv.ParseUint(word, 16, 64)) }

// compute computes the vectors, of digests and packets from their bytes.
func (s *spec) compute() {
	for i := range s.Digest {
		v := &s.Digest[i]
		v.Digest = word(uint64(hashing.Digest(number(v.Seed), must(hex.DecodeString(v.Bytes)))))
	}
	for i := range s.Fingerprint {
		s.Fingerprint[i].Fingerprint = word(hashing.Fingerprint(number(s.Fingerprint[i].Seed)))
	}
	s.makeLDA(0x0123456789abcdef)
	s.makeControl()
	for i := range s.Packets { // section 1.1, which looks into no tunnel
		v := packet{What: s.Packets[i].What, Packet: s.Packets[i].Packet}
		var f hashing.Frame
		if err := f.ParseWith(hashing.LinkRaw, must(hex.DecodeString(v.Packet)), &hashing.Tunnels{}); err != nil {
			v.Refused = strings.TrimPrefix(err.Error(), "hashing: ")
		} else {
			v.Bytes, v.Digest = hex.EncodeToString(f.Append(nil)), word(uint64(f.Digest(1)))
		}
		s.Packets[i] = v
	}
}

// makeLDA updates an aggregator of two small banks with 16 packets, of which the second and third are in the
// same cell.
func (s *spec) makeLDA(seed uint64) {
	config := lda.Config{
		Identity: hashing.Fingerprint(seed),
		Banks:    [4]lda.Bank{{Rows: 4, Shift: 1}, {Rows: 2, Shift: 3}},
		SumBits:  40, DigestBits: 12,
	}
	a := must(lda.New(config))
	s.LDA.Updates = nil
	s.LDA.Seed, s.LDA.Config = word(seed), "rows 4 at shift 1, 2 at shift 3; sums of 40 bits, digests of 12"
	for i := range uint64(16) {
		p, at := hashing.Word(seed, i), int64(1_800_000_000_000_000_000+1_000_003*i)
		a.Update(p, at)
		s.LDA.Updates = append(s.LDA.Updates, struct {
			Digest string
			Time   int64
		}{word(uint64(p)), at})
	}
	s.LDA.Record = hex.EncodeToString(must(a.MarshalBinary()))
}

func (s *spec) makeControl() {
	key := [16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	none, secret := session.Key{}, session.NewKey(key)
	s.Control = nil
	for _, c := range []struct {
		what  string
		key   *session.Key
		frame session.Frame
	}{
		{"start marker", &none, session.Frame{Kind: session.Start, Fingerprint: 1, Session: 2, Interval: 3}},
		{"end marker, clock set, tagged", &secret, session.Frame{Kind: session.End, ClockSet: true, Fingerprint: 1, Session: 2, Interval: 3}},
		{"part 1 of 2, tagged", &secret, session.Frame{Kind: session.Part, Fingerprint: 1, Session: 2, Interval: 3, Part: 1, Parts: 2,
			Payload: []byte("bytes")}},
	} {
		text := ""
		if c.key == &secret {
			text = hex.EncodeToString(key[:])
		}
		s.Control = append(s.Control, struct{ What, Key, Packet string }{c.what, text, hex.EncodeToString(c.frame.Append(nil, c.key))})
	}
}

// The vectors of SPEC.md change only with a version.
func TestSpec(t *testing.T) {
	file := filepath.Join("..", "..", "testdata", "spec.json")
	var want, got spec
	data := must(os.ReadFile(file))
	if err := errors.Join(json.Unmarshal(data, &want), json.Unmarshal(data, &got)); err != nil {
		t.Fatal(err)
	}
	if got.compute(); *updateSpec {
		if err := os.WriteFile(file, append(must(json.MarshalIndent(got, "", "\t")), '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if len(got.Digest) < 68 || len(got.Fingerprint) < 4 || len(got.Packets) < 27 {
		t.Errorf("vectors are gone: %d digests, %d fingerprints, %d packets", len(got.Digest), len(got.Fingerprint), len(got.Packets))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the vectors of SPEC.md (-want +got):\n%s", diff)
	}
}
