package lds

import (
	"errors"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// victims is a few hundred flows of 50 packets, half of them with a delay of
// 1,000 ns and half of 5,000.
func victims(up, down *Sketch, update func(s *Sketch, f hashing.Flow, p hashing.Packet, t int64)) []hashing.Flow {
	var flows []hashing.Flow
	for i := range uint64(300) {
		f := hashing.Flow(hashing.Word(31, i))
		flows = append(flows, f)
		for k := range uint64(50) {
			p, sent := hashing.Word(32, i*100+k), int64(i*1000+k)
			update(up, f, p, sent)
			update(down, f, p, sent+1000+4000*int64(i%2))
		}
	}
	return flows
}

func plainUpdate(s *Sketch, f hashing.Flow, p hashing.Packet, t int64) { s.Update(f, p, t) }

// Copies that come downstream only, or that are lost, leave a flow without an
// answer or with the cells they spared; never with a wrong one.
func TestInjectedCopiesGiveNoWrongAnswer(t *testing.T) {
	c := lossless
	c.Rates = [MaxRows]float64{1, 1, 0.1, 0.01}
	up, down := mustNew(t, c), mustNew(t, c)
	flows := victims(up, down, plainUpdate)
	for k := range uint64(20) {
		down.Update(flows[0], hashing.Word(32, k), 1<<40) // an hour late
	}
	r, err := Estimate(up, down, flows[0])
	switch {
	case err != nil && !errors.Is(err, estimate.ErrNoSamples):
		t.Fatal(err)
	case err == nil && !r.MeanInterval(0.95).Contains(1000):
		t.Errorf("%+v, want 1,000 ns or no answer", r)
	}
	decoded, err := Decode(t.Context(), up, down, records(flows, nil), joint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if in := decoded.MeanInterval(0, 0.95); !in.Contains(1000) {
		t.Errorf("decoded %g ns, %+v", decoded.Mean[0], in)
	}
}

// Who holds the key hashes as the points do: a record of theirs is believed, and
// shifts every flow. A new key ends it: their records are of another identity,
// and are refused by everything that compares.
func TestForgedRecordEndsWithTheKey(t *testing.T) {
	old := lossless
	old.Identity = hashing.Fingerprint(1)
	late := func(s *Sketch, f hashing.Flow, p hashing.Packet, at int64) { s.Update(f, p, at+1e9) }
	up, forged := mustNew(t, old), mustNew(t, old)
	flows := victims(up, mustNew(t, old), plainUpdate)
	victims(mustNew(t, old), forged, late)
	var received Sketch
	if err := received.UnmarshalBinary(encode(t, forged)); err != nil {
		t.Fatal(err)
	}
	if r, err := Estimate(up, &received, flows[0]); err != nil || r.Mean != 1e9+1000 {
		t.Fatalf("a record by the key is not believed: %+v, %v", r, err)
	}
	fresh := old
	fresh.Identity = hashing.Fingerprint(2)
	now := mustNew(t, fresh)
	victims(now, mustNew(t, fresh), plainUpdate)
	_, estimated := Estimate(now, &received, flows[0])
	_, decoded := Decode(t.Context(), now, &received, records(flows, nil), joint.Options{})
	for what, err := range map[string]error{
		"Estimate": estimated, "Decode": decoded, "Merge": now.Merge(&received),
		"Add": mustAccumulate(t, fresh).Add(0, 1, now, &received),
	} {
		if !errors.Is(err, estimate.ErrMismatch) {
			t.Errorf("%s of a record by the old key: %v", what, err)
		}
	}
}
