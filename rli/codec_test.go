package rli_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/internal/wire"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

func TestReferenceGolden(t *testing.T) {
	j := must(rli.NewInjector(rli.InjectorConfig{Every: 1}))
	p := rli.ReferencePacket{Sequence: 0x0102030405060708, Sent: -12, Behind: 1500, Packets: 0x11121314, Injector: 0x0a0b0c0d}
	got := j.Append(nil, p, -2)
	const want = "48524546" + "04" + "0102030405060708" + "fffffffffffffffe" + "05dc" + "0000000a" + "11121314" + "0a0b0c0d"
	if hex.EncodeToString(got[:len(got)-4]) != want {
		t.Errorf("%x, want %s", got, want)
	}
	if len(got) != rli.ReferenceSize {
		t.Errorf("%d bytes, want %d", len(got), rli.ReferenceSize)
	}
	// A packet of so long ago is not named.
	if got = j.Append(nil, p, 1<<33); hex.EncodeToString(got[13:27]) != "0000000200000000"+"0000"+"00000000" {
		t.Errorf("%x", got)
	}
}

// resealed is the encoding with its checksum made right again.
func resealed(b []byte) []byte {
	return wire.Seal(bytes.Clone(b[:len(b)-4]), 0)
}

// FuzzReferencePacket: bytes that are not a reference are refused, and count only as a departure.
func FuzzReferencePacket(f *testing.F) {
	j := must(rli.NewInjector(rli.InjectorConfig{Every: 1}))
	good := j.Append(nil, rli.ReferencePacket{Sequence: 5, Sent: 7, Behind: 9}, 7)
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		f.Add(good[:i])
		f.Add(bad)
		f.Add(resealed(bad))
	}
	f.Add(append(bytes.Clone(good), 0))
	f.Add(resealed(append(bytes.Clone(good), 0)))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := small(t, nil)
		err := r.Accept(data, 10)
		well := len(data) == len(good) && bytes.Equal(data[:5], good[:5]) && bytes.Equal(resealed(data), data)
		if well != (err == nil) || !well && (!errors.Is(err, estimate.ErrEncoding) || r.Counts() != (rli.Counts{Refused: 1})) {
			t.Errorf("%x: %v, %+v", data, err, r.Counts())
		}
	})
}

// tiny is a receiver with little in it.
func tiny(t testing.TB) *rli.Receiver {
	c := rli.Config{Identity: 1, Rate: 1e9, ReferenceBytes: 50, Method: rli.Linear, Buffer: 4, Flows: 3}
	r := newReceiver(t, c)
	r.Reference(rli.ReferencePacket{Sent: 0}, 100)
	r.Update(9, 50, 200)
	r.Update(8, 75, 300)
	r.Update(9, 50, 400)
	r.Reference(rli.ReferencePacket{Sequence: 1, Sent: 340}, 500)
	return r
}

func TestReceiverGolden(t *testing.T) {
	got := must(tiny(t).MarshalBinary())
	want := "48524c49" + "12"
	zero := "0000000000000000"
	for i, words := range []map[int]string{
		{0: "01", 1: "3b9aca00", 3: "32", 4: "01", 5: "04", 6: "03"}, // the Config
		{0: "03", 3: "03", 9: "02"},                                  // packets, linear, references
		{14: "404e000000000000", 15: "401ccccccccccccd"},             // from a delay of 100 to one of 160; 7.2, a ten-thousandth of 9,000 bytes
		// The delays are 115, 130 + 200 and 145: a mean of 196, and -81, 134 and -51 from there, of which 6561
		// + 17956 + 2601 are the squares, and 2 too much for the rest.
		{0: "0001000000000003", 1: "c4", 2: "02", 3: "40da7b8000000000"},
		{0: "02"},
		{0: "08", 1: "0001000000000001", 2: "014a", 6: "60"}, // one packet that came before lines were tested
		{0: "09", 1: "0001000000000002", 2: "82", 4: "407c200000000000", 6: "a0"},
	} {
		for k := range []int{7, 14, 17, 6, 1, 7, 7}[i] {
			want += zero[:16-len(words[k])] + words[k]
		}
	}
	if hex.EncodeToString(got[:len(got)-4]) != want {
		t.Errorf("got\n%x, want\n%s", got, want)
	}
}

// TestCodec: a decoded receiver gives the same answers and the same encoding, and can be merged and used
// further.
func TestCodec(t *testing.T) {
	events := pass(t, queue.RLIConfig, adaptive(), 10000, source(t, "flows", 0.7, 2), nil)
	c := config(rli.Auto)
	r := receive(t, c, events)
	data := must(r.MarshalBinary())
	back := newReceiver(t, c) // whose Config may take so much
	if err := back.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	if back.Config() != c || back.Counts() != r.Counts() || flowsOf(back) != flowsOf(r) {
		t.Errorf("%+v, %+v", back.Config(), back.Counts())
	}
	for f, want := range r.All() {
		got, err := back.Estimate(f)
		if err != nil || !same(got.Delay, want.Delay) {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
	}
	again, _ := back.MarshalBinary()
	if !bytes.Equal(again, data) {
		t.Error("another encoding of the decoded")
	}
	if appended, _ := back.AppendBinary([]byte("x")); !bytes.Equal(appended[1:], data) {
		t.Error("appended, another encoding")
	}
	twice := receive(t, c, events)
	if err := twice.Merge(back); err != nil {
		t.Fatal(err)
	}
	one, _ := r.Total()
	if two, _ := twice.Total(); two.N != 2*one.N || two.Mean != one.Mean {
		t.Errorf("%+v and the same again is %+v", one, two)
	}
	tell(back, events)
	if res, err := back.Total(); err != nil || res.N < 2*one.N*9/10 {
		t.Errorf("used on: %+v, %v", res, err)
	}
}

func TestReceiverMalformed(t *testing.T) {
	good, _ := tiny(t).MarshalBinary()
	fail := func(data []byte) {
		t.Helper()
		r := tiny(t)
		err := r.UnmarshalBinary(data)
		after, _ := r.MarshalBinary()
		if !errors.Is(err, estimate.ErrEncoding) || !bytes.Equal(after, good) {
			t.Errorf("%d bytes: %v", len(data), err)
		}
	}
	for n := range good {
		fail(good[:n])
	}
	for n := 9; n < len(good); n++ {
		fail(resealed(good[:n]))
	}
	fail(append(bytes.Clone(good), 0))
	fail(resealed(append(bytes.Clone(good), 0)))
	const body = 5
	const total = body + 8*(7+14+17)
	for name, change := range map[string]struct {
		at int
		to string
	}{
		"rate":             {body + 8, "ffffffffffffffff"},
		"injector":         {body + 16, "0000000100000000"},
		"reference bytes":  {body + 24, "ffffffff"},
		"method":           {body + 39, "03"},
		"buffer":           {body + 40, "80000000"},
		"flows":            {body + 55, "01"},
		"too many flows":   {body + 52, "ffffffff"},
		"what is learned":  {body + 8*(7+14) + 16, "7ff0000000000000"},
		"total packets":    {total, "0000000000000002"},
		"total squares":    {total + 24, "bff0000000000000"},
		"total error":      {total + 32, "bff0000000000000"},
		"number of flows":  {total + 48, "00000001"},
		"a flow of no one": {total + 64, "0000000000000000"},
		"a flow twice":     {total + 56, "0000000000000009"},
		"out of order":     {total + 56, "000000000000000a"},
		"not the mean":     {total + 16, "0000000000000003"},
		"below the mean":   {total + 16, "ffffffffffffffff"},
		"8 GiB of flows":   {body + 52, "04000000"},
	} {
		bad := bytes.Clone(good)
		to := must(hex.DecodeString(change.to))
		if copy(bad[change.at:], to); bytes.Equal(bad, good) {
			t.Errorf("%s: not changed", name)
		}
		t.Run(name, func(t *testing.T) { fail(resealed(bad)) })
	}
}

func FuzzReceiver(f *testing.F) {
	good, _ := tiny(f).MarshalBinary()
	f.Add(good)
	for n := 0; n < len(good); n += 16 {
		f.Add(good[:n])
	}
	forged := bytes.Clone(good) // says 200 references that stand for no packet
	for i, x := range []string{"\x40\x69", "\x3f\xf0", "\x3f\xf0"} {
		copy(forged[5+8*(7+14+i):], x)
	}
	f.Add(forged)
	f.Fuzz(func(t *testing.T, data []byte) {
		// The checksum is made right, else nothing gets past it; and the sizes small, so that what is
		// well-formed fits the memory.
		if len(data) > 70 {
			data = bytes.Clone(data)
			copy(data[5+40:], []byte{0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 9})
			data = resealed(data)
		}
		r := tiny(t)
		if err := r.UnmarshalBinary(data); err != nil {
			after, _ := r.MarshalBinary()
			if !errors.Is(err, estimate.ErrEncoding) || !bytes.Equal(after, good) {
				t.Fatal(err)
			}
			return
		}
		for f, res := range r.All() {
			if math.IsNaN(res.Mean) || math.IsNaN(res.StdDev) || math.IsNaN(res.MeanInterval(0.95).High) {
				t.Fatalf("flow %d: %+v", f, res)
			}
		}
		first, _ := r.MarshalBinary()
		if err := r.UnmarshalBinary(first); err != nil {
			t.Fatal(err)
		}
		second, _ := r.MarshalBinary()
		if !bytes.Equal(first, second) {
			t.Fatalf("%x, then %x", first, second)
		}
	})
}
