package hoplag

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
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
}

func word(x uint64) string { return fmt.Sprintf("%016x", x) }

// makeSpec computes the vectors.
func makeSpec(t *testing.T) spec {
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
	s.makeLDA(t, seeds[2])
	s.makeControl()
	return s
}

// makeLDA updates an aggregator of two small banks, of which the second and
// third of 16 packets are in the same cell.
func (s *spec) makeLDA(t *testing.T, seed uint64) {
	config := lda.Config{
		Identity: hashing.Fingerprint(seed),
		Banks:    [lda.MaxBanks]lda.Bank{{Rows: 4, Shift: 1}, {Rows: 2, Shift: 3}},
		SumBits:  40, DigestBits: 12,
	}
	a, err := lda.New(config)
	if err != nil {
		t.Fatal(err)
	}
	s.LDA.Seed, s.LDA.Config = word(seed), "rows 4 at shift 1, 2 at shift 3; sums of 40 bits, digests of 12"
	for i := range uint64(16) {
		p, at := hashing.Word(seed, i), int64(1_800_000_000_000_000_000+1_000_003*i)
		a.Update(p, at)
		s.LDA.Updates = append(s.LDA.Updates, struct {
			Digest string
			Time   int64
		}{word(uint64(p)), at})
	}
	data, err := a.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	s.LDA.Record = hex.EncodeToString(data)
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
	file := filepath.Join("testdata", "spec.json")
	got := makeSpec(t)
	if *updateSpec {
		data, err := json.MarshalIndent(got, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(data, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want spec
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the vectors of SPEC.md (-want +got):\n%s", diff)
	}
}
