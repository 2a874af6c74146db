package main

import (
	"encoding/binary"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	hdrhistogram "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hoplag/hoplag"
)

// A rival measures the delay of messages between two points, from any goroutine, clocks included: pass is what
// both points do with one message.
type rival struct {
	name string
	pass func(message []byte)
}

// rivals are the front door, and what most people do if they own the message and trust both clocks: put a time
// stamp in it and keep a histogram at the receiver. Neither can do without reading the clock at both points,
// which is measured alone, too.
func rivals(b testing.TB) []rival {
	config := hoplag.Config{Key: hoplag.NewKey("a key of sixteen bytes")}
	sender, receiver := must(hoplag.NewPoint(config)), must(hoplag.NewPoint(config))
	b.Cleanup(func() { sender.Close(); receiver.Close() })
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{Buckets: prometheus.ExponentialBuckets(1e-6, 2, 24)})
	hdr := hdrhistogram.New(1, 3_600_000_000_000, 3)
	var mu sync.Mutex
	stamped := func(message []byte, record func(time.Duration)) {
		binary.LittleEndian.PutUint64(message[8:], uint64(time.Now().UnixNano()))
		record(time.Duration(time.Now().UnixNano() - int64(binary.LittleEndian.Uint64(message[8:]))))
	}
	base := time.Now()
	return []rival{
		{"clock-twice", func([]byte) {
			if time.Since(base) > time.Since(base)+time.Hour {
				panic("the clock runs back")
			}
		}},
		{"hoplag", func(message []byte) {
			sender.Passed(message[:8])
			receiver.Passed(message[:8])
		}},
		{"timestamp+Prometheus", func(message []byte) {
			stamped(message, func(d time.Duration) { histogram.Observe(d.Seconds()) })
		}},
		{"timestamp+HdrHistogram", func(message []byte) {
			stamped(message, func(d time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				if hdr.RecordValue(int64(max(d, 1))) != nil {
					panic("too long")
				}
			})
		}},
	}
}

// BenchmarkLive is one message at both points, in turns in one run: the wall time, and the processor's time,
// which others on the machine do not add to.
func BenchmarkLive(b *testing.B) {
	all := rivals(b)
	for _, goroutines := range []int{1, 2, 1000} {
		for _, r := range all {
			b.Run(fmt.Sprintf("%s/goroutines=%d", r.name, goroutines), func(b *testing.B) {
				b.ReportAllocs()
				before := processorTime()
				var wait sync.WaitGroup
				for g := range goroutines {
					wait.Go(func() {
						message := make([]byte, 16)
						for i := range b.N/goroutines + 1 {
							binary.LittleEndian.PutUint64(message, uint64(g)<<32|uint64(i))
							r.pass(message)
						}
					})
				}
				wait.Wait()
				b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// processorTime is how long the process was on a processor.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
