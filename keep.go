package hoplag

import (
	"fmt"
	"math"
	"sync"

	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// Keep keeps what passes this way in a store, flow by flow, so that you can
// ask for the delays of any flow months later; see package colate. Each epoch
// of the Config goes there when it ends, until the point is closed. The
// point's Key sets the Config's Identity. The store syncs and removes what is
// old by itself: see [colate.StoreOptions]. What it refuses is lost, and so is
// what passes while it is blocked for longer than an epoch; Keep then calls
// failed, if it is not nil, from another goroutine.
//
// Call Keep before anything passes, and once per direction. The error wraps
// [estimate.ErrConfig].
func (d *Direction) Keep(store *colate.Store, c colate.Config, failed func(error)) error {
	c.Identity = hashing.Fingerprint(d.seed)
	rotation, err := colate.NewRotation(c)
	if err != nil {
		return fmt.Errorf("hoplag: %w", err)
	}
	k := &keeper{rotation: rotation, next: must(colate.New(c)), store: store, failed: failed, period: c.Period, from: math.MinInt64}
	if !d.kept.CompareAndSwap(nil, k) {
		return fmt.Errorf("hoplag: %w: the direction has a store already", estimate.ErrConfig)
	}
	for _, s := range d.shards {
		s.mu.Lock()
		s.keeper = k
		s.mu.Unlock()
	}
	return nil
}

// A keeper records for a store.
type keeper struct {
	mu       sync.Mutex
	rotation *estimate.Rotation[*colate.Recorder]
	next     *colate.Recorder // what passed after the epoch's end and before the cut
	store    *colate.Store
	failed   func(error)
	writing  sync.WaitGroup
	period   int64
	from     int64 // when the epoch began
	late     int   // packets of earlier epochs since the last cut
	early    int   // packets of later epochs than the next
}

// add records the packets with a named flow, each in its own epoch: logs are
// emptied in any order, and a cut comes some time after the end.
func (k *keeper) add(entries []entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.rotation.Active()
	for i := range entries {
		e := &entries[i]
		switch {
		case e.flow == 0:
		case e.time < k.from:
			k.late++
		case r.Due(e.time) && k.next.Due(e.time):
			k.early++ // the store is blocked
		case r.Due(e.time):
			k.next.Update(e.flow, e.packet, e.time)
		default:
			r.Update(e.flow, e.packet, e.time)
		}
	}
}

// cut ends the epoch, if it is over, and starts writing it.
func (k *keeper) cut(now int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.rotation.Active().Due(now) {
		return
	}
	done, err := k.rotation.Rotate()
	if err != nil {
		return // the store is slow: the epoch is cut later
	}
	must(0, k.rotation.Active().Merge(k.next))
	k.next.Reset()
	k.from = now - now%k.period
	if start, _, ok := k.rotation.Active().Span(); ok {
		k.from = min(k.from, start)
	}
	late, early := k.late, k.early
	k.late, k.early = 0, 0
	k.writing.Go(func() {
		k.write(done)
		must(0, k.rotation.Release(done))
		k.tell(late, early)
	})
}

// write writes an epoch to the store.
func (k *keeper) write(done *colate.Recorder) {
	if err := k.store.Append(done); err != nil && k.failed != nil {
		k.failed(fmt.Errorf("hoplag: %w", err))
	}
}

// tell reports how many packets came late, or while the store was blocked.
func (k *keeper) tell(late, early int) {
	if early > 0 && k.failed != nil {
		k.failed(fmt.Errorf("hoplag: %w: %d packets passed while the store was blocked, and are not kept", estimate.ErrNoSamples, early))
	}
	if late > 0 && k.failed != nil {
		k.failed(fmt.Errorf("hoplag: %w: %d packets were recorded after their epoch had ended, and are not kept", estimate.ErrNoSamples, late))
	}
}

// close writes what there is of the current epoch and the next.
func (k *keeper) close() {
	k.writing.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.write(k.rotation.Active())
	k.write(k.next)
	if err := k.store.Sync(); err != nil && k.failed != nil {
		k.failed(fmt.Errorf("hoplag: %w", err))
	}
	k.tell(k.late, k.early)
}
