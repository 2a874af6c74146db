package colate

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"runtime"
	"slices"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/wire"
)

// sealed makes a record out of a body that was tampered with.
func sealed(data []byte) []byte {
	body := bytes.Clone(data[:len(data)-4])
	sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
	return append(body, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
}

// The fields of an epoch of three packets, checked by hand.
func TestGolden(t *testing.T) {
	r, err := New(Config{
		Identity: 0x0102030405060708, Counters: 5, PerFlow: 2, Bits: 28, CountBits: 4, DigestBits: 8, Shift: 10, Period: 0x400000,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Update(1, 0x8000000000000001, 1<<20)
	r.Update(1, 0x3000000080000002, 3<<20)
	r.Update(1, 0xa000000000000003, 2<<20+5)
	const want = "" +
		"48434c5408" + // magic "HCLT", version 8
		"0102030405060708" + // identity
		"000000050002" + "1c04080a" + // 5 counters, 2 to a flow, of 28 bits, 4 of them the count, 8 the digest; unit 2^10 ns
		"0000000000400000" + "0000000000000000" + "00" + // period; no samples, no room for any; not folded
		"0000000000000000" + "0000000000000003" + "0000000000000000" + // start, packets, limit of no samples
		"00000010" + "038cc005" + // one block of 16 bytes; CRC-32C
		"00000005" + "000b" + // 5 rows; counts as so many ones, sums of 11 bits and half the length of the count
		// 10 00110000 100000000000: one packet, digest 0x30, 1,024 units after the middle; 0, 0, 0: three
		// counters without; 110 00100000 011111111111: two packets, of digests 0x80 and 0xa0 all but what was
		// carried, that come to 1,024 units less than twice the middle and the carry.
		"8c20006207ff" + "9cb4b710"
	got := hex.EncodeToString(encoded(t, r))
	if got != want {
		t.Errorf("encoded\n%s, want\n%s", got, want)
	}
}

func TestRoundTrip(t *testing.T) {
	for name, c := range configs {
		for _, packets := range []int{0, 1, 30, 1000, 20_000} {
			r, _ := New(c)
			some(c, packets, r.Update)
			data := encoded(t, r)
			var back Recorder
			if err := back.UnmarshalBinary(data); err != nil {
				t.Fatalf("%s, %d packets: %v", name, packets, err)
			}
			if !bytes.Equal(encoded(t, &back), data) || back.config != c || back.packets != uint64(packets) {
				t.Errorf("%s, %d packets: decoded and encoded again, it differs", name, packets)
			}
			for i := range back.words {
				if back.word(i) != r.word(i) {
					t.Fatalf("%s, %d packets: counter %d is %#x, want %#x", name, packets, i, back.word(i), r.word(i))
				}
			}
			prefix := []byte("before")
			if appended, err := r.AppendBinary(prefix); err != nil || !bytes.Equal(appended, append(prefix, data...)) {
				t.Errorf("%s: AppendBinary: %v, or not the same bytes", name, err)
			}
			// A decoded recorder goes on.
			back.Update(1, 2, 3)
			r.Update(1, 2, 3)
			if !bytes.Equal(encoded(t, &back), encoded(t, r)) {
				t.Errorf("%s: a decoded recorder does not go on as the other does", name)
			}
		}
	}
}

// An epoch takes at most 12 bits a packet, from 100 packets a second to 70,000.
func TestSizes(t *testing.T) {
	long(t)
	for _, rate := range []int{100, 300, 1000, 3000, 10_000, 70_000} {
		data := encoded(t, crowded(t, DefaultConfig, 60*rate).packed())
		bits := float64(8*len(data)) / float64(60*rate)
		if t.Logf("%d packets/s: %.1f bits a packet", rate, bits); bits > 12 {
			t.Errorf("%d packets/s: %.1f bits a packet", rate, bits)
		}
	}
}

// malformed are encodings, each wrong in one way.
func malformed(t testing.TB) map[string][]byte {
	c := Config{Counters: 5, PerFlow: 2, Bits: 24, CountBits: 4, DigestBits: 4, Period: 1000}
	r, _ := New(c)
	some(c, 10, func(f hashing.Flow, p hashing.Packet, now int64) { r.Update(f, p, 5_000_000+now/1000) })
	good := encoded(t, r)
	head := c.headSize(0)
	change := func(offset int, b byte) []byte {
		return append(sealed(append(append(bytes.Clone(good[:offset]), b), good[offset+1:head]...)), good[head:]...)
	}
	block := func(data []byte) []byte { return append(bytes.Clone(good[:head]), sealed(data)...) }
	tail := func(offset int, b byte) []byte {
		data := bytes.Clone(good[head:])
		data[offset] = b
		return block(data)
	}
	const config = 5
	return map[string][]byte{
		"nothing":               nil,
		"another magic":         change(0, 'X'),
		"another version":       change(4, 9),
		"an older version":      change(4, 7),
		"checksum of the head":  append(append(bytes.Clone(good[:head-1]), good[head-1]^1), good[head:]...),
		"checksum of the block": append(bytes.Clone(good[:len(good)-1]), good[len(good)-1]^1),
		"a byte too many":       append(bytes.Clone(good), 0),
		"a byte too few":        good[:len(good)-1],
		"a huge vector":         change(config+8, 0x03),
		"beyond int":            change(config+8, 0xff),
		"no counters":           change(config+11, 0),
		"PerFlow":               change(config+13, 1),
		"bits":                  change(config+14, 65),
		"count bits":            change(config+15, 25),
		"digest bits":           change(config+16, 3),
		"shift":                 change(config+17, 41),
		"no period":             change(config+24, 0xfd),
		"start not aligned":     change(config+33, good[config+33]+1),
		"no packets":            change(config+41, 0),
		"length":                change(head-5, good[head-5]+1),
		"rows":                  tail(3, 4),
		"parameter of counts":   tail(4, 5),
		"base of sums":          tail(5, 65),
		"wasteful base":         tail(5, 16),
	}
}

func TestMalformed(t *testing.T) {
	c := configs["samples"]
	r, _ := New(c)
	some(c, 100, r.Update)
	before := encoded(t, r)
	refused := func(name string, data []byte) {
		if err := r.UnmarshalBinary(data); !errors.Is(err, estimate.ErrEncoding) {
			t.Errorf("%s: %v, want an ErrEncoding", name, err)
		}
	}
	for name, data := range malformed(t) {
		refused(name, data)
	}
	for n := range before {
		refused("truncated", before[:n])
	}
	for n := range before {
		changed := bytes.Clone(before)
		changed[n] ^= 1 << (n % 8)
		refused("a bit flipped", changed)
	}
	if !bytes.Equal(encoded(t, r), before) {
		t.Error("a failed decoding changed the epoch")
	}
}

// Neither a head alone, with blocks of no length, nor a block that claims a row for each bit, of more rows than
// the head has, makes a recorder allocate them.
func TestLittleAsksForLittle(t *testing.T) {
	asks := func(what string, data []byte) {
		r, before, after := Recorder{}, runtime.MemStats{}, runtime.MemStats{}
		runtime.ReadMemStats(&before)
		err := r.UnmarshalBinary(data)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, estimate.ErrEncoding) || got > uint64(8*len(data)) {
			t.Errorf("%s, %d bytes: %v after %d bytes of memory", what, len(data), err, got)
		}
	}
	small, large := configs["samples"], DefaultConfig
	large.Counters, small.Samples = maxCounters, blockCounters
	r, _ := New(small)
	some(small, 100, r.Update)
	good := encoded(t, r)
	alone := append(bytes.Clone(good[:wire.Overhead+fixedSize-4]), make([]byte, 4+4*large.blocks())...)
	binary.BigEndian.PutUint32(alone[13:], maxCounters)
	asks("head", sealed(alone))
	var h, other epochHead
	h.open(good)
	for what, block := range map[string]int{"counters": 0, "samples": h.config.blocks()} {
		zeros := sealed(append(binary.BigEndian.AppendUint32(nil, 1<<20), make([]byte, 2+1<<17+4)...))
		head := bytes.Clone(good[:h.offsets[0]])
		binary.BigEndian.PutUint32(head[len(head)-4*(len(h.offsets)-block):], uint32(len(zeros)))
		asks(what, slices.Concat(sealed(head), good[h.offsets[0]:h.offsets[block]], zeros, good[h.offsets[block+1]:]))
	}
	few := bytes.Clone(good[:h.offsets[0]]) // more samples than their block has bits
	binary.BigEndian.PutUint32(few[60:], blockCounters)
	if err := other.open(sealed(few)); h.sampled == 0 || h.sampled > blockCounters || !errors.Is(err, estimate.ErrEncoding) {
		t.Errorf("%d samples in a block of %d: %v", blockCounters, h.sampled, err)
	}
}

// Whatever the bytes, what is accepted is what would be encoded; and what is allocated is bounded by what is there.
func FuzzEpoch(f *testing.F) {
	for _, data := range malformed(f) {
		f.Add(data)
	}
	for _, c := range configs {
		r, _ := New(c)
		some(c, 20, r.Update)
		f.Add(encoded(f, r))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, resealed(data)} {
			var r Recorder
			if err := r.UnmarshalBinary(data); err != nil {
				if !errors.Is(err, estimate.ErrEncoding) {
					t.Errorf("%v is no ErrEncoding", err)
				}
				continue
			}
			if !bytes.Equal(encoded(t, &r), data) {
				t.Error("accepted what encodes otherwise")
			}
		}
	})
}

// foldAt is where an epoch says how its counters are folded.
const foldAt = 39

// resealed lets the fuzzer past all checksums of an epoch.
func resealed(data []byte) []byte {
	if len(data) < wire.Overhead+fixedSize {
		return data
	}
	c := Config{Counters: int(binary.BigEndian.Uint32(data[13:])), fold: min(data[foldAt], maxFold)}
	n := c.headSize(int(binary.BigEndian.Uint32(data[60:])))
	if n < wire.Overhead || n > len(data) {
		return data
	}
	fixed := sealed(data[:n])
	var h epochHead
	if err := h.open(fixed); err != nil || h.size() != int64(len(data)) {
		return data
	}
	for i, end := range h.offsets[1:] {
		fixed = append(fixed, sealed(data[h.offsets[i]:end])...)
	}
	return fixed
}
