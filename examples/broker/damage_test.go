package main

import (
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// What a broker had and has no more is seen, whether it gave the number to
// another record or not; what was deleted for its age is no damage. Who comes
// after the damage reads what there is, though its numbers were lower before.
func TestDamage(t *testing.T) {
	b, err := newBroker("127.0.0.1:0", t.TempDir(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	f, o := fleetAt(t, b.url, "-partitions 1")
	ctx := t.Context()
	w := &worker{fleet: f, config: o.config(), counts: new(counts)}
	c := newCollector(f, o.config())
	publish := func(n int) {
		for range n {
			if _, err := f.js.Publish(ctx, f.recordSubject("a", 1, 0), []byte("any")); err != nil {
				t.Fatal(err)
			}
		}
	}
	had := func(seq uint64) *jetstream.RawStreamMsg {
		m, err := f.records.GetMsg(ctx, seq)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	inspect := func(what string, m *jetstream.RawStreamMsg, want error, missing uint64) {
		t.Helper()
		before := w.counts.cutOff.Load()
		if err := w.inspect(ctx, m.Sequence, m.Time); !errors.Is(err, want) || w.counts.cutOff.Load()-before != missing {
			t.Errorf("%s: %v, %d missing; want %v, %d", what, err, w.counts.cutOff.Load()-before, want, missing)
		}
	}
	publish(6)
	third, fifth, sixth := had(3), had(5), had(6)
	inspect("a record that is there", third, nil, 0)
	if err := f.records.Purge(ctx, jetstream.WithPurgeSequence(4)); err != nil {
		t.Fatal(err)
	}
	inspect("an old record", third, nil, 0)
	if err := f.records.DeleteMsg(ctx, 5); err != nil {
		t.Fatal(err)
	}
	inspect("a record amid others", fifth, errDamaged, 1)
	if c.inspect(ctx); c.status().Damaged != 1 {
		t.Errorf("%+v, want 1 record missing", c.status())
	}
	config := f.records.CachedInfo().Config
	if err := f.js.DeleteStream(ctx, config.Name); err != nil {
		t.Fatal(err)
	}
	if _, err := f.js.CreateStream(ctx, config); err != nil {
		t.Fatal(err)
	}
	inspect("all records", sixth, errDamaged, 7)
	publish(6)
	inspect("another record of this number", sixth, errDamaged, 1)
	at, err := json.Marshal(position{third.Time, sixth.Sequence, sixth.Time})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.positions.Put(ctx, "0", at); err != nil {
		t.Fatal(err)
	}
	messages, err := w.open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer messages.Stop()
	m, err := messages.Next(jetstream.NextContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	if meta, err := m.Metadata(); err != nil || meta.Sequence.Stream != 1 {
		t.Errorf("%+v, %v; want record 1", meta, err)
	}
}
