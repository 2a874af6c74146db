// Package spec_test holds SPEC.md to what Go does.
package spec_test

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
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

// A packet is an IP packet, and the 72 bytes that identify it, or why it is
// refused.
type packet struct{ What, Packet, Bytes, Digest, Refused string }

func word(x uint64) string { return fmt.Sprintf("%016x", x) }

// makeSpec computes the vectors.
func makeSpec() spec {
	var s spec
	seeds := []uint64{0, 1, 0x0123456789abcdef, 0x6a09e667f3bcc909}
	text := []byte("The quick brown fox jumps over the lazy dog, and a packet takes a while from here to there.")
	for _, seed := range seeds {
		for _, n := range []int{0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 32, 33, 40, 48, 49, 72, len(text)} {
			s.Digest = append(s.Digest, struct{ Seed, Bytes, Digest string }{
				word(seed), hex.EncodeToString(text[:n]), word(uint64(hashing.Digest(seed, text[:n]))),
			})
		}
		s.Fingerprint = append(s.Fingerprint, struct{ Seed, Fingerprint string }{word(seed), word(hashing.Fingerprint(seed))})
	}
	s.makeLDA(seeds[2])
	s.makeControl()
	s.makePackets()
	return s
}

// makePackets parses the packets of section 1.1, and looks into no tunnel.
func (s *spec) makePackets() {
	const (
		hosts = "20010db8000000000000000000000001 20010db8000000000000000000000002 "
		udp   = "0035 1000 0018 beef 000102030405060708090a0b0c0d0e0f "
		tcp   = "03e8 01bb 01020304 05060708 5018 2000 cafe 0000 68692e2e 61667465 "
		ip4   = " 1234 4000 40 11 0000 0a000001 0a000002 "
		route = " 01 00 0000 20010db800000000000000000000000a 20010db800000000000000000000000b "
	)
	for _, p := range []struct{ what, packet string }{
		{"TCP", "45 00 0030 1234 4000 40 06 0000 0a000001 0a000002 " + tcp},
		{"TCP with options, which are left out", "45 00 003c 1234 4000 40 06 0000 0a000001 0a000002 " +
			"03e8 01bb 01020304 05060708 8018 2000 cafe 0000 0101080a 00000001 00000002 68692e2e 61667465"},
		{"TCP, an acknowledgement in a padded frame", "45 00 0028 1234 4000 40 06 0000 0a000001 0a000002 " + tcp},
		{"UDP", "45 00 002c" + ip4 + udp},
		{"UDP with IPv4 options", "46 00 0030" + ip4 + "94040000 " + udp},
		{"UDP, total length 0", "45 00 0000" + ip4 + udp},
		{"UDP, cut by the capture", "45 00 05dc" + ip4 + udp[:20]},
		{"ICMP", "45 00 002c 1234 0000 40 01 0000 0a000001 0a000002 0800 1234 0001 0002 000102030405060708090a0b0c0d0e0f"},
		{"first fragment", "45 00 002c 1234 2000 40 11 0000 0a000001 0a000002 " + udp},
		{"later fragment", "45 00 002c 1234 2003 40 11 0000 0a000001 0a000002 " + udp},
		{"AH in IPv4, a protocol", "45 00 0044 1234 0000 40 33 0000 0a000001 0a000002 " +
			"11 04 0000 00000001 00000002 00000003 00000004 00000005 " + udp},
		{"IPv6", "60012345 0018 11 40 " + hosts + udp},
		{"hop-by-hop and destination options", "60000000 0028 00 40 " + hosts + "3c 00 010400000000 11 00 010400000000 " + udp},
		{"AH in IPv6, walked over", "60000000 0030 33 40 " + hosts + "11 04 0000 00000001 00000002 00000003 00000004 00000005 " + udp},
		{"IPv6 fragment", "60000000 0020 2c 40 " + hosts + "11 00 0009 00000007 " + udp},
		{"route of type 0 under way", "60000000 0040 2b 40 " + hosts + "11 04 00 01" + route[3:] + udp},
		{"segment route under way", "60000000 0040 2b 40 " + hosts + "11 04 04 01" + route + udp},
		{"segment route at its end", "60000000 0040 2b 40 " + hosts + "11 04 04 00" + route + udp},
		{"no next header", "60000000 0000 3b 40 " + hosts},
		{"payload length 0", "60000000 0000 11 40 " + hosts + udp},
		{"ESP, a protocol", "60000000 0018 32 40 " + hosts + udp},
		{"version 5", "55 00 002c" + ip4 + udp},
		{"header length 16", "44 00 002c" + ip4 + udp},
		{"total length below the header's", "45 00 0013" + ip4 + udp},
		{"extension header beyond the packet", "60000000 0008 00 40 " + hosts + "11 01 010c 000000000000000000000000"},
		{"17 extension headers", "60000000 00a0 3c 40 " + hosts + strings.Repeat("3c 00 010400000000 ", 16) + "11 00 010400000000 " + udp},
		{"cut before the ports", "45 00 002c" + ip4 + "0035"},
	} {
		data := must(hex.DecodeString(strings.ReplaceAll(p.packet, " ", "")))
		v := packet{What: p.what, Packet: hex.EncodeToString(data)}
		var f hashing.Frame
		if err := f.ParseWith(hashing.LinkRaw, data, &hashing.Tunnels{}); err != nil {
			v.Refused = strings.TrimPrefix(err.Error(), "hashing: ")
		} else {
			v.Bytes, v.Digest = hex.EncodeToString(f.Append(nil)), word(uint64(f.Digest(1)))
		}
		s.Packets = append(s.Packets, v)
	}
}

// makeLDA updates an aggregator of two small banks, of which the second and
// third of 16 packets are in the same cell.
func (s *spec) makeLDA(seed uint64) {
	config := lda.Config{
		Identity: hashing.Fingerprint(seed),
		Banks:    [lda.MaxBanks]lda.Bank{{Rows: 4, Shift: 1}, {Rows: 2, Shift: 3}},
		SumBits:  40, DigestBits: 12,
	}
	a := must(lda.New(config))
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

// The vectors of SPEC.md do not change but with a version.
func TestSpec(t *testing.T) {
	file := filepath.Join("..", "..", "testdata", "spec.json")
	got := makeSpec()
	if *updateSpec {
		data := must(json.MarshalIndent(got, "", "\t"))
		if err := os.WriteFile(file, append(data, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var want spec
	if err := json.Unmarshal(must(os.ReadFile(file)), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the vectors of SPEC.md (-want +got):\n%s", diff)
	}
}
