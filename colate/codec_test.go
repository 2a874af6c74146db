package colate

import (
	"bytes"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/hoplag/hoplag/estimate"
)

// sealed makes a record out of a body that was tampered with.
func sealed(data []byte) []byte {
	body := bytes.Clone(data[:len(data)-4])
	sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
	return append(body, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
}

func TestGolden(t *testing.T) {
	r, err := New(Config{
		Identity: 0x0102030405060708, Counters: 5, PerFlow: 2, Bits: 19, CountBits: 3,
		Shift: 10, TimeBits: 13, Threshold: 0x10000, Vectors: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Update(1, 0x8000000000000001, 1<<20)
	r.Update(1, 0x0000000080000002, 3<<20)
	r.Update(2, 0x8000000000000003, 4<<20+5)
	got := encoded(t, r.Current())
	want, err := hex.DecodeString(golden)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v; encoded\n%x, want\n%x", err, got, want)
	}
}

func TestRoundTrip(t *testing.T) {
	for name, c := range configs {
		t.Run(name, func(t *testing.T) {
			record(t, c, 1000, func(e *Epoch) {
				data := encoded(t, e)
				if int64(len(data)) != c.EncodedSize() {
					t.Errorf("%d bytes, EncodedSize says %d", len(data), c.EncodedSize())
				}
				var back Epoch
				if err := back.UnmarshalBinary(data); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(encoded(t, &back), data) {
					t.Error("decoded and encoded again, it differs")
				}
				prefix := []byte("before")
				if appended, err := e.AppendBinary(prefix); err != nil || !bytes.Equal(appended, append(prefix, data...)) {
					t.Errorf("AppendBinary: %v, or not the same bytes", err)
				}
			}, nil)
		})
	}
}

// malformed are encodings of which each is wrong in one way.
func malformed(t testing.TB) map[string][]byte {
	var good []byte
	record(t, Config{Counters: 5, PerFlow: 2, Bits: 19, Vectors: 2}, 10, func(e *Epoch) { good = encoded(t, e) }, nil)
	change := func(offset int, b byte) []byte {
		data := bytes.Clone(good)
		data[offset] = b
		return sealed(data)
	}
	const config = 5
	return map[string][]byte{
		"nothing":         nil,
		"another magic":   change(0, 'X'),
		"another version": change(4, 9),
		"checksum":        append(bytes.Clone(good[:len(good)-1]), good[len(good)-1]^1),
		"a byte too many": sealed(append(bytes.Clone(good), 0)),
		"a byte too few":  sealed(good[:len(good)-1]),
		"a huge vector":   change(config+8, 0x03),
		"beyond int":      change(config+8, 0xff),
		"a bit too many":  change(config+8, 0x80),
		"odd PerFlow":     change(config+13, 3),
		"bits":            change(config+14, 64),
		"count bits":      change(config+15, 19),
		"shift":           change(config+16, 41),
		"time bits":       change(config+17, 20),
		"no vectors":      change(config+26, 0),
		"last first":      change(config+27+8, 0x80),
		"spare bits":      change(len(good)-5, good[len(good)-5]|1),
	}
}

func TestMalformed(t *testing.T) {
	var e Epoch
	record(t, configs["paper"], 100, func(last *Epoch) {
		if err := e.UnmarshalBinary(encoded(t, last)); err != nil {
			t.Fatal(err)
		}
	}, nil)
	before := encoded(t, &e)
	refused := func(name string, data []byte) {
		if err := e.UnmarshalBinary(data); !errors.Is(err, estimate.ErrEncoding) {
			t.Errorf("%s: %v, want an ErrEncoding", name, err)
		}
	}
	for name, data := range malformed(t) {
		refused(name, data)
	}
	for n := range before {
		refused("truncated", before[:n])
	}
	if !bytes.Equal(encoded(t, &e), before) {
		t.Error("a failed decoding changed the epoch")
	}
}

func TestReadBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	data := make([]byte, 24)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	for width := 1; width <= MaxBits; width++ {
		for bit := 0; bit+width <= len(data)*8; bit++ {
			var want uint64
			for i := bit; i < bit+width; i++ {
				want = want<<1 | uint64(data[i/8]>>(7-i%8)&1)
			}
			if got := readBits(data, int64(bit), width); got != want {
				t.Fatalf("%d bits from %d: %x, want %x", width, bit, got, want)
			}
		}
	}
}

func FuzzEpoch(f *testing.F) {
	for _, data := range malformed(f) {
		f.Add(data)
	}
	for _, c := range configs {
		record(f, c, 20, func(e *Epoch) { f.Add(encoded(f, e)) }, nil)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var e Epoch
		for _, data := range [][]byte{data, sealedOrSame(data)} {
			if err := e.UnmarshalBinary(data); err != nil {
				if !errors.Is(err, estimate.ErrEncoding) {
					t.Errorf("%v is no ErrEncoding", err)
				}
				continue
			}
			if !bytes.Equal(encoded(t, &e), data) {
				t.Error("accepted what encodes otherwise")
			}
		}
	})
}

// sealedOrSame lets the fuzzer past the checksum.
func sealedOrSame(data []byte) []byte {
	if len(data) < 9 {
		return data
	}
	return sealed(data)
}

// golden is an epoch of three packets, its fields checked by hand.
const golden = "" +
	"48434c5402" + // magic "HCLT", version 2
	"0102030405060708" + // seed
	"00000005000213030a0d" + // 5 counters, 2 to a flow, of 19 bits, 3 of them the count; unit 2^10 ns, times of 13 bits
	"0000000000010000" + // threshold
	"02" + // 2 vectors
	"00000000001000000000000000400005" + // first and last packet
	"000000000000000200000000000000040000000000001400" + // vector 0: 2 packets, digests 2^63+1 and 2^63+3, times 1024 and 4096
	"000000000000000100000000800000020000000000000c00" + // vector 1: 1 packet, digest 2^31+2, time 3072
	"000000000088000000020800430000000000000000000000" + // counters 2 and 4 of vector 0 and 0 of vector 1: one packet each; 2 bits of nothing
	"a5bdebd1" // CRC-32C
