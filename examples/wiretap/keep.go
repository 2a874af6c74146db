package main

import (
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/hoplag/hoplag/colate"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
)

// keepConfig describes the counters of each place that -keep stores every
// -epoch: at most 128 KiB, a few bytes for each counter that saw something.
var keepConfig = colate.Config{Counters: 16384, PerFlow: 20, Thin: 5, Bits: 64, CountBits: 14, DigestBits: 20, Shift: 6}

// storeNames are where examples/colate finds the stores of the two places.
var storeNames = [2]string{"ingress", "egress"}

// A keeper stores what passes one place. The packets' own times cut the
// epochs, not the slightly later times at which they leave the ring, so that
// both places cut alike.
type keeper struct {
	sync.Mutex
	rotation *estimate.Rotation[*colate.Recorder]
	store    *colate.Store
	writing  sync.WaitGroup
	failures failures
}

func newKeeper(dir, name string, epoch time.Duration, seed uint64) (*keeper, error) {
	c := keepConfig
	c.Period, c.Identity = int64(epoch), hashing.Fingerprint(seed)
	rotation, err := colate.NewRotation(c)
	if err != nil {
		return nil, err
	}
	store, err := colate.OpenStore(colate.Dir(filepath.Join(dir, name)), colate.StoreOptions{})
	if err != nil {
		return nil, err
	}
	return &keeper{rotation: rotation, store: store}, nil
}

// add records a packet. The caller holds the lock.
func (k *keeper) add(flow hashing.Flow, packet hashing.Packet, at int64) {
	if k.rotation.Active().Due(at) {
		k.cut()
	}
	k.rotation.Active().Update(flow, packet, at)
}

// cut ends an epoch and starts writing it.
func (k *keeper) cut() {
	done, err := k.rotation.Rotate()
	if err != nil {
		k.failures.add(err) // the store is slow: the epoch goes on, and is not comparable
		return
	}
	k.writing.Go(func() { k.failures.add(errors.Join(k.store.Append(done), k.rotation.Release(done))) })
}

// close writes what there is of the present epoch.
func (k *keeper) close() error {
	k.writing.Wait()
	k.cut()
	k.writing.Wait()
	return errors.Join(k.failures.take(), k.store.Close())
}

// failures is what went wrong since somebody looked.
type failures struct {
	mu  sync.Mutex
	err error
}

func (f *failures) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = errors.Join(f.err, err)
}

func (f *failures) take() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.err
	f.err = nil
	return err
}
