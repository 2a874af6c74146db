package figdoor

import (
	"context"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hoplag/hoplag"
)

// used is the processor time of this process so far.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cost runs pairs of points for a while of virtual time, and returns what one takes: of the processor in a second, and of the heap.
// Messages take 5 ms. The cost of the traffic itself, measured without points, is subtracted.
func cost(t *testing.T, pairs int, period time.Duration, points bool) (processor time.Duration, heap uint64) {
	const warm, measured = 10 * time.Second, 30 * time.Second
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		config := hoplag.Config{Key: hoplag.NewKey("a key of an experiment"), ClocksAgree: true}
		for range pairs {
			passed := [2]func(uint64){func(uint64) {}, func(uint64) {}}
			if points {
				a, errA := hoplag.NewPoint(config)
				b, errB := hoplag.NewPoint(config)
				if errA != nil || errB != nil {
					t.Fatal(errA, errB)
				}
				defer a.Close()
				defer b.Close()
				passed = [2]func(uint64){a.PassedNumber, b.PassedNumber}
				if period > 0 {
					go func() {
						for range b.Follow(ctx, func(_ context.Context, q []byte) ([]byte, error) { return a.Answer(q) }) {
						}
					}()
				}
			}
			go func() {
				for i := uint64(0); ctx.Err() == nil && period > 0; i++ {
					passed[0](i)
					passed[1](i - 5)
					time.Sleep(period)
				}
			}()
		}
		time.Sleep(warm)
		began := used()
		time.Sleep(measured)
		processor = (used() - began) / time.Duration(pairs) / time.Duration(measured/time.Second)
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&after)
		heap = (after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc)) / uint64(pairs)
		cancel()
		time.Sleep(5 * time.Second)
	})
	return processor, heap
}

// TestCost says what points cost: go test -v -run TestCost ./bench/figdoor.
func TestCost(t *testing.T) {
	if testing.Short() {
		t.Skip("what the race detector costs is not asked")
	}
	idle, small := cost(t, 200, 0, true)
	t.Logf("two idle points: %.1f µs of the processor a second, %d KiB", float64(idle)/1e3, small>>10)
	bare, _ := cost(t, 10, time.Millisecond, false)
	busy, large := cost(t, 10, time.Millisecond, true)
	t.Logf("a followed pair at 1,000 messages a second: %.0f µs of the processor a second, %d KiB", float64(busy-bare)/1e3, large>>10)
	if small > 64<<10 || large > 550<<10 {
		t.Errorf("two idle points take %d KiB, a followed pair %d", small>>10, large>>10)
	}
}
