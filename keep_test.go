package hoplag

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/joint"
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
		l := newLink(t, Config{Key: "k"}, 0)
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
