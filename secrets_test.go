package hoplag

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/control"
	"github.com/hoplag/hoplag/lds"
	"github.com/hoplag/hoplag/rli"
)

// A secret as a seed and as a key, unlike anything that is not made of it.
const secretSeed = 0x8d3c5f21b96e0a47

var secretKey = [16]byte([]byte("\xc9\x1e\x7b\x53\xa4\x08\xd6\x2f\x91\x3a\xee\x65\x0b\xf7\x48\xdc"))

// tells reports whether bytes hold a secret, in either byte order, whole or by
// half of the key.
func tells(data []byte) bool {
	secrets := [][]byte{
		binary.BigEndian.AppendUint64(nil, secretSeed), binary.LittleEndian.AppendUint64(nil, secretSeed),
		slices.Clone(secretKey[:8]), slices.Clone(secretKey[8:]),
	}
	for _, half := range secrets[2:4] {
		reversed := slices.Clone(half)
		slices.Reverse(reversed)
		secrets = append(secrets, reversed)
	}
	return slices.ContainsFunc(secrets, func(s []byte) bool { return bytes.Contains(data, s) })
}

// marshalled is what synopses write after a few packets, of which nobody but
// the caller knows what they are hashed with.
func marshalled(t *testing.T, identity uint64, packet func(uint64) hashing.Packet,
	flow func(*hashing.Tuple) hashing.Flow) map[string][]byte {
	t.Helper()
	aggregate, sketch, record, receive := lda.DefaultConfig, lds.DefaultConfig,
		colate.Config{Counters: 1000, PerFlow: 10, Bits: 52, CountBits: 12, DigestBits: 12, Period: 1e9}, rli.DefaultConfig
	aggregate.Identity, sketch.Identity, record.Identity, receive.Identity = identity, identity, identity, identity
	a, s := must(lda.New(aggregate)), must(lds.New(sketch))
	r, c := must(rli.NewReceiver(receive)), must(colate.New(record))
	for i := range uint64(1000) {
		tuple := hashing.Tuple{Proto: 6, SrcPort: uint16(i)}
		p, f, now := packet(i), flow(&tuple), int64(i)*1000
		a.Update(p, now)
		s.Update(f, p, now)
		r.Update(f, 100, now)
		c.Update(f, p, now)
	}
	out := map[string][]byte{}
	for name, synopsis := range map[string]any{"lda": a, "lds": s, "rli": r, "colate": c} {
		if m, ok := synopsis.(encoding.BinaryMarshaler); ok {
			out[name] = must(m.MarshalBinary())
		}
	}
	sender := must(control.NewSender(lda.Tuner{Config: aggregate}, 1, 1400))
	out["lda control"] = must(sender.Start(nil))
	for i := range uint64(1000) {
		sender.Update(packet(i), int64(i))
	}
	out["lda control"] = must(sender.End(out["lda control"]))
	for part := range sender.Parts() {
		out["lda control"] = append(out["lda control"], part...)
	}
	return out
}

// What travels and what is stored tells nothing of the seed or the key.
func TestNoEncodingTellsTheSecret(t *testing.T) {
	sip := hashing.SipHashFromKey(secretKey)
	bySip := func(i uint64) hashing.Packet { return hashing.Packet(sip.Word(i)) }
	bySeed := func(i uint64) hashing.Packet { return hashing.Word(secretSeed, i) }
	seedFlow := func(tuple *hashing.Tuple) hashing.Flow { return tuple.Flow(secretSeed) }
	for kind, all := range map[string]map[string][]byte{
		"seed": marshalled(t, hashing.Fingerprint(secretSeed), bySeed, seedFlow),
		"key":  marshalled(t, sip.Fingerprint(), bySip, sip.Flow),
	} {
		for name, data := range all {
			if tells(data) {
				t.Errorf("%s: %d bytes hold the %s", name, len(data), kind)
			}
		}
		if len(all) < 4 {
			t.Errorf("only %d encodings were looked at", len(all))
		}
	}
	// Negative control: an identity that is the secret itself.
	for name, data := range marshalled(t, secretSeed, bySeed, seedFlow) {
		if !tells(data) {
			t.Errorf("%s: the seed in place of the identity goes unnoticed", name)
		}
	}
}

// No synopsis' configuration, all of which is encoded, has room for a secret.
func TestNoConfigHasASeed(t *testing.T) {
	seen := 0
	sources(t, func(pkg, name string, file *ast.File) {
		if !slices.Contains([]string{"lda", "lds", "rli", "colate"}, pkg) {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !strings.HasSuffix(spec.Name.Name, "Config") {
				return true
			}
			fields, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			seen++
			for _, field := range fields.Fields.List {
				for _, id := range field.Names {
					if id.Name == "Seed" || id.Name == "Key" {
						t.Errorf("%s: %s.%s", name, spec.Name.Name, id.Name)
					}
				}
			}
			return true
		})
	})
	if seen < 4 {
		t.Errorf("only %d Configs were looked at", seen)
	}
}
