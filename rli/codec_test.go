package rli_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/internal/wire"
	"github.com/hoplag/hoplag/queue"
	"github.com/hoplag/hoplag/rli"
)

func TestReferenceGolden(t *testing.T) {
	p := rli.ReferencePacket{Sequence: 0x0102030405060708, Sent: -2, Behind: 1500, Packets: 0x11121314, Injector: 0x0a0b0c0d}
	got, err := p.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	const want = "48524546" + "03" + "0102030405060708" + "fffffffffffffffe" + "05dc" + "11121314" + "0a0b0c0d" + "d85e00a9"
	if hex.EncodeToString(got) != want {
		t.Errorf("%x, want %s", got, want)
	}
	if len(got) != rli.ReferenceSize {
		t.Errorf("%d bytes, want %d", len(got), rli.ReferenceSize)
	}
	var back rli.ReferencePacket
	if err := back.UnmarshalBinary(got); err != nil || back != p {
		t.Errorf("%+v, %v", back, err)
	}
}

// resealed is the encoding with its checksum made right again.
func resealed(b []byte) []byte {
	return wire.Seal(bytes.Clone(b[:len(b)-4]), 0)
}

func TestReferenceMalformed(t *testing.T) {
	p := rli.ReferencePacket{Sequence: 5, Sent: 7, Behind: 9}
	good, _ := p.MarshalBinary()
	for n := range good {
		malformedReference(t, good[:n])
	}
	malformedReference(t, append(bytes.Clone(good), 0))
	malformedReference(t, resealed(append(bytes.Clone(good), 0)))
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		malformedReference(t, bad)
		if i < 5 { // magic and version
			malformedReference(t, resealed(bad))
		}
	}
}

func malformedReference(t *testing.T, data []byte) {
	t.Helper()
	before := rli.ReferencePacket{Sequence: 1, Sent: 2, Behind: 3}
	p := before
	if err := p.UnmarshalBinary(data); !errors.Is(err, estimate.ErrEncoding) || p != before {
		t.Errorf("%x: %v, %+v", data, err, p)
	}
}

func FuzzReferencePacket(f *testing.F) {
	p := rli.ReferencePacket{Sequence: 5, Sent: 7, Behind: 9}
	good, _ := p.MarshalBinary()
	f.Add(good)
	f.Add(good[:20])
	f.Add([]byte{})
	f.Add(resealed(append([]byte("HREG\x01"), good[5:]...)))
	f.Fuzz(func(t *testing.T, data []byte) {
		var p rli.ReferencePacket
		if err := p.UnmarshalBinary(data); err != nil {
			if !errors.Is(err, estimate.ErrEncoding) || p != (rli.ReferencePacket{}) {
				t.Fatalf("%v, %+v", err, p)
			}
			return
		}
		if again, _ := p.MarshalBinary(); !bytes.Equal(again, data) {
			t.Fatalf("%x encodes as %x", data, again)
		}
	})
}

// tiny is a receiver with little in it.
func tiny(t testing.TB) *rli.Receiver {
	c := rli.Config{
		Identity: 1, Injector: 0, Rate: 1e9, ReferenceBytes: 50, Method: rli.Linear, Tolerance: 2,
		Buffer: 4, Flows: 3, Sample: 1, Hold: 1, Inactive: 10, Active: 20, Buckets: 3, Floor: 16,
	}
	r := newReceiver(t, c)
	r.Reference(rli.ReferencePacket{Sent: 0}, 100)
	r.Update(9, 50, 200)
	r.Update(8, 75, 300)
	r.Update(9, 50, 400)
	r.Reference(rli.ReferencePacket{Sequence: 1, Sent: 340}, 500)
	return r
}

func TestReceiverGolden(t *testing.T) {
	got, err := tiny(t).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	want := "48524c49" + "05" +
		"0000000000000001" + "00000000" + "000000003b9aca00" + "00000032" + "02" + "00000002" + "00000004" + "00000003" +
		"3ff0000000000000" + "3ff0000000000000" + "000000000000000a" + "0000000000000014" + "0003" + "0000000000000010" + "0000" + "00" +
		"00000000"
	zero := "0000000000000000"
	counts := map[int]string{0: "0000000000000003", 5: "0000000000000003", 16: "0000000000000002"}
	for i := range 28 {
		if n, ok := counts[i]; ok {
			want += n
		} else {
			want += zero
		}
	}
	// The delays are 115, 130 + 200 and 145: a mean of 196, and -81, 134 and
	// -51 from there, of which 6561 + 17956 + 2601 are the squares.
	want += zero + zero + zero + zero + zero + "00000000000000c4" +
		"0001000000000003" + "00000000000000c8" + "0000000000000190" + "00000000000000af" + "0000000000000002" + zero + "00000000000069ee" +
		zero + zero + "0000000000000003" +
		"00000002" +
		"0000000000000008" + "0001000000000001" + "000000000000012c" + "000000000000012c" + "000000000000004b" + "0000000000000086" +
		zero + "0000000000004624" +
		"00000000" + "00000000" + "00000001" +
		"0000000000000009" + "0001000000000002" + "00000000000000c8" + "0000000000000190" + "0000000000000064" + "ffffffffffffff7c" +
		zero + "00000000000023ca" +
		"00000000" + "00000000" + "00000002"
	if hex.EncodeToString(got[:len(got)-4]) != want {
		t.Errorf("got\n%x, want\n%s", got, want)
	}
}

// TestCodec: what is decoded says the same, encodes the same, and can be
// merged and used on.
func TestCodec(t *testing.T) {
	events, _ := pass(t, queue.RLIConfig, adaptive(), 10000, source(t, "flows", 0.7, 2), nil)
	c := config(rli.BusyAware)
	c.Buckets, c.Floor = 100, 16
	r := receive(t, c, events)
	data, err := r.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	back := tiny(t)
	if err := back.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	if back.Config() != c || back.Counts() != r.Counts() || back.Flows() != r.Flows() {
		t.Errorf("%+v, %+v", back.Config(), back.Counts())
	}
	for f, want := range r.All() {
		got, err := back.Estimate(f)
		if err != nil || got != want {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
		p, _ := r.Quantile(f, 0.9)
		if q, err := back.Quantile(f, 0.9); err != nil || p != q {
			t.Fatalf("quantile %v, %v; want %v", q, err, p)
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
	const body = 5 + 4 // and the injector
	for name, change := range map[string]struct {
		at int
		to string
	}{
		"rate":             {body + 8, "ffffffffffffffff"},
		"reference bytes":  {body + 16, "ffffffff"},
		"method":           {body + 20, "04"},
		"tolerance":        {body + 21, "00000000"},
		"buffer":           {body + 25, "80000000"},
		"flows":            {body + 29, "00000001"},
		"too many flows":   {body + 29, "ffffffff"},
		"sample":           {body + 33, "7ff8000000000001"},
		"hold":             {body + 41, "0000000000000000"},
		"inactive":         {body + 49, "8000000000000000"},
		"buckets":          {body + 65, "0004"},
		"floor":            {body + 67, "0000000000000001"},
		"overhead":         {body + 75, "0401"},
		"tuples":           {body + 77, "02"},
		"odd histograms":   {body + 78, "00000003"},
		"total packets":    {body + 82 + 264 + 8, "0000000000000002"},
		"number of flows":  {body + 82 + 264 + 8 + 80, "00000001"},
		"a flow of no one": {body + 82 + 264 + 8 + 80 + 4 + 8, "0000000000000000"},
		"a flow twice":     {body + 82 + 264 + 8 + 80 + 4, "0000000000000009"},
		"out of order":     {body + 82 + 264 + 8 + 80 + 4, "000000000000000a"},
		"not the mean":     {body + 82 + 264 + 8 + 32, "0000000000000003"},
		"below the mean":   {body + 82 + 264 + 8 + 32, "ffffffffffffffff"},
		"8 GiB of flows":   {body + 29, "04000000"},
	} {
		bad := bytes.Clone(good)
		to, err := hex.DecodeString(change.to)
		if err != nil {
			t.Fatal(err)
		}
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
	f.Fuzz(func(t *testing.T, data []byte) {
		// The checksum is made right, else nothing gets past it; and the sizes
		// small, so that what is well-formed fits the memory.
		if len(data) > 50 {
			data = bytes.Clone(data)
			copy(data[5+29:], []byte{0, 0, 0, 9, 0, 0, 0, 9})
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
			if math.IsNaN(res.Mean) || math.IsNaN(res.StdDev) {
				t.Fatalf("flow %d: %+v", f, res)
			}
			_, _ = r.Quantile(f, 0.5)
		}
		first, _ := r.MarshalBinary()
		if err := r.UnmarshalBinary(first); err != nil {
			t.Fatal(err)
		}
		second, _ := r.MarshalBinary()
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestFlowZero: a flow's hash may be any number.
func TestFlowZero(t *testing.T) {
	r := small(t, nil)
	r.Reference(ref(0, 0), 100)
	for _, f := range []hashing.Flow{0, math.MaxUint64} {
		r.Update(f, 100, 1000)
	}
	r.Flush()
	wantMean(t, r, 0, 100, 1)
	wantMean(t, r, math.MaxUint64, 100, 1)
}
