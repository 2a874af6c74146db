package colate

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// What is old is removed unasked, by age and by size, but not because of one epoch from a clock that ran ahead.
func TestRetentionByItself(t *testing.T) {
	for name, c := range map[string]struct {
		options StoreOptions
		want    []int
	}{
		"age":   {StoreOptions{Age: 80_000}, numbers(410, 500)},
		"bytes": {StoreOptions{segmentBytes: 1, Bytes: int64(sizeOf(t, 0, 4))}, numbers(16, 20)},
		"none":  {StoreOptions{segmentBytes: 1}, numbers(0, 20)},
	} {
		s := openStore(t, newMemory(), c.options)
		fill(t, s, 0, c.want[len(c.want)-1]+1)
		if got, _ := contents(t, s); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	s := openStore(t, newMemory(), StoreOptions{segmentBytes: 1})
	fill(t, s, 0, 9)
	for _, c := range [][2]int64{{2999, 2}, {3000, 3}, {math.MaxInt64, 8}} { // the one being written stays
		if _, err := s.DropBefore(c[0]); err != nil {
			t.Error(err)
		}
		if got, _ := contents(t, s); !slices.Equal(got, numbers(int(c[1]), 9)) {
			t.Errorf("dropped before %d: %v", c[0], got)
		}
	}
	s = openStore(t, newMemory(), StoreOptions{Age: 48_000})
	fill(t, s, 0, 12)
	fill(t, s, 1_000_000, 1_000_001)
	for _, c := range [][3]int{{12, 24, 0}, {24, 100, 48}} {
		fill(t, s, c[0], c[1])
		if got, _ := contents(t, s); !slices.Equal(got, append(numbers(c[2], c[1]), 1_000_000)) {
			t.Errorf("one epoch from a clock that ran ahead, and others up to %d, leave %v", c[1], got)
		}
	}
}

// Any number of goroutines append and drop, while others read whole epochs, in order.
func TestManyGoroutines(t *testing.T) {
	s := openStore(t, dir(t.TempDir()), StoreOptions{segmentBytes: 500})
	epochs := make([]*Recorder, 100)
	for i := range epochs {
		epochs[i] = epochAt(t, i)
	}
	var writers, readers sync.WaitGroup
	var done atomic.Bool
	failed := make(chan error, 1000)
	for worker := range 4 {
		writers.Go(func() {
			for i := worker; i < len(epochs); i += 4 {
				failed <- s.Append(epochs[i])
				_, err := s.DropBefore(-5)
				failed <- err
			}
		})
		readers.Go(func() {
			for worker < 2 && !done.Load() {
				previous := int64(-1)
				for e, err := range s.Epochs(math.MinInt64, math.MaxInt64) {
					if err != nil {
						failed <- err
						return
					}
					start, _, _ := e.Span()
					if start <= previous {
						failed <- fmt.Errorf("epoch at %d after %d", start, previous)
					}
					previous = start
				}
				s.Summary()
			}
		})
	}
	writers.Wait()
	done.Store(true)
	readers.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got, damages := contents(t, s); !slices.Equal(got, numbers(0, 100)) || damages != 0 || !errors.Is(s.Append(epochs[0]), fs.ErrClosed) {
		t.Errorf("%d epochs, %d damages", len(got), damages)
	}
}
