package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/internal/programs"
	"github.com/nats-io/nats.go/jetstream"
)

// A total counts what really passed a pair of points.
type total struct {
	Pair           string
	Sent, Received uint64
}

// pointsDelay is the mean delay with -role points, and one message in pointsLoss is lost.
const pointsDelay, pointsLoss = 5 * time.Millisecond, 100

// points plays pairs of points that messages pass, publishes what they record, and finally prints
// what really passed. Each end consists of -shards points, and a message passes any of them.
func (f *fleet) points(ctx context.Context, o *options, rows *programs.Rows) error {
	totals := make([]total, o.pairs)
	var all sync.WaitGroup
	for i := range totals {
		totals[i].Pair = fmt.Sprintf("pair-%d", i)
		var ends [2][]*hoplag.Point
		for end := range ends {
			for range o.shards {
				p, err := hoplag.NewPoint(f.config)
				if err != nil {
					return err
				}
				defer p.Close()
				ends[end] = append(ends[end], p)
			}
		}
		all.Go(func() {
			recording, stop := context.WithCancel(ctx)
			defer stop()
			for end := range ends {
				for shard, p := range ends[end] {
					go f.publish(recording, p, totals[i].Pair, end+1, shard)
				}
			}
			f.begun(ctx, totals[i].Pair, 2*o.shards)
			totals[i].pass(ctx, ends, o.duration, o.rate)
			sleep(ctx, 5*time.Second+10*o.cut) // for the last reports
		})
	}
	all.Wait()
	for _, t := range totals {
		rows.Object(t)
	}
	return rows.Err
}

// begun waits until the broker has 25 records of each point of a pair: only then do reports count losses.
func (f *fleet) begun(ctx context.Context, pair string, points int) {
	filter := jetstream.WithSubjectFilter(fmt.Sprintf("%s%d.%s.>", recordPrefix, f.partition(pair), pair))
	for ready := 0; ready < points && ctx.Err() == nil; sleep(ctx, 100*time.Millisecond) {
		info, err := f.records.Info(ctx, filter)
		if ready = 0; err != nil {
			continue
		}
		for _, n := range info.State.Subjects {
			if n >= 25 {
				ready++
			}
		}
	}
}

// pass passes messages for a while, rate of them a second.
func (t *total) pass(ctx context.Context, ends [2][]*hoplag.Point, d time.Duration, rate int) {
	some := func(end int) *hoplag.Point { return ends[end][rand.IntN(len(ends[end]))] }
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var received atomic.Uint64
	var under sync.WaitGroup
	for begin := time.Now(); ctx.Err() == nil; sleep(ctx, 2*time.Millisecond) {
		for due := uint64(time.Since(begin).Seconds() * float64(rate)); t.Sent < due; {
			t.Sent++
			number := t.Sent
			some(0).PassedNumber(number)
			if number%pointsLoss != 0 {
				under.Add(1)
				time.AfterFunc(time.Duration(rand.ExpFloat64()*float64(pointsDelay)), func() {
					defer under.Done()
					some(1).PassedNumber(number)
					received.Add(1)
				})
			}
		}
	}
	under.Wait()
	t.Received = received.Load()
}
