package main

import (
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/colate"
)

// keepConfig are the counters of each point that -keep stores every -epoch: at
// most 128 KiB, a few bytes for each counter that saw something.
var keepConfig = colate.Config{Counters: 16384, PerFlow: 20, Bits: 64, CountBits: 14, DigestBits: 14}

// kept are the stores of both points, and what they did not take.
type kept struct {
	stores [2]*colate.Store
	mu     sync.Mutex
	err    error
}

// open opens the stores where examples/colate finds them, and has them filled.
func (k *kept) open(dir string, epoch time.Duration, points [2]*hoplag.Point) error {
	config := keepConfig
	config.Period = int64(epoch)
	for i, name := range []string{"ingress", "egress"} {
		store, err := colate.OpenStore(colate.Dir(filepath.Join(dir, name)), colate.StoreOptions{})
		if err != nil {
			return err
		}
		k.stores[i] = store
		if err := points[i].Keep(store, config, k.failed); err != nil {
			return err
		}
	}
	return nil
}

func (k *kept) failed(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = errors.Join(k.err, err)
}

// problem returns what a store did not take, and forgets it.
func (k *kept) problem() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.err
	k.err = nil
	return err
}

// close closes the stores, after their points.
func (k *kept) close() error {
	err := k.problem()
	for _, s := range k.stores {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	return err
}
