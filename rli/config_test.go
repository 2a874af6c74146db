package rli_test

import (
	"errors"
	"runtime"
	"strconv"
	"testing"

	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/rli"
)

func TestConfig(t *testing.T) {
	change := func(f func(*rli.Config)) rli.Config {
		c := config(rli.Auto)
		f(&c)
		return c
	}
	for i, c := range []rli.Config{
		rli.DefaultConfig,
		config(rli.Auto), config(rli.Linear), config(rli.Left),
		change(func(c *rli.Config) { c.Rate, c.ReferenceBytes = 1e15, 1<<16 }),
	} {
		if _, err := rli.NewReceiver(c); err != nil {
			t.Errorf("config %d: %v", i, err)
		}
	}
	for i, c := range []rli.Config{
		{},
		change(func(c *rli.Config) { c.Method = 3 }),
		change(func(c *rli.Config) { c.Rate = -1 }),
		change(func(c *rli.Config) { c.Rate = 1e15 + 1 }),
		change(func(c *rli.Config) { c.ReferenceBytes = 0 }),
		change(func(c *rli.Config) { c.ReferenceBytes = 1<<16 + 1 }),
		change(func(c *rli.Config) { c.Buffer = 0 }),
		change(func(c *rli.Config) { c.Buffer = 1<<24 + 1 }),
		change(func(c *rli.Config) { c.Method = rli.Left }),
		change(func(c *rli.Config) { c.Flows = 0 }),
		change(func(c *rli.Config) { c.Flows = 1<<26 + 1 }),
	} {
		if _, err := rli.NewReceiver(c); !errors.Is(err, estimate.ErrConfig) {
			t.Errorf("config %d: %v", i, err)
		}
	}
	most := change(func(c *rli.Config) { c.Flows = 1 << 26 }) // more than 32 bits can address
	if refused := errors.Is(most.Validate(), estimate.ErrConfig); refused != (strconv.IntSize == 32) {
		t.Errorf("%d bytes with an int of %d bits: %v", most.MemorySize(), strconv.IntSize, most.Validate())
	}
}

// TestMemorySize: MemorySize is what a receiver allocates, except for a few hundred bytes and the allocator's own.
func TestMemorySize(t *testing.T) {
	for i, change := range []func(*rli.Config){
		func(c *rli.Config) {},
		func(c *rli.Config) { c.Flows = 100_000 },
		func(c *rli.Config) { c.Buffer = 100_000 },
		func(c *rli.Config) { c.Method, c.Buffer = rli.Linear, 100_000 },
	} {
		c := config(rli.Auto)
		change(&c)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := newReceiver(t, c)
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(r)
		got, want := float64(after.TotalAlloc-before.TotalAlloc), float64(c.MemorySize())
		if got < want || got > 1.1*want+8192 {
			t.Errorf("%d: allocates %v bytes, MemorySize says %v", i, got, want)
		}
	}
}
