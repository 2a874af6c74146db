package hoplag

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
	"github.com/hoplag/hoplag/hashing"
)

// What passed is in the stores, and a flow's delay can be asked for later.
func TestKeep(t *testing.T) {
	var stores [2]*colate.Store
	for i := range stores {
		store, err := colate.OpenStore(colate.Dir(t.TempDir()), colate.StoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		stores[i] = store
	}
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, Config{Key: testKey}, 0)
		c := colate.DefaultConfig
		c.Counters, c.Period, c.Shift = 5000, 1e9, 0
		for i, p := range []*Point{l.a.Load(), l.b} {
			if err := p.Keep(stores[i], c, func(err error) { t.Error(err) }); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.b.Keep(stores[1], c, nil); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("a second store: %v", err)
		}
		if err := l.b.Back.Keep(stores[1], colate.Config{}, nil); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("no Config: %v", err)
		}
		flow := l.b.Flow([]byte("f"))
		began := time.Now()
		for i := range 5000 {
			id := []byte{byte(i), byte(i >> 8)}
			l.a.Load().PassedIn(flow, id)
			l.all.Go(func() {
				time.Sleep(both(3)(i))
				l.b.PassedIn(flow, id)
			})
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		l.close()
		path := colate.Path{Up: stores[0], Down: stores[1]}
		r, _, err := path.Estimate(context.Background(), joint.FlowRecord{Flow: flow, Packets: 5000}, began.UnixNano()-2e9, began.UnixNano()+10e9)
		if err != nil || math.Abs(r.Mean-2.5e6) > 0.05e6 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// A store that is blocked mixes no epochs: what passes beyond the next one is
// left out, and told.
func TestBlockedStoreMixesNoEpochs(t *testing.T) {
	store, err := colate.OpenStore(colate.Dir(t.TempDir()), colate.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, Config{Key: testKey}, 0)
		p := l.a.Load()
		c := colate.DefaultConfig
		c.Counters, c.Period = 5000, 1e9
		var told []error
		if err := p.Keep(store, c, func(err error) { told = append(told, err) }); err != nil {
			t.Fatal(err)
		}
		k := p.kept.Load()
		blocked, err := k.rotation.Rotate() // as if it were being written
		if err != nil {
			t.Fatal(err)
		}
		for epoch := range int64(5) {
			var entries []entry
			for i := range int64(10) {
				entries = append(entries, entry{packet: hashing.Packet(hashing.Word(1, uint64(i))), flow: 7, time: (100+epoch)*1e9 + i})
			}
			k.add(entries)
			k.cut((101 + epoch) * 1e9)
		}
		if err := k.rotation.Release(blocked); err != nil {
			t.Fatal(err)
		}
		k.cut(105e9)
		synctest.Wait()
		l.close()
		var kept []uint64
		for r, err := range store.Epochs(100e9, 110e9) {
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, r.Packets())
		}
		if !slices.Equal(kept, []uint64{10, 10}) {
			t.Errorf("epochs of %d packets, want 10 each", kept)
		}
		if len(told) != 1 || !strings.Contains(told[0].Error(), " 30 packets") {
			t.Errorf("told %v, want 30 packets", told)
		}
	})
}

// Packets are kept in the epochs of their own times, however late a log is emptied
// or a cut comes; those that come after their epoch was cut are left out, and
// told.
func TestKeepCutsByTime(t *testing.T) {
	store, err := colate.OpenStore(colate.Dir(t.TempDir()), colate.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	synctest.Test(t, func(t *testing.T) {
		l := newLink(t, Config{Key: testKey}, 0)
		p := l.a.Load()
		c := colate.DefaultConfig
		c.Counters, c.Period = 5000, 1e9
		var told []error
		if err := p.Keep(store, c, func(err error) { told = append(told, err) }); err != nil {
			t.Fatal(err)
		}
		k := p.kept.Load()
		at := func(epoch int64, n int) (entries []entry) {
			for i := range n {
				entries = append(entries, entry{packet: hashing.Packet(hashing.Word(1, uint64(i))), flow: 7, time: epoch*1e9 + int64(i)})
			}
			return entries
		}
		k.add(at(100, 10))
		k.add(at(101, 3)) // one log is emptied sooner than another
		k.add(at(100, 5))
		k.cut(101e9 + 5e6)
		synctest.Wait() // until it is written
		k.add(at(101, 20))
		k.add(at(100, 4)) // their epoch is over
		k.add(at(102, 2))
		k.cut(102e9 + 5e6)
		synctest.Wait()
		k.add(at(103, 1)) // it is cut when the point is closed
		l.close()
		var kept []uint64
		for r, err := range store.Epochs(100e9, 110e9) {
			if err != nil {
				t.Fatal(err)
			}
			if start, _, _ := r.Span(); start != int64(100+len(kept))*1e9 {
				t.Errorf("epoch %d begins at %d", len(kept), start)
			}
			kept = append(kept, r.Packets())
		}
		if !slices.Equal(kept, []uint64{15, 23, 2, 1}) {
			t.Errorf("epochs of %d packets, want 15, 23, 2 and 1", kept)
		}
		if len(told) != 1 || !strings.Contains(told[0].Error(), " 4 packets") {
			t.Errorf("told %v, want 4 packets that came late", told)
		}
	})
}
